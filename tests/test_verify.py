"""Tests of verify.py and what it is made of, on a stand-in for the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engines import stand_in
from miniature import AFTER, World
from running import Run
from vllm_graft.proof.configurations import configurations
from vllm_graft.run import NotRunnableError
from vllm_graft.verify import jobs as verify_jobs
from vllm_graft.verify import run as verify_run
from vllm_graft.verify import verification as verify_module
from vllm_graft.verify.results import Verification
from vllm_graft.verify.verification import Options, verify

Verify = Callable[..., Verification]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    # Named as the series that makes the runner return unresolved outputs.
    world = World(tmp_path / "world", monkeypatch)
    named = world.series.rename(world.folder / "mrv2-async-output")
    world.series = named
    engine = stand_in(world)
    monkeypatch.setattr(verify_module, "find_engine", lambda *_: engine)
    monkeypatch.setattr(verify_module, "_slots", lambda _: 6)
    monkeypatch.setattr(verify_run, "_SETTLE", 0.5)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return world


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Verify:
    def run(fault: str = "", *, quick: bool = True) -> Verification:
        monkeypatch.setenv("ENGINE_FAULT", fault)
        return verify(Options(world.root, [str(world.series)], quick=quick))

    return run


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("vllm-graft-verify-*")]


def test_everything_holds_where_nothing_differs(run: Verify, tmp_path: Path) -> None:
    done = run()
    assert done.holds, done.broken
    assert {p.group for p in done.properties} == {
        "results",
        "asynchrony",
        "contract",
        "faults",
        "clean",
    }
    assert left(tmp_path) == []


def test_the_long_run_looks_at_everything(run: Verify) -> None:
    done = run(quick=False)
    assert done.holds, done.broken
    named = {"determinism", "held", "stress", "tests"}
    assert named < {p.group for p in done.properties}
    runs = {p.name.partition(":")[0] for p in done.properties if p.group == "results"}
    for part in ("tensor2", "pipeline2", "eagle-mp", "generate-uni", "embed-mp"):
        assert {f"{part}{end}" for end in ("-sync", "-async")} <= {
            one.replace("2-mp", "2") for one in runs
        }


@pytest.mark.parametrize(
    ("fault", "group", "said"),
    [
        ("differ", "results", "logprobs[0].tokens[1]: base 'a', grafted 'b'"),
        ("disorder", "asynchrony", "logprobs: outputs were resolved out of order"),
        ("resolve", "contract", "returned ModelRunnerOutput"),
        ("worse", "faults", "grafted is worse"),
        ("leave", "clean", "base quick: "),
    ],
)
def test_what_does_not_hold_is_named(
    run: Verify, fault: str, group: str, said: str, tmp_path: Path
) -> None:
    done = run(fault)
    assert not done.holds
    assert {p.group for p in done.broken} == {group}
    assert said in done.broken[0].detail
    assert [p.verdict for p in done.broken] == ["fails"] * len(done.broken)
    (folder,) = left(tmp_path)
    assert folder in done.notes[0]


def test_what_does_not_hold_is_named_in_the_long_run(
    run: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    uni = [c for c in configurations("cpu") if c["executor"] == "uni"]
    monkeypatch.setattr(verify_jobs, "configurations", lambda _: uni)
    done = run("stray, red", quick=False)
    assert [(p.group, p.detail) for p in done.broken] == [
        ("stress", "9 of 9 answers right, 1 responses that nobody waits for"),
        ("tests", "0 passed, 1 failed: test_word"),
    ]


def test_an_engine_that_fails_is_an_error_and_no_verdict(run: Verify) -> None:
    done = run("crash")
    broken = [p for p in done.broken if p.group == "results"]
    assert broken
    assert {p.verdict for p in broken} == {"error"}
    assert "grafted: ended with 3: builtins.RuntimeError: no memory" in broken[0].detail


def test_where_the_tree_has_the_series_base_is_the_reverse(
    world: World, run: Verify
) -> None:
    world.write(AFTER)
    done = run("differ")
    assert done.carried
    assert done.sides == ("mrv2-async-output taken out in memory", "the tree as it is")
    assert "base 'a', grafted 'b'" in done.broken[0].detail
    assert world.files() == AFTER


def test_a_tree_on_which_neither_can_be_had_is_refused(
    world: World, run: Verify, tmp_path: Path
) -> None:
    world.write({"vllm/number.py": b"def number():\n    return 3\n"})
    with pytest.raises(NotRunnableError):
        run()
    assert left(tmp_path) == []


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_refusal_comes_with_the_status(
    world: World, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    world.write({"vllm/number.py": b"def number():\n    return 3\n"})
    refused = Run(capsys, "verify", world.root, "--series", world.series, *more)
    assert refused.code == 1
    assert "the series do not apply" in refused.err
    if more:
        assert refused.json("status")["series"][0]["verdict"] == "conflict"
    else:
        assert "conflict" in refused.err
        assert refused.out == ""


def test_progress_reaches_the_end(world: World) -> None:
    seen: list[tuple[int, int, str]] = []
    options = Options(world.root, [str(world.series)], quick=True)
    verify(options, lambda *step: seen.append(step))
    counts = [done for done, _, _ in seen]
    assert counts == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]
    assert any(line.startswith("grafted generate-uni-sync: ") for *_, line in seen)
