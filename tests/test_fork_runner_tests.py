"""The runner's tests that ship with the series: red without it, green with it.

They run the real runner on the engine's vLLM without a GPU: as it is, with the
series by ``vllm-graft run``, and with one of the series' two edits to the runner left
out. All of them run at once, two at a time, because most of a run is its imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mutations import METHODS, SERIES, with_method
from outcomes import Outcomes, matching, read_outcomes
from overlay import add_tests, overlay_vllm
from vllm_graft import DirTree, load_series, plan
from vllm_graft.cpu import environment
from vllm_graft.engine_env import EngineEnv, cpu_engine, ensure

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

RUNNER = "vllm/v1/worker/gpu/model_runner.py"
# Enough for a run with an edit left out; needs half of the engines.
SYNCHRONOUS = "not async_scheduling and not scheduling_modes"

# What fails where the runner has an attribute for the scheduling mode.
KNOWS_THE_MODE = ["test_runner_does_not_know_the_scheduling_mode[*]"]
# What fails where UniProcExecutor returns an output unresolved.
UNRESOLVED = ["test_executor_resolves_output_in_blocking_call[*-async_scheduling]"]


def resolved_by(method: str) -> list[str]:
    """What fails where the runner's method resolves its output in synchronous mode."""
    return [
        f"test_{name}[{method}-sync_scheduling]"
        for name in (
            "last_rank_returns_async_output",
            "executor_leaves_output_to_future_in_non_blocking_call",
            "outputs_resolved_late_keep_their_values",
            "returns_while_copy_is_in_flight",
            "copy_waits_for_the_main_stream",
            "main_stream_does_not_wait_for_the_copy",
        )
    ]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcomes]:
    """Of every run, by its name."""
    engine = ensure(cpu_engine())
    graft = [sys.executable, "-m", "vllm_graft", "run", "--cpu", "--series", SERIES]
    root = tmp_path_factory.mktemp("runs")
    before, after = _changes(engine)
    runs = {
        "grafted": ([*graft, "--"], _tests(root / "grafted"), ""),
        "base": ([], _tree(engine, root / "base", {}), ""),
    }
    for method in METHODS:
        # The other edit alone.
        (other,) = set(METHODS) - {method}
        changed = {**after, RUNNER: with_method(before[RUNNER], after[RUNNER], other)}
        tree = _tree(engine, root / method, changed)
        runs[f"without-{method}"] = ([], tree, SYNCHRONOUS)
    with ThreadPoolExecutor(max_workers=2) as pool:
        started = {
            name: pool.submit(_pytest, engine, *run) for name, run in runs.items()
        }
        return {name: run.result() for name, run in started.items()}


def _changes(engine: EngineEnv) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of vLLM that the series changes, before and after."""
    series = [load_series(SERIES)]
    changes = plan(DirTree(engine.site_packages), series).changes
    sources = [c for c in changes if c.path.startswith("vllm/")]
    before = {c.path: c.before for c in sources if c.before is not None}
    after = {c.path: c.after for c in sources if c.after is not None}
    assert len(before) == len(after) == 3
    return before, after


def _tests(root: Path) -> Path:
    """A folder with the fork's tests and no vLLM."""
    root.mkdir()
    add_tests(root, load_series(SERIES).folder / "files" / "tests")
    return root


def _tree(engine: EngineEnv, root: Path, changed: Mapping[str, bytes]) -> Path:
    """A tree with the fork's tests and the engine's vLLM, some files changed."""
    overlay_vllm(engine.site_packages / "vllm", root, changed)
    add_tests(root, load_series(SERIES).folder / "files" / "tests")
    return root


def _pytest(engine: EngineEnv, prefix: list[str], root: Path, select: str) -> Outcomes:
    """Run the runner's tests in a tree, on that tree's vLLM if it has one."""
    report = root / "report.xml"
    command = [*prefix, str(engine.python), "-m", "pytest", "tests/v1/worker"]
    command += ["-q", "-p", "no:cacheprovider", "--timeout=300", "--tb=short"]
    command += ["-k", select, f"--junitxml={report}", "-o", "junit_family=xunit1"]
    settings = {
        "PYTHONPATH": str(root),
        "VLLM_LOGGING_LEVEL": "ERROR",
        # Sums depend on how threads split them.
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    done = subprocess.run(
        command,
        cwd=root,
        env=environment(os.environ | settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return read_outcomes(report, done.stdout)


def test_all_pass_with_the_series(outcomes: Mapping[str, Outcomes]) -> None:
    grafted = outcomes["grafted"]
    assert grafted.failed == set(), grafted.output
    assert len(grafted.passed) == 46


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("base", [p for method in METHODS for p in resolved_by(method)] + UNRESOLVED),
        *((f"without-{method}", resolved_by(method)) for method in METHODS),
    ],
)
def test_exactly_these_fail_without_it(
    outcomes: Mapping[str, Outcomes], name: str, patterns: list[str]
) -> None:
    run = outcomes[name]
    assert run.failed == matching(run, patterns + KNOWS_THE_MODE), run.output
