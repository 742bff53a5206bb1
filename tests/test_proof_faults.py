"""What faults lead to on base, with the series, and with parts of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mutations import NAIVE, SERIES, mutated
from proving import prove, prove_faults
from vllm_graft.proof.records import ANSWERED, Case, Record, compare

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

Records = dict[Case, Record]

FAULTS = {
    "call-raises": ("uni", "mp"),
    "get-output-raises": ("uni", "mp"),
    "unpicklable": ("uni", "mp"),
    "large": ("uni", "mp"),
    "handle-output-raises": ("mp",),
    "worker-killed": ("mp",),
    "worker-stopped": ("mp",),
    "every-rank-raises": ("mp",),
    "future-cancelled": ("uni", "mp"),
    "future-dropped": ("uni", "mp"),
    "shutdown-in-flight": ("uni", "mp"),
}
MODES = ("sync", "async")
CASES = [Case(f, mode, e) for f, es in FAULTS.items() for e in es for mode in MODES]
SYNC_GET_OUTPUT = Case("get-output-raises", "sync", "mp")
PARTS = ("uniproc", NAIVE)

# The records that differ from base to grafted.
EXPECTED = {
    # What handle_output raises, also because a response cannot be pickled, becomes
    # a response of its own, and the worker goes on. On base it ended the worker.
    Case("unpicklable", "sync", "mp"): "better",
    Case("handle-output-raises", "sync", "mp"): "better",
    Case("handle-output-raises", "async", "mp"): "better",
    # Unresolved until asked for, as in asynchronous mode; so it can be cancelled.
    Case("future-cancelled", "sync", "uni"): "other",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Records]:
    """The records on base, with the series, and of some faults with parts of it."""
    folder: Path = tmp_path_factory.mktemp("faults")
    parts = {part: mutated(part, folder) for part in PARTS}
    some = ("--only", "get-output-raises", "--only", "call-raises")
    late = ("--only", "send-fails-half-way")
    jobs = {
        "base": partial(prove, "faults", series=None),
        SERIES: partial(prove, "faults", series=SERIES),
        **{p: partial(prove, "faults", *some, series=parts[p]) for p in PARTS},
        "base-late": partial(prove, "faults", *late, series=None),
        "late": partial(prove, "faults", *late, series=SERIES),
    }
    return prove_faults(jobs, folder)


@pytest.fixture
def base(results: dict[str, Records]) -> Records:
    return results["base"]


@pytest.fixture
def grafted(results: dict[str, Records]) -> Records:
    return results[SERIES]


def differences(one: Records, other: Records) -> dict[Case, str]:
    found = compare(one.values(), other.values())
    return {difference.case: difference.direction for difference in found}


def test_every_fault_strikes_in_every_configuration(
    base: Records, grafted: Records
) -> None:
    assert list(base) == list(grafted) == CASES


def test_exactly_these_records_differ_and_none_is_worse(
    base: Records, grafted: Records
) -> None:
    assert differences(base, grafted) == EXPECTED


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_left_when_the_executor_has_ended(
    base: Records, grafted: Records, case: Case
) -> None:
    for record in (base[case], grafted[case]):
        assert record.left_processes == 0
        assert (record.exit_processes, record.exit_segments) == (0, 0)


@pytest.mark.parametrize("executor", ["uni", "mp"])
@pytest.mark.parametrize("fault", ["call-raises", "get-output-raises"])
def test_a_synchronous_error_reaches_the_caller_and_all_goes_on(
    grafted: Records, fault: str, executor: str
) -> None:
    record = grafted[Case(fault, "sync", executor)]
    method = "call" if fault == "call-raises" else "get_output"
    assert f"{method} of 3" in record.caller
    assert record.goes_on
    assert record.next_call == ANSWERED


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["uni", "mp"])
@pytest.mark.parametrize("fault", ["large", "future-dropped"])
def test_no_fault_at_all_to_the_caller(
    grafted: Records, fault: str, executor: str, mode: str
) -> None:
    record = grafted[Case(fault, mode, executor)]
    assert (record.caller, record.next_call) == (ANSWERED, ANSWERED)
    assert record.goes_on


@pytest.mark.parametrize("fault", ["get-output-raises", "unpicklable"])
def test_the_asynchronous_hang_is_the_same_on_base(
    base: Records, grafted: Records, fault: str
) -> None:
    """The thread that sends outputs ends; the caller waits out its timeout."""
    for record in (r[Case(fault, "async", "mp")] for r in (base, grafted)):
        assert record.caller.startswith("TimeoutError")
        assert record.next_call.startswith("TimeoutError")


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_worker_ends_the_executor_at_once(
    base: Records, grafted: Records, mode: str
) -> None:
    for record in (r[Case("worker-killed", mode, "mp")] for r in (base, grafted)):
        assert record.caller == "RuntimeError: cancelled"
        assert not record.goes_on


def test_without_the_move_into_the_try_a_failing_get_output_ends_the_worker(
    results: dict[str, Records],
) -> None:
    naive = results[NAIVE]
    record = naive[SYNC_GET_OUTPUT]
    assert record.caller == "RuntimeError: cancelled"
    assert not record.goes_on
    for whole in (results["base"], results[SERIES]):
        some = {case: whole[case] for case in naive}
        assert differences(some, naive) == {SYNC_GET_OUTPUT: "worse"}


def test_without_the_edit_of_the_uniproc_executor_a_blocking_caller_gets_no_answer(
    results: dict[str, Records],
) -> None:
    part = results["uniproc"]
    some = {case: results["base"][case] for case in part}
    assert differences(some, part) == {
        Case(fault, "sync", "uni"): "worse"
        for fault in ("call-raises", "get-output-raises")
    }
    assert part[Case("call-raises", "sync", "uni")].caller == "wrong answer: StubOutput"


def test_a_send_that_fails_after_it_was_made_is_answered_twice(
    results: dict[str, Records],
) -> None:
    """The one record that is worse: base ends where grafted reports the failure.

    The response had gone out already, so the report is a second one, and every
    later call gets the answer of the one before.
    """
    sync = Case("send-fails-half-way", "sync", "mp")
    assert differences(results["base-late"], results["late"]) == {sync: "worse"}
    assert not results["base-late"][sync].goes_on
    assert results["late"][sync].next_call == "wrong answer: tokens [[4]]"
