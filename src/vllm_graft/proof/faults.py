"""What a fault in a worker leads to, on the tree's own executors with stub workers.

    python -m vllm_graft.proof.faults [--output FILE] [--only FAULT]… [--step N]

It runs inside the environment that has vLLM; the tree under test is whatever that
imports. Each fault strikes an executor of its own, in a process of its own, at the
chosen step. The result is one JSON object: ``tree`` (how the runner behaves),
``records`` (see ``records.Record``), ``seconds``.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vllm_graft.proof import leftovers
from vllm_graft.proof.isolate import Ended, run_each
from vllm_graft.proof.records import ANSWERED, Case, Record, worth

if TYPE_CHECKING:
    from vllm_graft.proof.stub import Driver, Request

TIMEOUT: Final = 5  # seconds that an RPC may take
LIMIT: Final = 90  # seconds that a case may take
AT_ONCE: Final = 6  # most of the time they wait
_SETTLE: Final = 10  # seconds in which workers may end once told to

ENVIRONMENT: Final = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": str(TIMEOUT),
}


def _step(driver: Driver, request: Request) -> Any:
    return driver.step(request)


class Fault(NamedTuple):
    """How a fault is put in.

    Args:
        strike: Makes the call that meets it, and gives what the caller gets.
        executors: Those that can have it.
        again: Makes the next calls.
        usual: Whether it is put in unless asked for by name.
    """

    strike: Callable[[Driver, Request], Any]
    executors: Sequence[str] = ("uni", "mp")
    again: Callable[[Driver, Request], Any] = _step
    usual: bool = True


def _on_all_ranks(driver: Driver, request: Request) -> Any:
    return driver.all_ranks(request._replace(fault=request.fault and "call-raises"))


def _cancel(driver: Driver, request: Request) -> Any:
    future = driver.start_slow(request)
    future.cancel()
    return future.result()


def _drop(driver: Driver, request: Request) -> Any:
    from vllm_graft.proof.stub import answer  # noqa: PLC0415

    driver.start_slow(request)
    return answer(request)  # nobody asks for it


def _shut_down(driver: Driver, request: Request) -> Any:
    future = driver.start_slow(request)
    driver.executor.shutdown()
    return future.result()


FAULTS: Final[Mapping[str, Fault]] = {
    "call-raises": Fault(_step),
    "get-output-raises": Fault(_step),
    "unpicklable": Fault(_step),
    "large": Fault(_step),
    # In one process nothing is sent, and there is no other process to end.
    "handle-output-raises": Fault(_step, ("mp",)),
    # Nothing in vLLM is known to fail there. A tree that reports it answers twice.
    "send-fails-half-way": Fault(_step, ("mp",), usual=False),
    "overflow-not-sent": Fault(_step, ("mp",), usual=False),
    "nothing-sent": Fault(_step, ("mp",), usual=False),
    "set-device-raises": Fault(_step, ("mp",), usual=False),
    "worker-killed": Fault(_step, ("mp",)),
    "worker-stopped": Fault(_step, ("mp",)),
    "every-rank-raises": Fault(_on_all_ranks, ("mp",), _on_all_ranks),
    "future-cancelled": Fault(_cancel),
    "future-dropped": Fault(_drop),
    "shutdown-in-flight": Fault(_shut_down),
}


def cases(names: Sequence[str] = ()) -> list[Case]:
    """The usual faults, or those named, in each configuration that can have them."""
    return [
        Case(name, scheduling, executor)
        for name, fault in FAULTS.items()
        if (name in names if names else fault.usual)
        for executor in fault.executors
        for scheduling in ("sync", "async")
    ]


def outcome(call: Callable[[], Any], right: Callable[[Any], bool]) -> str:
    """What reached the caller; see ``records.Record.caller``."""
    try:
        value = call()
    except Exception as error:  # noqa: BLE001 - it is the result
        return f"{type(error).__name__}: {error}"[:200]
    if right(value):
        return ANSWERED
    tokens = getattr(value, "sampled_token_ids", None)
    what = type(value).__name__ if tokens is None else f"tokens {tokens}"
    return f"wrong answer: {what}"


def observe(case: Case, step: int) -> tuple[Record, list[str]]:
    """One record, as seen from inside, and the names of the executor's segments.

    Args:
        case: What to do, with which executor.
        step: The number of the call that the fault meets, from 1.
    """
    from vllm_graft.proof import stub  # noqa: PLC0415

    if case.fault == "set-device-raises":
        stub.break_threads()
    driver = stub.Driver(case.executor, case.scheduling == "async", TIMEOUT)
    segments = leftovers.segments_of(driver.queues)
    contexts = [queue.local_socket.context for queue in driver.queues]
    driver.queues.clear()
    caller, seconds = _strike(driver, case.fault, step)
    time.sleep(0.5)  # so that a death is known before the next call
    next_call = _go_on(driver, case.fault, step)
    goes_on = driver.alive()
    driver.executor.shutdown()
    session = os.getpid()
    processes = leftovers.settle(lambda: leftovers.in_session(session), _SETTLE)
    del driver
    # The traceback of a failed call keeps its queue in a reference cycle; collecting
    # that may end a context before its sockets, and block.
    for context in contexts:
        context.destroy(linger=0)
    gc.collect()
    left = leftovers.settle(lambda: leftovers.existing(segments), 2)
    record = Record(*case, caller, seconds, goes_on, next_call, processes, left)
    return record, segments


def _strike(driver: Driver, name: str, step: int) -> tuple[str, float]:
    """What the caller got at that step, or earlier if not an answer; seconds."""
    from vllm_graft.proof.stub import Request, is_answer  # noqa: PLC0415

    caller, seconds = ANSWERED, 0.0
    for number in range(1, step + 1):
        request = Request(number, name if number == step else "")
        call = FAULTS[name].strike if number == step else _step
        began = time.monotonic()
        caller = outcome(
            functools.partial(call, driver, request),
            functools.partial(is_answer, request=request),
        )
        seconds = round(time.monotonic() - began, 2)
        if caller != ANSWERED:
            break
    return caller, seconds


def _go_on(driver: Driver, name: str, step: int) -> str:
    """What the next call gives, or the one after it if that is wrong.

    A response too many or too few shows there at the latest.
    """
    from vllm_graft.proof.stub import Request, is_answer  # noqa: PLC0415

    found = []
    for request in (Request(step + 1), Request(step + 2)):
        found.append(
            outcome(
                functools.partial(FAULTS[name].again, driver, request),
                functools.partial(is_answer, request=request),
            )
        )
        if found[-1].startswith("TimeoutError"):
            break
    return min(found, key=worth)


def complete(case: Case, ended: Ended) -> Record:
    """The record, with what was left when its process had ended; cleans that up."""
    if ended.error is not None:
        return Record(*case, f"no outcome: {ended.error}", LIMIT, False, "", 0, 0)
    record: Record
    record, segments = ended.value
    left = leftovers.settle(lambda: leftovers.existing(segments), 5)
    leftovers.remove(segments)
    return record._replace(exit_processes=ended.left, exit_segments=left)


def run(names: Sequence[str], step: int) -> dict[str, Any]:
    """All records; see the module's own description."""
    import vllm  # noqa: PLC0415

    from vllm_graft.proof import stub  # noqa: PLC0415

    began = time.monotonic()
    stub.warm_up()
    stub.break_sending()
    todo = cases(names)
    jobs = [functools.partial(observe, case, step) for case in todo]
    done = {}
    for ended in run_each(jobs, LIMIT, AT_ONCE):
        case = todo[ended.job]
        done[case] = complete(case, ended)
    return {
        "tree": {
            "vllm_version": vllm.__version__,
            "runner_resolves": stub.runner_resolves(),
        },
        "records": [done[case]._asdict() for case in todo],
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", action="append", choices=FAULTS, default=[])
    parser.add_argument("--step", type=int, default=3)
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    # Failures are what is asked for; their tracebacks would be thousands of lines.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
    with tempfile.TemporaryDirectory() as sockets:
        os.environ["VLLM_RPC_BASE_PATH"] = sockets
        result = json.dumps(run(arguments.only, arguments.step), indent=1)
    if arguments.output:
        arguments.output.write_text(result)
    else:
        sys.stdout.write(result + "\n")


if __name__ == "__main__":
    main()
