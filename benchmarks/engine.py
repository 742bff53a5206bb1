"""Parse, match and splice of the three files, without processes and disk.

The same edits, by the semantic series (already compiled), by a LibCST codemod, and
by ast-grep, which is a process and has to start. Both Python programs must give the
bytes that the release has after the refactor; ast-grep must give the same code.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import ast_grep, codemod, inputs, series
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, interleave, work

ROUNDS = 15
_OURS, _LIBCST, _AST_GREP = "vllm-graft", "LibCST codemod", "ast-grep (a process)"


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    files, ours = inputs.release(), inputs.source_series()
    with tempfile.TemporaryDirectory() as folder:
        notes = _verify(files, Path(folder))
        contestants: dict[str, Callable[[], Sample]] = {
            "ast.parse alone": lambda: work(lambda: _parse(files)),
            _OURS: lambda: work(lambda: series.refactor(files, ours)),
            _LIBCST: lambda: work(lambda: codemod.refactor(files)),
            _AST_GREP: lambda: ast_grep.refactor(files, Path(folder))[1],
        }
        samples = interleave(contestants, rounds, base=_OURS)
    lines = sum(data.count(b"\n") for data in files.values())
    notes += [
        goal("CPU time of vllm-graft", 1e3 * samples.median(_OURS, "cpu"), 60, " ms"),
        goal("vllm-graft over LibCST, CPU", 1 / samples.ratio(_LIBCST, "cpu"), 0.2),
    ]
    return Table(
        f"Parse, match and splice three files of vLLM {inputs.VERSION} "
        f"({lines:,} lines), {rounds} rounds",
        ("in memory", "wall ms", "CPU ms", "wall ratio", "CPU ratio"),
        [[name, *samples.cells(name)] for name in contestants],
        notes,
        samples.raw(),
    )


def _parse(files: inputs.Files) -> None:
    for data in files.values():
        ast.parse(data)


def _verify(files: inputs.Files, folder: Path) -> list[str]:
    """Makes sure that all make the same edits, and says how they differ."""
    ours = series.refactor(files, inputs.source_series())
    inputs.check_digests(ours)
    if codemod.refactor(files) != ours:
        raise ValueError("the LibCST codemod gives other bytes")
    theirs, _ = ast_grep.refactor(files, folder)
    for path, data in theirs.items():
        if ast.dump(ast.parse(data)) != ast.dump(ast.parse(ours[path])):
            raise ValueError(f"ast-grep gives other code in {path}")
    other = [Path(path).name for path in files if theirs[path] != ours[path]]
    layout = f"another layout of {', '.join(other)}" if other else "the same bytes"
    return [f"LibCST gives the same bytes, ast-grep the same code in {layout}."]
