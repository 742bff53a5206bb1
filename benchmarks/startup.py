"""What ``vllm-graft run`` adds to the start of a process, and of its children."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from benchmarks import inputs
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, interleave, process
from vllm_graft.run import bundle, environment
from vllm_graft.tree import DirTree

ROUNDS = 21
_PLAIN, _CHILD, _RUN = "python -c pass", "a child of run", "vllm-graft run"


def measure(rounds: int) -> Table:
    """Runs the benchmark; the plan is in the cache, as it is after a first run."""
    tree = inputs.checkout()
    python = (sys.executable, "-c", "pass")
    words = (sys.executable, "-m", "vllm_graft", "run", "--series", inputs.SERIES)
    run = (*words, "--tree", tree, "--", *python)
    child = environment(os.environ, bundle(DirTree(tree), [inputs.SERIES], []), tree)
    contestants: dict[str, Callable[[], Sample]] = {
        _PLAIN: lambda: process(python),
        _CHILD: lambda: process(python, env=child),
        _RUN: lambda: process(run),
    }
    samples = interleave(contestants, rounds, base=_PLAIN)
    added = {
        name: 1e3 * (samples.median(name, "wall") - samples.median(_PLAIN, "wall"))
        for name in (_CHILD, _RUN)
    }
    return Table(
        f"The start of a process, {rounds} rounds",
        ("a process", "wall ms", "CPU ms"),
        [[name, *samples.times(name)] for name in contestants],
        [goal(f"{name} adds", value, 150, " ms") for name, value in added.items()],
        samples.raw(),
    )
