"""What crosses Ray's boundaries, base and grafted, on local clusters of real Ray."""

from __future__ import annotations

from typing import Any, Final

import pytest

from clusters import SIDES, Side, on_both_sides
from vllm_graft.proof import ray_path

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

MODES: Final = ("sync", "async")
UNPICKLABLE: Final = {"error": "TypeError: cannot pickle 'Event' object"}
# What a float where a number of tokens belongs leads to, once it is resolved.
UNRESOLVABLE: Final = "slice indices must be integers"
PLAIN, ASYNC = "ModelRunnerOutput", "AsyncOutput"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Side]:
    return on_both_sides(ray_path, tmp_path_factory.mktemp("ray"))


def output(number: int) -> dict[str, Any]:
    """The right answer to a step: a plain output with everything in it."""
    return {
        "type": PLAIN,
        "requests": ["0"],
        "tokens": [[number]],
        "logprobs": [[[number]], [[-0.25]], [1]],
        "pooled": None,
    }


def pooled(number: int) -> dict[str, Any]:
    empty = {**output(number), "tokens": [], "logprobs": None}
    return {**empty, "pooled": [[float(number)]]}


@pytest.mark.parametrize("side", SIDES)
def test_a_worker_sends_plain_outputs(sides: dict[str, Side], side: str) -> None:
    worker = sides[side].found["worker"]
    assert worker["sample"] == output(1)
    assert worker["pooled by execute_model"] == pooled(5)


@pytest.mark.parametrize("side", SIDES)
def test_an_unresolved_output_could_not_be_sent(
    sides: dict[str, Side], side: str
) -> None:
    assert sides[side].found["worker"]["unresolved"] == UNPICKLABLE


@pytest.mark.parametrize("side", SIDES)
def test_a_worker_goes_on_after_errors(sides: dict[str, Side], side: str) -> None:
    worker = sides[side].found["worker"]
    assert worker["call raises"] == {"error": "ValueError: sample of 2"}
    assert UNRESOLVABLE in worker["get_output raises"]["error"]
    assert worker["after them"] == output(4)


@pytest.mark.parametrize("side", SIDES)
def test_the_graph_gives_plain_outputs_in_order(
    sides: dict[str, Side], side: str
) -> None:
    graph = sides[side].found["graph"]
    assert graph["blocking"] == output(1)
    assert graph["two in flight"] == [None, output(2), None, output(3)]


@pytest.mark.parametrize("side", SIDES)
def test_the_graph_goes_on_after_errors(sides: dict[str, Side], side: str) -> None:
    graph = sides[side].found["graph"]
    assert graph["call raises"] == {"error": "ValueError: sample of 4"}
    assert graph["after it"] == output(5)
    assert UNRESOLVABLE in graph["get_output raises"]["error"]
    assert graph["after that"] == output(7)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("side", SIDES)
def test_the_queues_give_plain_outputs_in_order(
    sides: dict[str, Side], side: str, mode: str
) -> None:
    found, ranks = sides[side].found[mode], ray_path.RANKS[mode]
    assert found["blocking"] == output(1)
    assert found["two in flight"] == [None, output(2), None, output(3)]
    assert found["all ranks"] == [output(8)] * ranks
    assert found["all ranks, later"] == [output(9)] * ranks
    assert found["pooled"] == pooled(5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("side", SIDES)
def test_the_queues_go_on_after_a_failed_call(
    sides: dict[str, Side], side: str, mode: str
) -> None:
    found = sides[side].found[mode]
    assert "RuntimeError: Worker failed with error 'sample of 4'" in str(
        found["call raises"]
    )
    assert found["after it"] == output(5)


@pytest.mark.parametrize("side", SIDES)
def test_a_synchronous_worker_survives_what_cannot_be_resolved(
    sides: dict[str, Side], side: str
) -> None:
    found = sides[side].found["sync"]
    assert UNRESOLVABLE in found["get_output raises"]["error"]
    assert found["after that"] == output(7)


@pytest.mark.parametrize("side", SIDES)
def test_an_asynchronous_one_does_not(sides: dict[str, Side], side: str) -> None:
    """The release's own behaviour, which the series leaves as it is."""
    found = sides[side].found["async"]
    assert found["get_output raises"]["error"].startswith("TimeoutError")
    assert found["after that"]["error"].startswith("TimeoutError")


def test_the_grafted_runner_leaves_resolving_to_others(sides: dict[str, Side]) -> None:
    for side, kind in zip(SIDES, (PLAIN, ASYNC), strict=True):
        found = sides[side].found
        assert found["worker"]["report"]["returned"] == [kind]
        assert {*found["graph"]["report"][0]["returned"]} == {kind}
        assert {*found["sync"]["report"][0]["returned"]} == {kind}
        assert {*found["async"]["report"][0]["returned"]} == {ASYNC}


def test_only_the_rank_that_answers_resolves(sides: dict[str, Side]) -> None:
    """Six steps; in two of them every rank answers, in four the first one."""
    resolved = {
        side: [len(r["resolved in"]) for r in sides[side].found["sync"]["report"]]
        for side in SIDES
    }
    assert resolved == {"base": [6, 6], "grafted": [6, 2]}


def test_what_else_differs(sides: dict[str, Side]) -> None:
    """A plain RPC of the worker has nobody to resolve; no executor makes it."""
    base, grafted = (dict(sides[side].found["worker"]) for side in SIDES)
    assert base.pop("sample_tokens by RPC") == output(8)
    assert grafted.pop("sample_tokens by RPC") == UNPICKLABLE
    for found in (base, grafted):
        del found["report"]
    assert base == grafted


@pytest.mark.parametrize("part", ["graph", *MODES])
def test_nothing_else_differs(sides: dict[str, Side], part: str) -> None:
    base, grafted = (dict(sides[side].found[part]) for side in SIDES)
    for found in (base, grafted):
        del found["report"]
    assert base == grafted


@pytest.mark.parametrize("side", SIDES)
def test_a_pooling_model_is_refused_by_execute_model_ray(
    sides: dict[str, Side], side: str
) -> None:
    """It calls sample_tokens() where the runner wants pool(); so the release."""
    error = sides[side].found["worker"]["pooling model"]["error"]
    assert error.startswith("AssertionError")


@pytest.mark.parametrize("side", SIDES)
def test_it_stays_on_this_machine_and_leaves_nothing(
    sides: dict[str, Side], side: str
) -> None:
    assert {*sides[side].found["addresses"]} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert sides[side].found["left"] == 0
    assert sides[side].left == []
    assert [name for name in sides[side].home if "ray" in name] == []
