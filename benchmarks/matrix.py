"""The matrix over all releases, from an empty cache and from a full one.

Needs the package index: from an empty cache it reads the list of releases, and the
files of each release out of its wheel.
"""

from __future__ import annotations

import sys
import tempfile

from benchmarks.inputs import SERIES
from benchmarks.table import Table, goal
from benchmarks.timing import Samples, process

ROUNDS = 5
_COLD, _WARM = "empty cache", "full cache"


def measure(rounds: int) -> Table:
    """Runs the benchmark; the empty cache is measured once."""
    command = (sys.executable, "-m", "vllm_graft", "matrix", "--series", SERIES)
    with tempfile.TemporaryDirectory() as cache:
        env = {"VLLM_GRAFT_CACHE": cache}
        cold = process(command, env=env)
        warm = [process(command, env=env) for _ in range(rounds)]
    samples = Samples({_COLD: [cold], _WARM: warm}, _WARM)
    return Table(
        f"The matrix over all releases, {rounds} rounds from the full cache",
        ("a process", "wall ms", "CPU ms", "peak MB"),
        [
            [
                name,
                *samples.times(name),
                f"{samples.median(name, 'peak') / 1e6:.0f}",
            ]
            for name in (_COLD, _WARM)
        ],
        [
            goal("empty cache, wall", samples.median(_COLD, "wall"), 60, " s"),
            goal("full cache, wall", samples.median(_WARM, "wall"), 5, " s"),
        ],
        samples.raw(),
    )
