"""What ``vllm-graft audit`` costs on all of vLLM and on a plugin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import inputs
from benchmarks.plugins import released
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, interleave, process, spread
from vllm_graft.index.client import Index

ROUNDS = 9
_MEGABYTE = 1e6
_PLUGIN = ("vllm-ascend", "vllm_ascend-0.23.0.post1.tar.gz", "a3b9f4a5dd7aa50c")
_PARSE = "ast.parse of every file"

# What any tool pays that parses all there is.
_PARSE_ALL = """
import ast, pathlib, sys, warnings
warnings.simplefilter("ignore")
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    ast.parse(path.read_bytes())
"""
# Findings are no failure here.
_AUDIT = """
import sys
from vllm_graft.__main__ import main
sys.exit(main() == 2)
"""


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    vllm = inputs.checkout()
    with Index() as index:
        plugin = released(index, *_PLUGIN)
    whole = f"audit of vLLM {inputs.VERSION}"
    parse = (sys.executable, "-c", _PARSE_ALL, vllm / "vllm")
    contestants: dict[str, Callable[[], Sample]] = {
        _PARSE: lambda: process(parse),
        whole: lambda: _audit(vllm / "vllm", vllm),
    }
    names = {_PARSE: vllm / "vllm", whole: vllm / "vllm"}
    if plugin is not None:
        name = f"audit of {_PLUGIN[0]}"
        names[name] = plugin / "vllm_ascend"
        contestants[name] = lambda: _audit(names[name], vllm)
    samples = interleave(contestants, rounds, base=_PARSE)
    notes = [
        goal("all of vLLM", samples.median(whole, "wall"), 2, " s"),
        goal("peak memory", samples.median(whole, "peak") / _MEGABYTE, 300, " MB"),
    ]
    if plugin is not None:
        notes.append(goal("a plugin", samples.median(name, "wall"), 1, " s"))
    return Table(
        f"Code that the series break, {rounds} rounds",
        (
            "a process",
            "files",
            "peak MB",
            "wall ms",
            "CPU ms",
            "wall / parse",
            "CPU / parse",
        ),
        [
            [
                name,
                str(sum(1 for _ in path.rglob("*.py"))),
                spread([v / _MEGABYTE for v in samples.values(name, "peak")]),
                *samples.cells(name),
            ]
            for name, path in names.items()
        ],
        notes,
        samples.raw(),
    )


def _audit(path: Path, vllm: Path) -> Sample:
    words: tuple[str | os.PathLike[str], ...] = ("audit", path, "--vllm", vllm)
    return process((sys.executable, "-c", _AUDIT, *words))
