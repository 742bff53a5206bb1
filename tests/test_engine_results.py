"""Base against grafted on real engines, in every combination; and without each edit.

What `vllm-graft verify` runs and how it judges, a test a property.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest

from mutations import SERIES, sparing
from vllm_graft.verify.jobs import SIDES, Maker, Scope, groups
from vllm_graft.verify.judge import (
    by_name,
    clean_property,
    engine_properties,
    held_values,
)
from vllm_graft.verify.results import Property
from vllm_graft.verify.run import Done, run_jobs
from vllm_graft.verify.sides import Engine, find_engine, make_sides

# The first test waits for all engines: minutes, or more where others run too.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

CONFIGS = {
    one["name"]: one for some in groups(Scope(False, "cpu")).values() for one in some
}
ASYNCHRONOUS = [name for name, one in CONFIGS.items() if one["asynchronous"]]
HELD, *USUAL = sorted(CONFIGS, key=lambda name: not name.startswith("held"))

# The methods that the runner's patch edits, and where it shows that one is spared.
WITHOUT = {"sample_tokens": "generate-uni-sync", "pool": "embed-uni-sync"}


class Found(NamedTuple):
    """What the engines left, and the properties by group and name."""

    done: dict[tuple[str, str], Done]
    properties: dict[tuple[str, str], Property]

    def check(self, group: str, name: str) -> None:
        """Fails unless the property holds."""
        found = self.properties[group, name]
        assert found.holds, found.detail


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine(os.environ.get("VLLM_GRAFT_ENGINE_PYTHON"), "auto")


@pytest.fixture(scope="module")
def found(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All engines, base and grafted, two processes at a time."""
    scratch = tmp_path_factory.mktemp("engines")
    scope = Scope(quick=False, device=engine.device)
    chosen = groups(scope)
    sides = make_sides(engine, None, [SERIES], scratch)
    jobs = [j for j in Maker(sides, scope, scratch).engines(chosen) if j.side in SIDES]
    done = run_jobs(jobs, 1 if engine.device == "cuda" else 2, scratch, print)
    results = by_name(done)
    properties = [clean_property(done)]
    for process, configs in chosen.items():
        properties += engine_properties(process, configs, results, contract=True)
    named = {one["name"]: one for one in chosen["uni"]}
    plain, held = named["generate-uni-sync"], named[HELD]
    properties += held_values(plain, held, results["uni", "grafted"])
    return Found(results, {(one.group, one.name): one for one in properties})


@pytest.mark.parametrize(
    ("config", "workload"),
    [(name, load) for name, one in CONFIGS.items() for load in one["workloads"]],
)
def test_base_and_grafted_give_the_same_bits(
    found: Found, config: str, workload: str
) -> None:
    found.check("results", f"{config}: {workload}")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("config", ASYNCHRONOUS)
def test_asynchronous_runs_are_asynchronous(
    found: Found, config: str, side: str
) -> None:
    found.check("asynchrony", f"{config}, {side}")


@pytest.mark.parametrize("config", USUAL)
def test_the_grafted_runner_returns_unresolved_outputs(
    found: Found, config: str
) -> None:
    found.check("contract", config)


@pytest.mark.parametrize("workload", CONFIGS[HELD]["workloads"])
def test_outputs_resolved_late_keep_their_values(found: Found, workload: str) -> None:
    found.check("held", f"{HELD}: {workload}")


def test_outputs_were_held_while_later_steps_ran(found: Found) -> None:
    found.check("held", f"{HELD}: how late")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "config", [name for name in CONFIGS if "preempt" in CONFIGS[name]["workloads"]]
)
def test_requests_were_preempted(found: Found, config: str, side: str) -> None:
    process = str(CONFIGS[config]["executor"])
    evidence = found.done[process, side].result[config]["evidence"]
    assert evidence["workloads"]["preempt"]["preemptions"] > 0


def test_nothing_outlives_the_engines(found: Found) -> None:
    found.check("clean", "processes")


@pytest.fixture(scope="module")
def without(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What grafted engines leave where the series spares a method, by its name."""
    scope = Scope(quick=False, device=engine.device)
    picked = [{**c, "workloads": c["workloads"][:1]} for c in groups(scope)["uni"]]
    chosen = {"uni": [one for one in picked if one["name"] in WITHOUT.values()]}
    jobs = []
    scratch = tmp_path_factory.mktemp("without")
    for method in WITHOUT:
        folder = scratch / method
        folder.mkdir()
        sides = make_sides(engine, None, [str(sparing(method, scratch))], folder)
        made = {j.side: j for j in Maker(sides, scope, folder).engines(chosen)}
        jobs.append(made["grafted"]._replace(name=method))
    done = run_jobs(jobs, 1 if engine.device == "cuda" else 2, scratch, print)
    assert [one.error for one in done] == [None, None]
    return {one.job.name: one.result for one in done}


@pytest.mark.parametrize("spared", WITHOUT)
def test_a_method_that_is_not_edited_resolves_its_output_itself(
    without: dict[str, dict[str, Any]], spared: str
) -> None:
    resolved = {}
    for config in WITHOUT.values():
        (seen,) = without[spared][config]["evidence"]["workloads"].values()
        (worker,) = seen["workers"]
        types = {one.split(":")[1] for one in worker["types"] if "execute" not in one}
        resolved[config] = types == {"ModelRunnerOutput"}
    assert resolved == {config: m == spared for m, config in WITHOUT.items()}
