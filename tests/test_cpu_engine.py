"""The real Model Runner V2 on the CPU: it runs, asynchronously, and strictly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.session import run_driver
from vllm_graft.proof.configurations import configurations

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

MODES = ("sync", "async")
# What each error does to the tokens, by scheduling mode. Synchronously an output is
# resolved before anything else runs, so that only a missing wait can show.
SHOWS = {
    ("no_wait", "sync"): True,
    ("no_wait", "async"): True,
    ("reused_buffer", "sync"): False,
    ("reused_buffer", "async"): True,
    ("freed_source", "sync"): False,
    ("freed_source", "async"): True,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every configuration of this file, run by one process."""
    held = [c for c in configurations("cpu") if c["name"] == "held-uni-async"]
    clean = [one(f"clean-{mode}", mode) for mode in MODES]
    again = [one("again", "async")]
    faulty = [
        one(f"{fault}-{mode}", mode, fault=("engine.faults", fault))
        for fault, mode in SHOWS
    ]
    folder: Path = tmp_path_factory.mktemp("engine")
    return run_driver([*clean, *again, *held, *faulty], folder)


def one(name: str, mode: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "model": "llama",
        "executor": "uni",
        "asynchronous": mode == "async",
        "workloads": ["greedy"] if more else ["greedy", "logprobs", "structured"],
        **more,
    }


def workers(done: dict[str, Any], name: str, workload: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]]
    found = done[name]["evidence"]["workloads"][workload]["workers"]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_runner_is_v2s_own(done: dict[str, Any], mode: str) -> None:
    (worker,) = workers(done, f"clean-{mode}", "greedy")
    assert worker["runner"] == "vllm.v1.worker.gpu.model_runner"


def test_both_modes_and_a_second_run_give_the_same_bits(done: dict[str, Any]) -> None:
    results = [done[n]["results"] for n in ("clean-sync", "clean-async", "again")]
    assert len({json.dumps(result, sort_keys=True) for result in results}) == 1


def test_grammars_were_followed(done: dict[str, Any]) -> None:
    choice, schema, expression, _ = done["clean-async"]["results"]["structured"]
    text = [x["outputs"][0]["text"] for x in (choice, schema, expression)]
    assert text[0].strip() in {"yes", "no"}
    assert isinstance(json.loads(text[1].replace(" ", ""))["name"], int)
    assert text[2].replace(" ", "").isdigit()


def test_asynchronous_scheduling_is_asynchronous(done: dict[str, Any]) -> None:
    assert done["clean-async"]["evidence"]["engine"] == {
        "batch_queue_size": 2,
        "executor": "UniProcExecutor",
        "scheduler": "AsyncScheduler",
    }
    (worker,) = workers(done, "clean-async", "greedy")
    assert worker["resolved"] == worker["resolved_late"] > 0


def test_synchronous_scheduling_is_not(done: dict[str, Any]) -> None:
    assert done["clean-sync"]["evidence"]["engine"]["scheduler"] == "Scheduler"
    (worker,) = workers(done, "clean-sync", "greedy")
    assert worker["resolved"] > 0
    assert worker["resolved_late"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_copies_landed_because_they_were_waited_for(
    done: dict[str, Any], mode: str
) -> None:
    (worker,) = workers(done, f"clean-{mode}", "logprobs")
    copies = worker["copies"]
    assert copies["waits that landed something"] > 0
    assert 0 < copies["copies landed"] <= copies["copies to the host"]
    assert "sources freed too early" not in copies
    assert "finished by limit" not in copies


def test_outputs_held_while_later_steps_run_keep_their_values(
    done: dict[str, Any],
) -> None:
    (worker,) = workers(done, "held-uni-async", "greedy")
    assert worker["steps_late_at_most"] >= 3
    assert worker["in_order"]
    expected = done["clean-sync"]["results"]["greedy"]
    assert done["held-uni-async"]["results"]["greedy"] == expected


@pytest.mark.parametrize(("fault", "mode"), SHOWS)
def test_an_ordering_error_shows(done: dict[str, Any], fault: str, mode: str) -> None:
    clean = done[f"clean-{mode}"]["results"]["greedy"]
    faulty = done[f"{fault}-{mode}"]["results"]["greedy"]
    assert (faulty != clean) == SHOWS[fault, mode]
