"""The hardening series on every release of vLLM, alone and with the refactor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_releases import AFTER, BEFORE, git, ruff
from vllm_graft import DirTree, MemoryTree, Series, apply, load_series, status
from vllm_graft.index.client import Index
from vllm_graft.index.fetch import fetch
from vllm_graft.index.wheel import read_wheel_files
from vllm_graft.overlay import OverlayTree
from vllm_graft.planner import make_plan

pytestmark = pytest.mark.network

RELEASES = [*BEFORE, *AFTER]
RESOLVE = "0001-resolve-errors.spatch"
OTHERS = (
    "0002-error-causes.spatch",
    "0003-one-response.spatch",
    "0004-output-thread.spatch",
)
EXECUTOR = "vllm/v1/executor/multiproc_executor.py"
QUEUE = "vllm/distributed/device_communicators/shm_broadcast.py"

HARDENING = load_series("async-output-hardening")
REFACTOR = load_series("mrv2-async-output")


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as opened:
        yield opened


@pytest.fixture
def release(request: pytest.FixtureRequest, index: Index) -> MemoryTree:
    """The files of one release that either series concerns, in memory."""
    found = index.release(request.param)
    paths = {*HARDENING.paths(), *REFACTOR.paths()}
    files = read_wheel_files(index, found, sorted(paths))
    there = {path: data for path, data in files.items() if data is not None}
    return MemoryTree(there, request.param)


def verdicts(tree: MemoryTree | OverlayTree) -> dict[str, str]:
    patches = status(tree, [HARDENING]).series[0].patches
    return {p.file: p.verdict.value for p in patches if not p.adds_only}


def grafted(
    tree: MemoryTree | OverlayTree, series: list[Series]
) -> MemoryTree | OverlayTree:
    return OverlayTree(tree, make_plan(tree, series).changes)


def wanted(version: str) -> dict[str, str]:
    """The verdicts on a release: since 0.25 upstream guards get_output()."""
    guarded = version in AFTER and version != "0.24.0"
    first = "superseded" if guarded else "applies"
    return {RESOLVE: first, **dict.fromkeys(OTHERS, "applies")}


@pytest.mark.parametrize("release", RELEASES, indirect=True)
@pytest.mark.parametrize("on", [[], [REFACTOR]], ids=["alone", "on-top"])
def test_applies_once_compiles_and_reverts_to_the_same_bytes(
    release: MemoryTree, on: list[Series]
) -> None:
    version = release.version
    assert version
    tree = grafted(release, on)
    assert verdicts(tree) == wanted(version)

    plan = make_plan(tree, [HARDENING])
    changed = {c.path: c for c in plan.changes if c.before is not None}
    assert changed.keys() == {EXECUTOR, QUEUE}
    for change in changed.values():
        assert change.after is not None
        compile(change.after, change.path, "exec", dont_inherit=True)

    hardened = OverlayTree(tree, plan.changes)
    done = {f: "applied" if v == "applies" else v for f, v in wanted(version).items()}
    assert verdicts(hardened) == done
    assert make_plan(hardened, [HARDENING]).changes == ()

    back = make_plan(hardened, [HARDENING], reverse=True)
    assert {c.path: c.after for c in back.changes} == {
        c.path: c.before for c in plan.changes
    }


@pytest.mark.parametrize("release", RELEASES, indirect=True)
def test_both_orders_give_the_same_text(release: MemoryTree) -> None:
    orders = [[HARDENING, REFACTOR], [REFACTOR, HARDENING]]
    texts = [
        {c.path: c.after for c in make_plan(release, order).changes} for order in orders
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("release", ["0.18.1", "0.19.0"], indirect=True)
def test_the_device_is_guarded_where_the_thread_sets_it(release: MemoryTree) -> None:
    patches = status(release, [HARDENING]).series[0].patches
    (thread,) = (p for p in patches if p.file == OTHERS[-1])
    sets = release.version == "0.19.0"
    assert thread.hunks[0].verdict.value == ("applies" if sets else "absent")


@pytest.mark.parametrize("release", ["0.23.0"], indirect=True)
def test_the_lines_of_0_23_0(release: MemoryTree) -> None:
    patches = status(release, [HARDENING]).series[0].patches
    lines = {p.file: [h.lines for h in p.hunks] for p in patches if not p.adds_only}
    assert lines == {
        RESOLVE: [(932,)],
        OTHERS[0]: [(926,), (939,)],
        OTHERS[1]: [(749,), (956,), (954,)],
        OTHERS[2]: [(993,), (998,)],
    }


def test_the_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Fork")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@fork.example")
    fork = fetch("0.23.0", tmp_path / "vllm").path
    before = ruff(fork, [EXECUTOR, QUEUE])

    outcome = apply(DirTree(fork), [REFACTOR, HARDENING], commit=True)
    patches = len(REFACTOR.patches) + len(HARDENING.patches)
    assert len(outcome.commits) == patches
    assert ruff(fork, [EXECUTOR, QUEUE]) == before
    (tests,) = (p for p in outcome.changed if p.endswith("output_failures.py"))
    assert ruff(fork, [tests]) == []
    command = [sys.executable, "-m", "ruff", "format", "--check", EXECUTOR, QUEUE]
    subprocess.run([*command, tests], cwd=fork, check=True)
    assert git(fork, "status", "--porcelain") == ""
