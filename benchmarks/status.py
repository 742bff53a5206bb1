"""What ``vllm-graft status`` costs on a whole release: memory, time, imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from benchmarks import inputs
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, interleave, process, spread

ROUNDS = 15
_MEGABYTE = 1e6
_OURS, _FLOOR = "vllm-graft status", "python -c pass"

# The modules that a command imports, by whose they are.
_COUNT = """
import contextlib, io, json, sys
before = set(sys.modules)
with contextlib.redirect_stdout(io.StringIO()):
    from vllm_graft.cli import main
    main(sys.argv[1:])
new = [name.partition(".")[0] for name in set(sys.modules) - before]
own = new.count("vllm_graft")
standard = sum(name in sys.stdlib_module_names for name in new)
print(json.dumps([own, standard, len(new) - own - standard]))
"""


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    tree = inputs.checkout()
    python = (sys.executable, "-c", "pass")
    words = ("status", "--series", inputs.SERIES, str(tree))
    status = (sys.executable, "-m", "vllm_graft", *words)
    contestants: dict[str, Callable[[], Sample]] = {
        _FLOOR: lambda: process(python),
        _OURS: lambda: process(status),
    }
    samples = interleave(contestants, rounds, base=_FLOOR)
    counted = subprocess.run(
        [sys.executable, "-c", _COUNT, *words],
        check=True,
        capture_output=True,
    )
    own, standard, others = json.loads(counted.stdout)
    imported = {_FLOOR: "", _OURS: f"{own} + {standard} + {others}"}
    peak = samples.median(_OURS, "peak") / _MEGABYTE
    return Table(
        f"Where the series stand on vLLM {inputs.VERSION}, {rounds} rounds",
        ("a process", "peak MB", "wall ms", "CPU ms", "modules"),
        [
            [
                name,
                spread([v / _MEGABYTE for v in samples.values(name, "peak")]),
                *samples.times(name),
                imported[name],
            ]
            for name in contestants
        ],
        [
            goal("peak memory", peak, 80, " MB"),
            "Modules imported: its own + the standard library's + others'.",
        ],
        {**samples.raw(), "modules": [own, standard, others]},
    )
