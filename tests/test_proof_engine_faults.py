"""What faults lead to for the client of a real engine, on base and with the series."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations import SERIES
from proving import prove
from vllm_graft.proof.records import ANSWERED, Case, Record, compare, read_records

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

FATAL = ("sample-raises", "get-output-raises", "worker-killed")
EXECUTORS = ("uni", "mp")
MODES = ("sync", "async")
CASES = [
    Case(fault, mode, executor)
    for fault in (*FATAL, "client-aborts")
    for executor in EXECUTORS
    for mode in MODES
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Record]]:
    folder: Path = tmp_path_factory.mktemp("engine-faults")
    return {
        name: read_records(
            prove("engine_faults", series=series, output=folder / f"{name}.json")
        )
        for name, series in (("base", None), ("grafted", SERIES))
    }


def each(results: dict[str, list[Record]], case: Case) -> list[Record]:
    found = [r for records in results.values() for r in records if r.case == case]
    assert len(found) == 2
    return found


def test_base_and_grafted_do_the_same(results: dict[str, list[Record]]) -> None:
    assert [record.case for record in results["base"]] == CASES
    assert compare(results["base"], results["grafted"]) == []


@pytest.mark.parametrize("case", [c for c in CASES if c.fault in FATAL], ids=str)
def test_a_fault_in_a_step_ends_the_engine_and_the_client_is_told(
    results: dict[str, list[Record]], case: Case
) -> None:
    for record in each(results, case):
        assert record.caller.startswith("EngineDeadError")
        assert record.next_call.startswith("EngineDeadError")
        assert not record.goes_on


@pytest.mark.parametrize("case", [c for c in CASES if c.fault not in FATAL], ids=str)
def test_an_abort_in_mid_stream_leaves_the_others_their_tokens(
    results: dict[str, list[Record]], case: Case
) -> None:
    for record in each(results, case):
        assert (record.caller, record.next_call) == (ANSWERED, ANSWERED)
        assert record.goes_on


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_left_of_the_engine(
    results: dict[str, list[Record]], case: Case
) -> None:
    for record in each(results, case):
        assert record.left_processes == 0
        assert (record.exit_processes, record.exit_segments) == (0, 0)
