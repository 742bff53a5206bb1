"""Samples of work in this process or in a fresh one, taken in turns.

Machines are noisy. Contestants therefore take turns within a round, ratios are
taken within a round, and medians with quartiles are reported. CPU time is the
steadier figure; wall time is what a user waits.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# A small process of its own starts the command: the peak memory of a child counts
# that of the process it was forked from, and this one may be large.
_RUNNER = """
import json, os, sys, time
null = os.open(os.devnull, os.O_RDWR)
quiet = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
start = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - start
json.dump([os.waitstatus_to_exitcode(status), wall,
           usage.ru_utime + usage.ru_stime, usage.ru_maxrss], sys.stdout)
"""

# An installed package has its bytecode; let the first run of a checkout write it.
_WITH_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}

#: Bytes in a unit of ``ru_maxrss``.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Sample:
    """One measurement.

    Args:
        wall: Seconds that passed.
        cpu: Seconds of processor time, child processes included.
        peak: The most memory, in bytes, that a process of it held; 0 if unknown.
    """

    wall: float
    cpu: float
    peak: int = 0


class Failed(Exception):  # noqa: N818 - reads as what it says
    """A command of a benchmark exited with an error."""


def work(task: Callable[[], object]) -> Sample:
    """Runs a task in this process."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu)


def process(
    command: Iterable[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Sample:
    """Runs a command in a fresh process.

    Args:
        command: The program and its arguments.
        cwd: Where to run it.
        env: Variables to set besides the environment's own.

    Raises:
        Failed: It exited with an error.
    """
    words = [os.fspath(word) for word in command]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _RUNNER, *words],
        cwd=cwd,
        env={**os.environ, **_WITH_BYTECODE, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    code, wall, cpu, peak = json.loads(done.stdout) if done.stdout else (1, 0, 0, 0)
    if code:
        raise Failed(f"{' '.join(words)}: exit {code}\n{done.stderr}")
    return Sample(wall, cpu, peak * _RSS_UNIT)


@dataclass(frozen=True)
class Samples:
    """What the contestants took, round by round.

    Args:
        taken: By contestant, one sample for each round.
        base: The contestant that ratios refer to.
    """

    taken: Mapping[str, Sequence[Sample]]
    base: str

    def values(self, name: str, what: str) -> list[float]:
        """The figures ``wall``, ``cpu`` or ``peak`` of a contestant."""
        return [float(getattr(sample, what)) for sample in self.taken[name]]

    def median(self, name: str, what: str) -> float:
        """The median of a contestant's figures."""
        return statistics.median(self.values(name, what))

    def ratios(self, name: str, what: str) -> list[float]:
        """A contestant's figures over those of the base in the same round."""
        pairs = zip(self.values(name, what), self.values(self.base, what), strict=True)
        return [mine / theirs for mine, theirs in pairs]

    def ratio(self, name: str, what: str) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios(name, what))

    def times(self, name: str) -> list[str]:
        """A contestant's wall and CPU time in milliseconds, as cells."""
        return [
            spread([1e3 * v for v in self.values(name, what)])
            for what in ("wall", "cpu")
        ]

    def cells(self, name: str) -> list[str]:
        """Its times, and the ratios of both."""
        return self.times(name) + [
            "1" if name == self.base else spread(self.ratios(name, what))
            for what in ("wall", "cpu")
        ]

    def raw(self) -> dict[str, Any]:
        """Every sample, for ``--json``."""
        return {name: [asdict(s) for s in taken] for name, taken in self.taken.items()}


def interleave(
    contestants: Mapping[str, Callable[[], Sample]],
    rounds: int,
    *,
    base: str,
) -> Samples:
    """Lets the contestants take turns.

    Args:
        contestants: Each takes one sample of itself.
        rounds: How many samples to take of each; of more than one, the first comes
            after a round that does not count.
        base: The contestant that ratios refer to.
    """
    if rounds > 1:
        for take in contestants.values():
            take()
    taken: dict[str, list[Sample]] = {name: [] for name in contestants}
    for number in range(rounds):
        # In turn forwards and backwards, so that nobody always comes after the same.
        order = list(contestants)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            taken[name].append(contestants[name]())
    return Samples(taken, base)


def spread(values: Sequence[float]) -> str:
    """The median, and the quartiles in brackets."""
    middle = _three(statistics.median(values))
    if len(values) < 2:
        return middle
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle} ({_three(low)} to {_three(high)})"


def _three(value: float) -> str:
    """Three significant digits, never in exponent form."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
