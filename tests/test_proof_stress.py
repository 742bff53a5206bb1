"""10,000 calls with failures among them: exactly one answer each, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mutations import NAIVE, SERIES, mutated
from proving import prove
from vllm_graft.proof.stress import Tally, plan

pytestmark = pytest.mark.timeout(900)

CALLS = 10_000
HARDENING = "async-output-hardening"
KINDS = {"call-raises", "large", "plain", "resolved"}


class Tree(NamedTuple):
    """What is grafted, and which faults its workers survive by mode, besides KINDS."""

    series: tuple[str, ...] | None
    synchronous: tuple[str, ...] = ("get-output-raises",)
    asynchronous: tuple[str, ...] = ()


ALL = ("get-output-raises", "unpicklable")
TREES = {
    "base": Tree(None),
    SERIES: Tree((SERIES,), ALL),
    HARDENING: Tree((HARDENING,), ALL, ALL),
    "both": Tree((SERIES, HARDENING), ALL, ALL),
}


@pytest.fixture(scope="module", params=TREES.values(), ids=list(TREES))
def tree(request: pytest.FixtureRequest) -> Tree:
    found: Tree = request.param
    return found


@pytest.fixture(scope="module")
def runs(
    tree: Tree, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The summary of a run by its scheduling."""
    also = [f"--also-async={fault}" for fault in tree.asynchronous]
    if "unpicklable" in tree.synchronous:
        also.append("--also=unpicklable")
    output: Path = tmp_path_factory.mktemp("stress") / "result.json"
    result = prove("stress", *also, series=tree.series, output=output)
    return {run["scheduling"]: run for run in result["runs"]}


@pytest.mark.engine
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_every_call_is_answered_once_and_in_order(
    runs: dict[str, dict[str, Any]], mode: str
) -> None:
    run = runs[mode]
    assert run["wrong"] == []
    assert (run["right"], run["strays"], run["alive"]) == (CALLS, 0, True)


@pytest.mark.engine
def test_every_kind_of_call_was_made(
    runs: dict[str, dict[str, Any]], tree: Tree
) -> None:
    assert set(runs["sync"]["by_kind"]) == {*KINDS, *tree.synchronous}
    assert set(runs["async"]["by_kind"]) == {*KINDS, *tree.asynchronous}


@pytest.mark.engine
@pytest.mark.parametrize(
    ("part", "fault", "also"),
    [
        (NAIVE, "get-output-raises", ()),
        (None, "unpicklable", ("--also", "unpicklable")),
    ],
    ids=["without-the-move-into-the-try", "base-and-what-cannot-be-sent"],
)
def test_a_worker_that_ends_is_noticed(
    tmp_path: Path, part: str | None, fault: str, also: tuple[str, ...]
) -> None:
    series = mutated(part, tmp_path) if part else None
    words = ("--calls", "500", "--scheduling", "sync", *also)
    result = prove("stress", *words, series=series, output=tmp_path / "result.json")
    (run,) = result["runs"]
    assert not run["ok"]
    assert not run["alive"]
    assert f"fault='{fault}'" in run["wrong"][0]
    assert "cancelled" in run["wrong"][0]


FAULTS = ["call-raises"]


def test_the_plan_is_the_same_for_the_same_seed() -> None:
    plans = [list(plan(200, seed, FAULTS, 2)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize("off", [(0, 0, 1), (0, 1, 0)])
def test_an_answer_of_another_call_or_rank_is_wrong(off: tuple[int, int, int]) -> None:
    call = next(c for c in plan(200, 1, FAULTS, 2) if c.rank == 0 and c.fault == "")
    right = (call.number, 0, call.number)
    tally = Tally(2, FAULTS)
    tally.take(call, right)
    tally.take(call, tuple(a + b for a, b in zip(right, off, strict=True)))
    assert (sum(tally.right.values()), len(tally.wrong)) == (1, 1)


def test_the_error_of_another_call_is_wrong() -> None:
    call = next(c for c in plan(200, 1, FAULTS, 2) if c.fault == "call-raises")
    tally = Tally(2, FAULTS)
    tally.take(call, RuntimeError(f"call {call.number + 1} rank 0 was {call.number}"))
    assert tally.wrong
