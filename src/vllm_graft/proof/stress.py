"""Many calls of a real MultiprocExecutor, some of which fail: none lost, none doubled.

    python -m vllm_graft.proof.stress [--calls N] [--seed N] [--output FILE]
        [--scheduling sync|async]… [--also FAULT]…
        [--also-async FAULT]…

Blocking and non-blocking calls are mixed, some answered by one rank and some by all,
with several futures outstanding and asked for out of order. Every answer, an error
too, carries the number of its call, the rank, and how many calls that worker had run
before. It must be the number of the call again: each ran once, and in order. At the
end no response may be left in any queue.

Only faults that leave the worker of any tree alive are put in; with ``--also``, one
more in synchronous mode, with ``--also-async`` in asynchronous.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vllm_graft.proof.isolate import run_each

if TYPE_CHECKING:
    from vllm_graft.proof.stub import Driver

TIMEOUT: Final = 20  # seconds that one RPC may take
LIMIT: Final = 300  # seconds for all of them
OUTSTANDING: Final = 6  # a queue has 10 chunks; a full one would block both sides
SURVIVED: Final = {
    "sync": ("call-raises", "get-output-raises"),
    # Elsewhere than in the call, a failure ends the thread that sends the outputs.
    "async": ("call-raises",),
}
_FAULTS: Final = 0.1  # how many calls fail
_LARGE: Final = 0.003  # how many are larger than a chunk
_SHOWN: Final = 10  # how many wrong answers are reported in full


class Call(NamedTuple):
    """One call.

    Args:
        number: Which one, from 0.
        fault: What goes wrong, ``large``, ``plain`` (nothing to resolve) or nothing.
        rank: The one that answers, or None for all.
        non_block: Whether a future is asked for.
    """

    number: int
    fault: str
    rank: int | None
    non_block: bool


def plan(calls: int, seed: int, faults: Sequence[str], ranks: int) -> Iterator[Call]:
    """The calls, the same ones for the same arguments."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for number in range(calls):
        lot = chance.random()
        fault = chance.choice(["", "", "", "plain"])
        if lot < _FAULTS:
            fault = chance.choice(faults)
        elif lot < _FAULTS + _LARGE:
            fault = "large"
        rank = chance.choice([*range(ranks), None])
        yield Call(number, fault, rank, chance.random() < 0.5)


def expected(call: Call, ranks: int, faults: Sequence[str]) -> Any:
    """The answer, or the error's part that names the call.

    Where all ranks answer, only the last one fails: an executor stops reading at the
    first failure, and would find the others' answers when it reads the next.
    """
    if call.fault in faults:
        rank = ranks - 1 if call.rank is None else call.rank
        return f"call {call.number} rank {rank} was {call.number}"
    answers = [(call.number, rank, call.number) for rank in range(ranks)]
    return answers if call.rank is None else answers[call.rank]


class Tally:
    """Compares answers with what is expected of them."""

    def __init__(self, ranks: int, faults: Sequence[str]) -> None:
        self.ranks = ranks
        self.faults = faults
        self.right: Counter[str] = Counter()
        self.wrong: list[str] = []

    def take(self, call: Call, answer: Any) -> None:
        """Count an answer, or the exception that came instead."""
        wanted = expected(call, self.ranks, self.faults)
        if isinstance(answer, Exception):
            fits = isinstance(wanted, str) and wanted in str(answer)
        else:
            fits = answer == wanted
        if fits:
            self.right[call.fault or "resolved"] += 1
        else:
            what = f"{type(answer).__name__}: {answer}"
            self.wrong.append(f"{call}: expected {wanted!r}, got {what[:200]}")


def drive(driver: Driver, todo: Iterator[Call], tally: Tally, seed: int) -> None:
    """Make the calls; stops at the first wrong answer, since all others follow."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    waiting: list[tuple[Call, Any]] = []
    for call in todo:
        request = functools.partial(
            driver.executor.collective_rpc,
            "stress",
            TIMEOUT,
            (call.number, call.fault, call.rank),
            non_block=call.non_block,
            unique_reply_rank=call.rank,
        )
        if call.non_block:
            waiting.append((call, request()))
        else:
            tally.take(call, _caught(request))
        while len(waiting) > OUTSTANDING or (waiting and chance.random() < 0.5):
            asked, future = waiting.pop(chance.randrange(len(waiting)))
            tally.take(asked, _caught(future.result))
        if tally.wrong:
            return
    for asked, future in waiting:
        tally.take(asked, _caught(future.result))


def _caught(call: Any) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - it is the answer
        return error


def strays(driver: Driver) -> int:
    """How many responses are left that nobody waits for."""
    found = 0
    for queue in driver.executor.response_mqs:
        with suppress(TimeoutError):
            while True:
                queue.dequeue(timeout=0.3)
                found += 1
    return found


def stress(scheduling: str, calls: int, seed: int, faults: Sequence[str]) -> Any:
    """The summary of one run; see the module's own description."""
    from vllm_graft.proof import stub  # noqa: PLC0415

    driver = stub.Driver("mp", scheduling == "async", TIMEOUT)
    tally = Tally(stub.RANKS, faults)
    todo = plan(calls, seed, faults, stub.RANKS)
    began = time.monotonic()
    drive(driver, todo, tally, seed)
    seconds = time.monotonic() - began
    alive = driver.alive()
    left = strays(driver) if alive else 0
    driver.executor.shutdown()
    right = sum(tally.right.values())
    return {
        "scheduling": scheduling,
        "calls": calls,
        "right": right,
        "by_kind": dict(sorted(tally.right.items())),
        "wrong": tally.wrong[:_SHOWN],
        "strays": left,
        "alive": alive,
        "seconds": round(seconds, 1),
        "ok": right == calls and not tally.wrong and not left and alive,
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The summaries of all that is asked for, one after another."""
    from vllm_graft.proof import stub  # noqa: PLC0415

    stub.warm_up()
    modes = arguments.scheduling or list(SURVIVED)
    also = {"sync": arguments.also, "async": arguments.also_async}
    jobs = [
        functools.partial(
            stress,
            mode,
            arguments.calls,
            arguments.seed,
            [*SURVIVED[mode], *also[mode]],
        )
        for mode in modes
    ]
    runs = [
        e.value or {"scheduling": modes[e.job], "error": e.error, "ok": False}
        for e in run_each(jobs, LIMIT, at_once=1)
    ]
    resolves = stub.runner_resolves()
    return {"tree": {"runner_resolves": resolves}, "seed": arguments.seed, "runs": runs}


def main() -> int:
    """The exit code: 0 if every answer was right."""
    parser = argparse.ArgumentParser(prog="stress")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    modes = list(SURVIVED)
    parser.add_argument("--scheduling", action="append", choices=modes, default=[])
    for name, faults in (
        ("--also", ["unpicklable"]),
        ("--also-async", ["get-output-raises", "unpicklable"]),
    ):
        parser.add_argument(name, action="append", choices=faults, default=[])
    arguments = parser.parse_args()
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
    with tempfile.TemporaryDirectory() as sockets:
        os.environ["VLLM_RPC_BASE_PATH"] = sockets
        result = run(arguments)
    text = json.dumps(result, indent=1)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text + "\n")
    return 0 if all(one["ok"] for one in result["runs"]) else 1


if __name__ == "__main__":
    sys.exit(main())
