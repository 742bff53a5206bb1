"""What faults lead to with the hardening series, against base and the refactor."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from proving import prove, prove_faults
from vllm_graft.proof.records import ANSWERED, Case, Record, compare

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

Records = dict[Case, Record]

REFACTOR = "mrv2-async-output"
HARDENING = "async-output-hardening"
TREES = {
    "base": None,
    "refactor": (REFACTOR,),
    "hardened": (HARDENING,),
    "both": (REFACTOR, HARDENING),
}
HARDENED = pytest.mark.parametrize("tree", ["hardened", "both"])
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
# What is answered by a failure, and what that says.
REPORTED = {
    "call-raises": "ValueError: call of 3",
    "get-output-raises": "ValueError: get_output of 3, caused by OSError: the copy",
    "unpicklable": "TypeError: cannot pickle",
    "overflow-not-sent": "OSError: broken",
}
# What ends the worker.
FATAL = ("send-fails-half-way", "nothing-sent")
SPREAD = "set-device-raises"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Records]:
    folder: Path = tmp_path_factory.mktemp("hardening")
    faults = [f"--only={fault}" for fault in (*REPORTED, *FATAL, SPREAD)]
    jobs = {
        name: partial(prove, "faults", *faults, series=TREES[name]) for name in TREES
    }
    return prove_faults(jobs, folder)


def waited(records: Records) -> set[tuple[str, str]]:
    """The faults whose caller, or the next one, waited for the whole timeout."""
    return {
        (case.fault, case.scheduling)
        for case, record in records.items()
        if "TimeoutError" in record.caller + record.next_call
    }


def test_without_the_series_callers_wait_for_the_timeout(
    results: dict[str, Records],
) -> None:
    faults = {*REPORTED, *FATAL, SPREAD} - {"call-raises"}
    hangs = {(fault, "async") for fault in faults} | {("overflow-not-sent", "sync")}
    assert waited(results["base"]) == hangs
    assert waited(results["refactor"]) == hangs


@HARDENED
def test_with_it_nobody_waits(results: dict[str, Records], tree: str) -> None:
    assert waited(results[tree]) == set()


@HARDENED
@MODES
@pytest.mark.parametrize("fault", REPORTED)
def test_the_caller_is_told_the_cause_and_all_goes_on(
    results: dict[str, Records], tree: str, mode: str, fault: str
) -> None:
    record = results[tree][Case(fault, mode, "mp")]
    assert REPORTED[fault] in record.caller
    assert record.goes_on
    assert record.next_call == ANSWERED


@HARDENED
@MODES
@pytest.mark.parametrize("fault", FATAL)
def test_the_engine_fails_where_a_response_may_be_out_or_none_can_be(
    results: dict[str, Records], tree: str, mode: str, fault: str
) -> None:
    record = results[tree][Case(fault, mode, "mp")]
    assert record.caller in (ANSWERED, "RuntimeError: cancelled")
    assert not record.goes_on
    # What it says depends on how far the executor's end has come.
    assert record.next_call.startswith(("RuntimeError: ", "AssertionError: "))


@HARDENED
def test_without_a_device_each_request_is_told_so(
    results: dict[str, Records], tree: str
) -> None:
    record = results[tree][Case(SPREAD, "async", "mp")]
    for said in (record.caller, record.next_call):
        assert "RuntimeError: set_device of None" in said
    assert record.goes_on
    assert results[tree][Case(SPREAD, "sync", "mp")].caller == ANSWERED


@pytest.mark.parametrize(
    ("base", "tree"), [("base", "hardened"), ("refactor", "both"), ("base", "both")]
)
def test_no_record_is_worse(results: dict[str, Records], base: str, tree: str) -> None:
    found = compare(results[base].values(), results[tree].values())
    assert found
    assert [str(d) for d in found if d.direction == "worse"] == []


@pytest.mark.parametrize("tree", TREES)
def test_nothing_is_left_when_the_executor_has_ended(
    results: dict[str, Records], tree: str
) -> None:
    for record in results[tree].values():
        assert record.left_processes == 0
        assert (record.exit_processes, record.exit_segments) == (0, 0)
