"""The real Model Runner V2 behind Ray's executors, base and grafted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from clusters import SIDES, Side, on_both_sides
from vllm_graft.proof import ray_engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

WORKLOADS: Final = ["greedy", "logprobs"]
COMMON: Final[dict[str, Any]] = {"model": "llama", "workloads": WORKLOADS}
QUEUES: Final = {**COMMON, "name": "queues", "executor": "ray", "asynchronous": True}
GRAPH: Final = {
    **COMMON,
    "name": "graph",
    "executor": "ray-graph",
    "asynchronous": False,
}
# The runner's answers by configuration and side.
RETURNS: Final = {
    ("queues", "base"): "sample:AsyncOutput",
    ("queues", "grafted"): "sample:AsyncOutput",
    ("graph", "base"): "sample:ModelRunnerOutput",
    ("graph", "grafted"): "sample:AsyncOutput",
}
EXECUTORS: Final = {"queues": "RayExecutorV2", "graph": "RayDistributedExecutor"}
SCHEDULERS: Final = {"queues": "AsyncScheduler", "graph": "Scheduler"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Side]:
    folder: Path = tmp_path_factory.mktemp("ray")
    configs = folder / "configs.json"
    configs.write_text(json.dumps([QUEUES, GRAPH]))
    return on_both_sides(ray_engine, folder, configs)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_all_give_the_same_bits(sides: dict[str, Side], workload: str) -> None:
    results = {
        json.dumps(one["results"][workload], sort_keys=True)
        for side in SIDES
        for one in sides[side].found.values()
    }
    assert len(results) == 1


@pytest.mark.parametrize(("name", "side"), RETURNS)
def test_outputs_are_resolved_in_the_worker(
    sides: dict[str, Side], name: str, side: str
) -> None:
    evidence = sides[side].found[name]["evidence"]
    assert evidence["engine"]["executor"] == EXECUTORS[name]
    assert evidence["engine"]["scheduler"] == SCHEDULERS[name]
    (worker,) = evidence["workloads"]["greedy"]["workers"]
    assert worker["types"][RETURNS[name, side]] == worker["resolved"] > 0
    assert worker["in_order"]


@pytest.mark.parametrize("side", SIDES)
def test_nothing_is_left(sides: dict[str, Side], side: str) -> None:
    assert sides[side].left == []
