"""The series on every release of vLLM: verdicts, results, digests, mail.

The releases come from the package index the first time, then from the cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.version import Version

from vllm_graft import (
    DirTree,
    MemoryTree,
    Series,
    Tree,
    apply,
    load_series,
    status,
)
from vllm_graft.export import export, forward_plan
from vllm_graft.index.client import Index
from vllm_graft.index.fetch import fetch
from vllm_graft.index.wheel import read_wheel_files
from vllm_graft.overlay import OverlayTree
from vllm_graft.planner import make_plan

pytestmark = pytest.mark.network

SERIES = "mrv2-async-output"
BEFORE = [
    "0.12.0",
    "0.13.0",
    "0.14.0",
    "0.14.1",
    "0.15.0",
    "0.15.1",
    "0.16.0",
    "0.17.0",
    "0.17.1",
    "0.18.0",
    "0.18.1",
    "0.19.0",
    "0.19.1",
    "0.20.0",
    "0.20.1",
    "0.20.2",
    "0.21.0",
    "0.22.0",
    "0.22.1",
    "0.23.0",
]
AFTER = [
    "0.24.0",
    "0.25.0",
    "0.25.1",
    "0.26.0",
    "0.27.0",
    "0.27.1",
    "0.28.0",
    "0.29.0",
    "0.30.0",
    "0.31.0",
    "0.32.0",
    "0.33.0",
]
SOURCES = [
    "0001-uniproc-executor.spatch",
    "0002-multiproc-executor.spatch",
    "0003-gpu-model-runner.spatch",
]
# SHA-256 of the three files of 0.23.0 once the refactor is made.
REFACTORED = {
    "vllm/v1/worker/gpu/model_runner.py": (
        "3d25c39d4a177ee47e78c36987ed507eff90d7806e52e905d4b4d94b24b40f46"
    ),
    "vllm/v1/executor/multiproc_executor.py": (
        "58dc3fc4fef7d4ae2235ad7a9b1c3f2960da6e4cdf5de806a9a19916250ef429"
    ),
    "vllm/v1/executor/uniproc_executor.py": (
        "4625c8e59aef1482600b02204701d348d7f716427581d3cf23b06bff9b056abe"
    ),
}


@pytest.fixture(scope="module")
def series() -> list[Series]:
    return [load_series(SERIES)]


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as opened:
        yield opened


@pytest.fixture
def release(
    request: pytest.FixtureRequest, index: Index, series: list[Series]
) -> MemoryTree:
    """The files of one release that the series concern, in memory."""
    found = index.release(request.param)
    files = read_wheel_files(index, found, series[0].paths())
    there = {path: data for path, data in files.items() if data is not None}
    return MemoryTree(there, request.param)


def source_verdicts(tree: Tree, series: list[Series]) -> dict[str, str]:
    patches = status(tree, series).series[0].patches
    return {p.file: p.verdict.value for p in patches if not p.adds_only}


@pytest.mark.parametrize("release", BEFORE, indirect=True)
def test_applies_once_compiles_and_reverts_to_the_same_bytes(
    release: MemoryTree, series: list[Series]
) -> None:
    plan = make_plan(release, series)
    assert source_verdicts(release, series) == dict.fromkeys(SOURCES, "applies")
    for change in plan.changes:
        assert change.after is not None
        compile(change.after, change.path, "exec", dont_inherit=True)

    patched = OverlayTree(release, plan.changes)
    assert source_verdicts(patched, series) == dict.fromkeys(SOURCES, "applied")
    assert make_plan(patched, series).changes == ()

    back = make_plan(patched, series, reverse=True)
    assert {c.path: c.after for c in back.changes} == {
        c.path: c.before for c in plan.changes
    }


@pytest.mark.parametrize("release", AFTER, indirect=True)
def test_upstream_has_it(release: MemoryTree, series: list[Series]) -> None:
    assert set(source_verdicts(release, series)) == set(SOURCES)
    assert set(source_verdicts(release, series).values()) <= {"applied", "superseded"}
    assert make_plan(release, series).changes == ()


@pytest.mark.parametrize("release", ["0.11.2"], indirect=True)
def test_before_model_runner_v2(release: MemoryTree, series: list[Series]) -> None:
    assert source_verdicts(release, series) == dict.fromkeys(SOURCES, "absent")


def test_every_release_is_judged(index: Index) -> None:
    known = {r.version for r in index.releases()}
    judged = {"0.11.2", *BEFORE, *AFTER}
    first, last = Version("0.11.2"), Version("0.33.0")
    assert {v for v in known if first <= Version(v) <= last} == judged


@pytest.mark.parametrize("release", ["0.12.0", "0.15.1"], indirect=True)
def test_the_flag_stays_while_init_reads_it(
    release: MemoryTree, series: list[Series]
) -> None:
    hunks = status(release, series).series[0].patches[2].hunks
    assert hunks[0].verdict.value == "absent"
    assert "self.use_async_scheduling" in hunks[0].reason


@pytest.mark.parametrize("release", ["0.16.0", "0.23.0"], indirect=True)
def test_the_flag_goes_where_nothing_reads_it(
    release: MemoryTree, series: list[Series]
) -> None:
    hunks = status(release, series).series[0].patches[2].hunks
    assert hunks[0].verdict.value == "applies"


@pytest.mark.parametrize("release", ["0.23.0"], indirect=True)
def test_the_lines_of_0_23_0(release: MemoryTree, series: list[Series]) -> None:
    patches = status(release, series).series[0].patches
    lines = {p.file: [h.lines for h in p.hunks] for p in patches if not p.adds_only}
    assert lines == {
        SOURCES[0]: [(92,)],
        SOURCES[1]: [(982,), (398,)],
        SOURCES[2]: [(148,), (1444, 1490)],
    }


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """0.23.0 as a git repository."""
    return fetch("0.23.0", tmp_path_factory.mktemp("fork") / "vllm").path


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def ruff(fork: Path, paths: Sequence[str]) -> list[tuple[str, str]]:
    """The findings of the fork's own ruff configuration, without line numbers."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format=json", "-q"]
    done = subprocess.run(
        [*command, "--config", "pyproject.toml", *paths],
        cwd=fork,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return sorted((f["filename"], f["code"]) for f in json.loads(done.stdout))


def test_the_fork(
    fork: Path,
    series: list[Series],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Fork")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@fork.example")
    tree = DirTree(fork)
    before = ruff(fork, list(REFACTORED))
    mail = export(tree, forward_plan(tree, series), tmp_path)

    outcome = apply(tree, series, commit=True, signoff=True)
    assert len(outcome.commits) == len(mail) == len(series[0].patches)
    digests = {p: sha256(Path(fork, p).read_bytes()).hexdigest() for p in REFACTORED}
    assert digests == REFACTORED
    assert ruff(fork, list(outcome.changed)) == before
    assert "Signed-off-by: A Fork <a@fork.example>" in git(fork, "log", "-1")
    assert git(fork, "status", "--porcelain") == ""
    grafted = git(fork, "rev-parse", "HEAD^{tree}")

    git(fork, "checkout", "-q", "--detach", "v0.23.0")
    git(fork, "am", "-q", *map(str, mail))
    assert git(fork, "rev-parse", "HEAD^{tree}") == grafted
