"""Run functions in forked processes, each with its descendants in a session."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from vllm_graft.proof import leftovers

_DESCENDANTS = 5  # seconds that they may take to end after their ancestor
_TRACKERS = 30  # and resource trackers, which then unlink what was left


class Ended(NamedTuple):
    """A process that has ended.

    Args:
        job: The number of its function in the list.
        value: What the function returned, or None where it did not return.
        error: Why it did not return, else None.
        left: How many of its descendants outlived it; they are killed by now.
    """

    job: int
    value: Any
    error: str | None
    left: int


class _Running(NamedTuple):
    job: int
    process: Any  # multiprocessing's own type differs from context to context
    reader: Connection
    deadline: float


def run_each(
    jobs: Sequence[Callable[[], Any]], limit: float, at_once: int
) -> Iterator[Ended]:
    """Run each function in a process of its own, in the order in which they end.

    They are forked, so that they share what is imported here already. Nothing here
    may have started a thread.

    Args:
        jobs: The functions; what they return must be small and picklable.
        limit: Seconds after which a process is killed with all its descendants.
        at_once: How many run at the same time.
    """
    waiting = list(enumerate(jobs))[::-1]
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(*waiting.pop(), limit))
            wait([one.process.sentinel for one in running], timeout=0.5)
            for one in list(running):
                late = time.monotonic() > one.deadline
                if late:
                    one.process.kill()
                    one.process.join()
                if not one.process.is_alive():
                    running.remove(one)
                    yield _end(one, late, limit)
    finally:
        for one in running:
            one.process.kill()
            one.process.join()
            _end(one, late=True, limit=limit)


def _start(job: int, function: Callable[[], Any], limit: float) -> _Running:
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_main, args=(function, writer, limit))
    process.start()
    writer.close()
    return _Running(job, process, reader, time.monotonic() + limit)


def _main(function: Callable[[], Any], writer: Connection, limit: float) -> None:
    leftovers.lead_session()
    # Should the parent be gone by then, nobody else ends this.
    signal.alarm(int(limit) + 30)
    writer.send(function())


def _end(one: _Running, late: bool, limit: float) -> Ended:
    error = None
    try:
        value = one.reader.recv() if one.reader.poll() else None
    except EOFError:
        value = None
    if late:
        error = f"not done after {limit:.0f} s"
    elif one.process.exitcode or value is None:
        error = f"ended with {one.process.exitcode}"
    one.reader.close()
    session = one.process.pid
    left = leftovers.settle(lambda: leftovers.in_session(session), _DESCENDANTS)
    for pid in leftovers.in_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    leftovers.settle(lambda: leftovers.in_session(session, trackers=True), _TRACKERS)
    return Ended(one.job, value, error, left)
