"""A matrix as a table: in colour on a terminal, in plain words elsewhere."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from vllm_graft.matrix.view import BAD, LOOKS, columns, headline, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_graft.matrix.build import Matrix, Row
    from vllm_graft.results import PatchResult, Verdict

#: Between two columns, and between two series.
_GAP, _SERIES_GAP = "  ", "    "

_UNREAD = "bold red"

#: The width of a glyph and the longest verdict.
_LONGEST = 12


def print_table(matrix: Matrix, stream: IO[str]) -> None:
    """Print the matrix; with colours where ``stream`` is a terminal."""
    if not stream.isatty():
        stream.write(format_table(matrix))
        return
    console = Console(file=stream, highlight=False)
    lines = list(_lines(matrix, "full"))
    if max(line.cell_len for line in lines[: len(matrix.rows) + 2]) > console.width:
        lines = list(_lines(matrix, "glyph"))
    for line in lines:
        console.print(line, soft_wrap=True)


def format_table(matrix: Matrix) -> str:
    """The matrix in plain text: a line a release, then what needs words."""
    lines = (line.plain.rstrip() for line in _lines(matrix, "word"))
    return "".join(f"{line}\n" for line in lines)


def _lines(matrix: Matrix, form: str) -> Iterator[Text]:
    """All lines, with cells as ``full``, ``word`` or ``glyph``."""
    yield from _table(matrix, form)
    for series in matrix.series:
        yield Text()
        yield Text(series.name, style="bold")
        for column in columns(series.patches):
            yield Text(f"  {column.number}  {column.subject}")
        for run in matrix.runs(series.name):
            shown = _verdict(run.verdict, "word" if form == "word" else "full")
            shown.pad_right(max(0, _LONGEST - shown.cell_len))
            yield Text("  ").append_text(shown).append(f"  {run}")
    yield Text()
    well, text = outcome(matrix)
    yield Text(f"{headline(matrix)}.")
    yield Text(f"{text}.", style="green" if well else _UNREAD)
    for row in matrix.rows:
        yield from map(Text, _reasons(row))
    for note in matrix.notes:
        yield Text(f"note: {note}", style="yellow")


def _table(matrix: Matrix, form: str) -> Iterator[Text]:
    """The lines of the table proper, the first two its head."""
    groups = [(s.name, columns(s.patches)) for s in matrix.series]
    cells = {
        row.version: [_cell(patch, form) for patch in row.patches]
        for row in matrix.rows
    }
    numbers = [Text(c.number, style="bold") for _, heads in groups for c in heads]
    body = [line for line in cells.values() if line]
    widths = [
        max(line[place].cell_len for line in [numbers, *body])
        for place in range(len(numbers))
    ]
    starts = _starts([len(heads) for _, heads in groups])
    margin = max(len(version) for version in ["vLLM", *cells])
    top = Text(" " * margin)
    for (name, heads), start in zip(groups, starts, strict=True):
        width = sum(widths[start : start + len(heads)]) + len(_GAP) * (len(heads) - 1)
        top.append(_SERIES_GAP if start else _GAP)
        # A long name must not push the names after it out of place.
        short = name if len(name) <= width else f"{name[: width - 1]}…"
        top.append(short.ljust(width), style="bold")
    yield top
    for head, line in [("vLLM", numbers), *cells.items()]:
        text = Text().append(head.ljust(margin), style="bold")
        if not line:
            text.append(f"{_GAP}not read", style=_UNREAD)
        for place, cell in enumerate(line):
            text.append(_SERIES_GAP if place and place in starts else _GAP)
            text.append_text(cell).append(" " * (widths[place] - cell.cell_len))
        yield text


def _starts(counts: list[int]) -> list[int]:
    """The first column of each series."""
    return [sum(counts[:place]) for place in range(len(counts))]


def _cell(patch: PatchResult, form: str) -> Text:
    # No wheel has a place for new tests: that is nobody's trouble.
    return Text("-", style="dim") if patch.adds_only else _verdict(patch.verdict, form)


def _verdict(verdict: Verdict | None, form: str) -> Text:
    if verdict is None:
        return Text("not read", style=_UNREAD)
    look = LOOKS[verdict]
    forms = {"glyph": look.glyph, "word": verdict.value}
    return Text(forms.get(form, f"{look.glyph} {verdict}"), style=look.style)


def _reasons(row: Row) -> Iterator[str]:
    if row.error is not None:
        yield f"{row.version}: {row.error.message}"
        if row.error.hint:
            yield f"  hint: {row.error.hint}"
    for patch in row.patches:
        if patch.adds_only or patch.verdict not in BAD:
            continue
        hunks = (hunk.reason for hunk in patch.hunks if hunk.verdict in BAD)
        reasons = "; ".join(dict.fromkeys(filter(None, (patch.reason, *hunks))))
        yield f"{row.version}: {patch.file}: {patch.verdict}: {reasons}".rstrip(": ")
