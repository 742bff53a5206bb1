"""Which releases take the refactor, made once, and what they get.

The semantic series, the LibCST codemod and the ast-grep rules are the same for all
releases. A textual patch is made from one release, so it is made from each and tried
on each. A tool that exits with success is not believed: its result is *right* if it
is the same code as the series gives on that release, be it laid out in another way,
and *wrong* otherwise, which is worse than a refusal: a patch from before pool() leaves
pool() out, and one from 0.16.0 deletes a flag that older releases still read.

That the series itself is right is known by digest for 0.23.0 and, for the others,
from the LibCST codemod: an independent program that comes to the same.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks import ast_grep, codemod, inputs, series
from benchmarks.inputs import Files
from benchmarks.table import Table
from benchmarks.textual import TOOLS, History

ROUNDS = 1
_WORDS = ("right", "wrong", "refused")


@dataclass(frozen=True)
class Attempt:
    """One tool on one release.

    Args:
        tool: Its name in the table.
        source: The release that a textual patch was made from, else empty.
        target: The release that it was tried on.
        result: ``right``, ``wrong`` or ``refused``.
        exact: Whether the bytes are the same, too.
    """

    tool: str
    source: str
    target: str
    result: str
    exact: bool


def measure(rounds: int) -> Table:  # noqa: ARG001 - every round would be the same
    """Runs the benchmark."""
    releases, ours = inputs.releases(), inputs.source_series()
    expected = {v: series.refactor(files, ours) for v, files in releases.items()}
    inputs.check_digests(expected[inputs.VERSION])
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder), releases, ours)
        attempts = [
            Attempt(tool, source, target, *judge(result, expected[target]))
            for tool, source, target, result in (
                *_written_once(releases, Path(folder) / "ast-grep"),
                *_made_from_each(history, list(releases)),
            )
        ]
    tools = dict.fromkeys(attempt.tool for attempt in attempts)
    pairs = len(releases) * (len(releases) - 1)
    return Table(
        f"The refactor on the {len(releases)} releases from {inputs.FIRST} to "
        f"{inputs.VERSION}",
        ("tool", *_WORDS, "right of all pairs", "wrong of all pairs"),
        [_row(tool, [a for a in attempts if a.tool == tool]) for tool in tools],
        [
            f"Textual patches are made from {inputs.VERSION}; for all pairs, from any.",
            f"Pairs of two different releases: {pairs}.",
            "Right: the same code as from vllm-graft. Wrong: success, but other code.",
            _layouts(attempts),
        ],
        {"attempts": [vars(attempt) for attempt in attempts]},
    )


_Tried = tuple[str, str, str, Files | None]


def _written_once(releases: Mapping[str, Files], folder: Path) -> Iterator[_Tried]:
    ours = inputs.source_series()
    for version, files in releases.items():
        yield "vllm-graft", "", version, series.refactor(files, ours)
        yield "LibCST codemod", "", version, codemod.refactor(files)
        yield "ast-grep rules", "", version, ast_grep.refactor(files, folder)[0]


def _made_from_each(history: History, versions: list[str]) -> Iterator[_Tried]:
    for tool in TOOLS:
        for source in versions:
            for target in versions:
                yield tool, source, target, history.carry(tool, source, target)


def judge(result: Files | None, expected: Files) -> tuple[str, bool]:
    """What became of a release, and whether to the byte.

    Args:
        result: Its files as a tool left them, None if the tool gave up.
        expected: Its files as they should be.
    """
    if result is None:
        return "refused", False
    if result == expected:
        return "right", True
    same = all(_code(result[path]) == _code(data) for path, data in expected.items())
    return ("right" if same else "wrong"), False


@cache
def _code(data: bytes) -> str:
    """What the source says, without its layout and comments."""
    try:
        return ast.dump(ast.parse(data))
    except SyntaxError:
        return "not Python"


def _row(tool: str, attempts: list[Attempt]) -> list[str]:
    first = [a for a in attempts if a.source in ("", inputs.VERSION)]
    counts = [str(sum(a.result == word for a in first)) for word in _WORDS]
    pairs = [a for a in attempts if a.source not in ("", a.target)]
    if not pairs:
        return [tool, *counts, "", ""]
    shares = [sum(a.result == word for a in pairs) / len(pairs) for word in _WORDS]
    return [tool, *counts, *(f"{share:.0%}" for share in shares[:2])]


def _layouts(attempts: list[Attempt]) -> str:
    """Says whose right results are laid out in another way."""
    other = dict.fromkeys(
        a.tool for a in attempts if a.result == "right" and not a.exact
    )
    if not other:
        return "All right results have the same bytes, too."
    return f"Laid out in another way, at least once: {', '.join(other)}."
