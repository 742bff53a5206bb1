"""The one way to print results: a Markdown table that reads well as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """The result of one benchmark.

    Args:
        title: What was measured.
        columns: The headings; the first column is text, the others are figures.
        rows: The cells, as they are printed.
        notes: Sentences below the table: goals, conditions, caveats.
        raw: The figures themselves, for ``--json``.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)

    def markdown(self) -> str:
        """The table, its title above and its notes below."""
        grid = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        rule = [
            "-" * width if n == 0 else "-" * (width - 1) + ":"
            for n, width in enumerate(widths)
        ]
        lines = [_line(self.columns, widths), _line(rule, widths)]
        lines += [_line(row, widths) for row in self.rows]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.title}", "", *lines, "", *notes]).rstrip() + "\n"

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` writes."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
            "raw": dict(self.raw),
        }


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = list(zip(cells, widths, strict=True))
    first = [cell.ljust(width) for cell, width in pairs[:1]]
    return f"| {' | '.join(first + [cell.rjust(width) for cell, width in pairs[1:]])} |"


def goal(text: str, value: float, limit: float, unit: str = "") -> str:
    """A note that says whether a goal is met; ``limit`` is the most allowed."""
    word = "met" if value <= limit else "MISSED"
    return f"Goal: {text} at most {limit:g}{unit}: {word} ({value:.3g}{unit})."
