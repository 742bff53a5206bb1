"""Every benchmark runs, on miniature releases, and prints its table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import (
    ast_grep,
    carry,
    codemod,
    inputs,
    rpc,
    series,
    textual,
    timing,
)
from benchmarks.sides import BASE, GRAFTED, contestants, sides
from benchmarks.table import Table, goal

import loopback

UNIPROC = """\
class UniProcExecutor(Executor):
    def collective_rpc(self, method, args=(), non_block=False, single_value=False):
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
        return self.submit(method, args)
"""
MULTIPROC = """\
class MultiprocExecutor(Executor):
    def collective_rpc(self, method):
        future = FutureWrapper(
            self.futures_queue,
            get_response=get_response,
            aggregate=aggregate,
        )
        return future


class WorkerProc:
    def worker_busy_loop(self):
        while True:
            method, args, kwargs, output_rank = self.dequeue()
            try:
                func = getattr(self.worker, method)

                output = func(*args, **kwargs)
            except Exception as e:
                if output_rank is None or self.rank == output_rank:
                    self.handle_output(e)
                continue

            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)

    def shutdown(self):
        self.worker = None
"""
RUNNER = """\
class GPUModelRunner:
    def __init__(self, config):
        self.scheduler_config = config

        self.use_async_scheduling = self.scheduler_config.async_scheduling
        self.output_copy_stream = make_stream()

    def sample_tokens(self, step):
        async_output = AsyncOutput(step)
        self.finish(step)
        if self.use_async_scheduling:
            return async_output
        return async_output.get_output()

    def pool(self):
        async_output = AsyncPoolingOutput(self.state)
        if self.use_async_scheduling:
            return async_output
        return async_output.get_output()
"""


def _release(runner: str) -> dict[str, bytes]:
    sources = dict(zip(inputs.PATHS, (UNIPROC, MULTIPROC, runner), strict=True))
    return {path: text.encode() for path, text in sources.items()}


#: By version. The oldest has another reader of the flag, and no pool().
RELEASES = {
    "0.12.0": _release(
        RUNNER[: RUNNER.index("\n    def pool")].replace(
            "make_stream()",
            "make_stream()\n        self.early = self.use_async_scheduling",
        )
    ),
    "0.22.0": _release(f"import os\n\n\n{RUNNER}"),
    "0.23.0": _release(RUNNER),
}


@pytest.fixture
def _miniatures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An index with the miniature releases, in place of the real ones."""
    with loopback.serving() as server:
        for version in ("0.12.0", "0.23.0"):
            rest = {"vllm/__init__.py": b"", "tests/v1/__init__.py": b""}
            server.add_release(version, {**RELEASES[version], **rest})
        loopback.only_this_index(monkeypatch, server.url, tmp_path)
        # The digests are those of the real release.
        monkeypatch.setattr(inputs, "DIGESTS", {})
        inputs.release.cache_clear()
        yield
        inputs.release.cache_clear()


LIGHT = [name for name in command.NAMES if name not in command.ON_THE_ENGINE]


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.usefixtures("_miniatures")
def test_a_benchmark_prints_its_table(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert command.main([name, "--rounds", "1", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    table = json.loads(file.read_text())["tables"][name]
    assert f"### {table['title']}" in printed
    for row in table["rows"]:
        assert f"| {row[0]} " in printed
    assert table["raw"]


@pytest.mark.engine
def test_round_trips_are_measured_on_base_and_grafted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc, "_PAIRS", 1)
    table = rpc.measure(1)
    names = [row[0] for row in table.rows]
    assert len(names) == len(set(names)) == len(table.notes) == 6
    assert names[:2] == ["mp, small, sync", "mp, large, sync"]


@pytest.mark.engine
@pytest.mark.parametrize("scheduling", ["sync", "async"])
def test_tokens_are_measured_on_base_and_grafted(scheduling: str) -> None:
    with sides("steps", "uni", scheduling) as pair:
        samples = timing.interleave(contestants(pair, {"tokens": 2}), 1, base=BASE)
        schedulers = {side.about["scheduler"] for side in pair.values()}
    assert schedulers == {{"sync": "Scheduler", "async": "AsyncScheduler"}[scheduling]}
    assert samples.ratio(GRAFTED, "wall") > 0


@pytest.mark.engine
def test_a_side_that_ends_early_is_an_error() -> None:
    with (
        pytest.raises(timing.Failed, match=r"(?s)a side ended:.*KeyError"),
        sides("rpc", "uni", "sync") as pair,
    ):
        pair[BASE].ask({"wrong": 1})


def test_a_patch_that_leaves_something_out_is_wrong(tmp_path: Path) -> None:
    ours = inputs.source_series()
    history = textual.History(tmp_path, RELEASES, ours)
    expected = series.refactor(RELEASES["0.23.0"], ours)
    results = {
        (tool, source): carry.judge(history.carry(tool, source, "0.23.0"), expected)
        for tool in ("git am", "patch -F3")
        for source in ("0.12.0", "0.22.0")
    }
    assert results == {
        ("git am", "0.12.0"): ("refused", False),
        ("git am", "0.22.0"): ("right", True),
        ("patch -F3", "0.12.0"): ("wrong", False),
        ("patch -F3", "0.22.0"): ("right", True),
    }


@pytest.mark.parametrize("version", RELEASES)
def test_the_codemod_gives_the_same_bytes_as_the_series(version: str) -> None:
    ours = series.refactor(RELEASES[version], inputs.source_series())
    assert codemod.refactor(RELEASES[version]) == ours


def test_ast_grep_gives_the_same_but_for_trailing_blanks(tmp_path: Path) -> None:
    ours = series.refactor(RELEASES["0.23.0"], inputs.source_series())
    theirs, _ = ast_grep.refactor(RELEASES["0.23.0"], tmp_path)
    for path, data in theirs.items():
        lines = [line.rstrip() for line in data.decode().splitlines()]
        assert lines == ours[path].decode().splitlines()


def test_other_results_are_not_measured() -> None:
    with pytest.raises(ValueError, match="not what it should be"):
        inputs.check_digests(RELEASES["0.23.0"])


def test_an_unknown_benchmark_is_bad_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["speed"])
    assert "no benchmark speed" in capsys.readouterr().err


def test_a_failed_command_is_not_a_sample() -> None:
    with pytest.raises(timing.Failed, match="exit 3"):
        timing.process([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_process_is_charged_for_its_children() -> None:
    burn = "x = bytearray(50_000_000); sum(range(2_000_000))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    sample = timing.process([sys.executable, "-c", code])
    assert sample.peak > 50_000_000
    assert sample.cpu > 0


def test_contestants_take_turns() -> None:
    order: list[str] = []

    def contestant(name: str, wall: float) -> timing.Sample:
        order.append(name)
        return timing.Sample(wall, 1.0)

    samples = timing.interleave(
        {"a": lambda: contestant("a", 2.0), "b": lambda: contestant("b", 3.0)},
        2,
        base="a",
    )
    assert order == ["a", "b", "a", "b", "b", "a"]
    assert samples.ratio("b", "wall") == 1.5
    assert samples.cells("b") == [
        "3000 (3000 to 3000)",
        "1000 (1000 to 1000)",
        "1.5 (1.5 to 1.5)",
        "1 (1 to 1)",
    ]


def test_a_table_is_markdown() -> None:
    table = Table("Title", ("tool", "ms"), [["git", "12"], ["x", "3"]], ["Note."])
    assert table.markdown() == (
        "### Title\n\n"
        "| tool | ms |\n| ---- | -: |\n| git  | 12 |\n| x    |  3 |\n\n- Note.\n"
    )


@pytest.mark.parametrize(("value", "word"), [(2.5, "met"), (2.51, "MISSED")])
def test_a_goal_says_whether_it_is_met(value: float, word: str) -> None:
    assert f"at most 2.5: {word}" in goal("ratio", value, 2.5)
