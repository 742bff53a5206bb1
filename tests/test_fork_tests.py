"""The tests that ship with the series: red without it, green with it.

They run on the installed vLLM as it is, with the series, and with the series but
for its change to the busy loop, in which a failing `get_output()` ends a worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outcomes import Outcomes, matching, read_outcomes
from overlay import add_tests, add_version, overlay_vllm
from vllm_graft import DirTree, load_series, plan
from vllm_graft.engine_env import VERSION, EngineEnv, cpu_engine, ensure

pytestmark = pytest.mark.engine

SERIES = "mrv2-async-output"
EXECUTOR_TESTS = "tests/v1/executor"

UNIPROC = "0001-uniproc-executor.spatch"
BUSY_LOOP = "0002-multiproc-executor.spatch"
SOURCES = {UNIPROC, BUSY_LOOP, "0003-gpu-model-runner.spatch"}

# What fails where the busy loop hands an output over outside of its `try`.
OUTSIDE_TRY = [
    "test_worker_survives_error_in_get_output[blocking]",
    "test_worker_survives_error_in_get_output[non_blocking]",
    "test_worker_survives_reply_that_cannot_be_sent[blocking]",
    "test_worker_survives_reply_that_cannot_be_sent[non_blocking]",
]
# What fails where UniProcExecutor returns an output unresolved.
UNRESOLVED = [
    "test_blocking_call_returns_resolved_output[*-async_output-*]",
    "test_blocking_step_returns_resolved_output[*]",
    "test_blocking_call_raises_error[*-failing_get_output-*]",
    "test_blocking_calls_resolve_each_output_once_and_in_order[*]",
]


@pytest.fixture(scope="module")
def engine() -> EngineEnv:
    return ensure(cpu_engine())


@pytest.fixture
def run_tests(engine: EngineEnv, tmp_path: Path) -> Callable[[set[str]], Outcomes]:
    """Run the executor tests on the engine's vLLM with some patches of the series."""

    def run(patches: set[str]) -> Outcomes:
        series = load_series(SERIES)
        chosen = tuple(p for p in series.patches if p.patch.name in patches)
        assert {p.patch.name for p in chosen} == patches
        changes = plan(
            DirTree(engine.site_packages), [series._replace(patches=chosen)]
        ).changes
        assert len(changes) == len(patches)
        root = overlay_vllm(
            engine.site_packages / "vllm",
            tmp_path / "tree",
            {change.path: change.after or b"" for change in changes},
        )
        add_version(root, f"{VERSION}+cpu")
        add_tests(root, series.folder / "files" / "tests")
        return run_pytest(engine.python, root, EXECUTOR_TESTS)

    return run


def run_pytest(python: Path, root: Path, *args: str) -> Outcomes:
    """Run pytest in a tree, on that tree's vLLM."""
    report = root / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--timeout=120"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, *args],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "VLLM_HOST_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    return read_outcomes(report, done.stdout)


def test_all_pass_with_the_series(run_tests: Callable[[set[str]], Outcomes]) -> None:
    outcomes = run_tests(SOURCES)
    assert outcomes.failed == set()
    assert matching(outcomes, OUTSIDE_TRY + UNRESOLVED) <= outcomes.passed


@pytest.mark.parametrize(
    ("patches", "patterns"),
    [
        (set(), OUTSIDE_TRY + UNRESOLVED),
        (SOURCES - {BUSY_LOOP}, OUTSIDE_TRY),
        (SOURCES - {UNIPROC}, UNRESOLVED),
    ],
    ids=["base", "busy-loop-as-it-was", "uniproc-as-it-was"],
)
def test_exactly_these_fail_without_it(
    run_tests: Callable[[set[str]], Outcomes], patches: set[str], patterns: list[str]
) -> None:
    outcomes = run_tests(patches)
    assert outcomes.failed == matching(outcomes, patterns)
