"""The tests that ship with the hardening series: red without it, green with it.

They run on the installed vLLM, on executors of their own. What is red waits for the
timeout of an RPC, which is made shorter there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hardening import EXECUTOR, QUEUE
from outcomes import Outcomes
from overlay import add_tests, add_version, overlay_vllm
from test_fork_tests import EXECUTOR_TESTS, run_pytest
from vllm_graft import DirTree, load_series, plan
from vllm_graft.engine_env import VERSION, EngineEnv, cpu_engine, ensure

pytestmark = pytest.mark.engine

HARDENING = load_series("async-output-hardening")
REFACTOR = load_series("mrv2-async-output")
TESTS = "test_multiproc_output_failures.py"

BOTH = ("[sync_scheduling]", "[async_scheduling]")
CAUSE = {
    f"test_caller_is_told_the_error_and_its_cause[{method}-{mode[1:]}"
    for method in ("failing_call", "failing_get_output")
    for mode in BOTH
}
UNPICKLABLE = "test_caller_is_told_that_output_cannot_be_pickled"
LARGE = "test_caller_is_told_that_large_output_cannot_be_sent"
OWN_ANSWER = "test_each_call_gets_its_own_answer"
HALF_WAY = "test_worker_ends_when_response_fails_half_way"
NOTHING = "test_worker_ends_when_not_even_failure_can_be_sent"
DEVICE = {"test_output_is_not_resolved_on_another_device"}


def both(*names: str) -> set[str]:
    return {name + mode for name in names for mode in BOTH}


ALL = both(UNPICKLABLE, LARGE, OWN_ANSWER, HALF_WAY, NOTHING) | CAUSE | DEVICE
# A synchronous worker of base ends whatever cannot be sent, as it does when hardened.
FINE_ON_BASE = {HALF_WAY + BOTH[0], NOTHING + BOTH[0]}


@pytest.fixture(scope="module")
def engine() -> EngineEnv:
    return ensure(cpu_engine())


def run(
    engine: EngineEnv, folder: Path, changed: dict[str, bytes], *, red: bool = True
) -> Outcomes:
    """Run the tests on a vLLM with some files changed."""
    root = overlay_vllm(engine.site_packages / "vllm", folder / "tree", changed)
    add_version(root, f"{VERSION}+cpu")
    add_tests(root, HARDENING.folder / "files" / "tests")
    if red:
        file = root / EXECUTOR_TESTS / TESTS
        text = file.read_text()
        assert text.count("\nTIMEOUT = 10\n") == 1
        file.write_text(text.replace("\nTIMEOUT = 10\n", "\nTIMEOUT = 3\n"))
    return run_pytest(engine.python, root, f"{EXECUTOR_TESTS}/{TESTS}")


def grafted(engine: EngineEnv, *names: str) -> dict[str, bytes]:
    """The files of vLLM that some series change."""
    series = [load_series(name) for name in names]
    changes = plan(DirTree(engine.site_packages), series).changes
    return {
        c.path: c.after
        for c in changes
        if c.after is not None and c.path.startswith("vllm/")
    }


@pytest.mark.parametrize(
    "names", [(HARDENING.name,), (REFACTOR.name, HARDENING.name)], ids=["alone", "both"]
)
def test_all_pass_with_the_series(
    engine: EngineEnv, tmp_path: Path, names: tuple[str, ...]
) -> None:
    outcomes = run(engine, tmp_path, grafted(engine, *names), red=False)
    assert (outcomes.passed, outcomes.failed) == (ALL, set())


@pytest.mark.parametrize(
    ("names", "failed"),
    [
        ((), ALL - FINE_ON_BASE),
        # It reports what cannot be sent, and so answers twice where it was sent.
        ((REFACTOR.name,), ALL - {OWN_ANSWER + BOTH[0], NOTHING + BOTH[0]}),
    ],
    ids=["base", "refactor"],
)
def test_exactly_these_fail_without_it(
    engine: EngineEnv, tmp_path: Path, names: tuple[str, ...], failed: set[str]
) -> None:
    changed = grafted(engine, *names) if names else {}
    assert run(engine, tmp_path, changed).failed == failed


def test_without_the_edit_of_the_queue_a_large_output_is_awaited(
    engine: EngineEnv, tmp_path: Path
) -> None:
    changed = grafted(engine, HARDENING.name)
    del changed[QUEUE]
    assert run(engine, tmp_path, changed).failed == both(LARGE)


@pytest.mark.parametrize(
    ("old", "new", "failed"),
    [
        (
            "os.kill(os.getpid(), signal.SIGTERM)",
            "pass",
            {HALF_WAY + BOTH[1], NOTHING + BOTH[1]},
        ),
        ("if moved_on or ", "if ", both(HALF_WAY)),
    ],
    ids=["end", "half-way"],
)
def test_exactly_these_fail_without_an_edit(
    engine: EngineEnv, tmp_path: Path, old: str, new: str, failed: set[str]
) -> None:
    """Each of the others is undone in miniature; these are about processes."""
    changed = grafted(engine, HARDENING.name)
    text = changed[EXECUTOR].decode()
    assert text.count(old) == 1
    changed[EXECUTOR] = text.replace(old, new).encode()
    assert run(engine, tmp_path, changed).failed == failed
