"""A matrix as one HTML page that needs nothing else: no script, font or image."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from vllm_graft.matrix.view import (
    LOOKS,
    Column,
    columns,
    headline,
    lines_of,
    outcome,
)
from vllm_graft.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_graft.matrix.build import Matrix, Row, Run
    from vllm_graft.results import PatchResult, Verdict


def render_html(matrix: Matrix) -> str:
    """The page, complete from ``<!DOCTYPE html>`` on.

    It reads without scripts, on narrow screens, in light and dark, and without
    telling colours apart. A cell leads to the details of its release, below.
    """
    return page(
        f"vllm-graft matrix: {headline(matrix)}",
        ["matrix.css"],
        [*_header(matrix), *_history(matrix), *_table(matrix), *_details(matrix)],
        _footer(matrix),
    )


def _header(matrix: Matrix) -> Iterator[str]:
    well, text = outcome(matrix)
    yield "<header>"
    yield '<p class="tool">vllm-graft matrix</p>'
    yield f"<h1>{escape(headline(matrix))}</h1>"
    mark = "✓" if well else "!"
    kind = "well" if well else "ill"
    yield (
        f'<p class="outcome {kind}"><span aria-hidden="true">{mark}</span> '
        f"{escape(text)}.</p>"
    )
    yield "</header>"


def _history(matrix: Matrix) -> Iterator[str]:
    """Each series as a bar of runs, and the same in words."""
    yield '<section aria-labelledby="history">'
    yield '<h2 id="history" class="quiet">History</h2>'
    for series in matrix.series:
        runs = matrix.runs(series.name)
        yield '<div class="card">'
        yield f"<h3>{escape(series.name)}</h3>"
        yield '<ul class="subjects">'
        for column in columns(series.patches):
            number = f"<code>{escape(column.number)}</code>"
            yield f"<li>{number} {escape(column.subject)}</li>"
        yield "</ul>"
        yield '<div class="bar" aria-hidden="true">'
        for run in runs:
            share = f'style="flex-grow:{len(run.versions)}"'
            yield f'<span class="v {_kind(run.verdict)}" {share}></span>'
        yield "</div>"
        yield '<ul class="runs">'
        yield from (f"<li>{_run(run)}</li>" for run in runs)
        yield "</ul></div>"
    yield "</section>"


def _run(run: Run) -> str:
    count = f" <small>({len(run.versions)} releases)</small>"
    return (
        f"{_badge(run.verdict)} {escape(str(run))}"
        f"{count if len(run.versions) > 1 else ''}"
    )


def _table(matrix: Matrix) -> Iterator[str]:
    groups = [(series, columns(series.patches)) for series in matrix.series]
    yield '<section aria-labelledby="releases">'
    yield '<h2 id="releases">Releases</h2>'
    yield from _legend(matrix)
    yield '<table class="matrix">'
    yield (
        "<caption>The verdict on each patch for each release, with the source lines "
        "that it matches. A cell leads to the details below.</caption>"
    )
    yield '<col class="version">'
    for _, heads in groups:
        kinds = ("adds" if column.adds_only else "changes" for column in heads)
        yield "".join(f'<col class="{kind}">' for kind in kinds)
    yield "<thead>"
    yield '<tr><th scope="col" rowspan="2">vLLM</th>'
    for series, heads in groups:
        yield f'<th scope="colgroup" colspan="{len(heads)}">{escape(series.name)}</th>'
    yield "</tr><tr>"
    yield from (_head(column) for _, heads in groups for column in heads)
    yield "</tr>"
    yield "</thead>"
    yield "<tbody>"
    width = sum(len(heads) for _, heads in groups) or 1
    for row in matrix.rows:
        yield _row(row, width)
    yield "</tbody>"
    yield "</table>"
    yield "</section>"


def _legend(matrix: Matrix) -> Iterator[str]:
    counts = matrix.counts()
    yield '<ul class="legend" aria-label="Verdicts">'
    for verdict, look in LOOKS.items():
        if counts[verdict]:
            yield f"<li>{_badge(verdict)} {escape(look.meaning)}</li>"
    yield "</ul>"


def _head(column: Column) -> str:
    # Names are hyphenated: let them break there.
    name = escape(column.name).replace("-", "-<wbr>")
    return (
        f'<th scope="col" title="{escape(column.subject)}">'
        f'<span class="number">{escape(column.number)}</span>'
        f'<span class="name">{name}</span></th>'
    )


def _row(row: Row, width: int) -> str:
    anchor = _anchor(row)
    head = f'<th scope="row"><a href="#{anchor}">{escape(row.version)}</a></th>'
    if row.error is not None:
        cell = (
            f'<td colspan="{width}"><a class="v unread" href="#{anchor}">'
            f"{_mark(None)} {escape(row.error.message)}</a></td>"
        )
        return f"<tr>{head}{cell}</tr>"
    cells = "".join(
        _cell(patch, f"{anchor}-{place}") for place, patch in enumerate(row.patches)
    )
    return f"<tr>{head}{cells}</tr>"


def _cell(patch: PatchResult, anchor: str) -> str:
    if patch.adds_only:
        return (
            '<td class="none"><span aria-hidden="true">&ndash;</span>'
            '<span class="unseen">only adds files</span></td>'
        )
    # Those that do not fit into the cell wrap out of sight, one by one.
    lines = "".join(f"<small>{line}</small>" for line in lines_of(patch))
    tip = "".join(f"<span>{part}</span>" for part in _tip(patch))
    return (
        f'<td><a class="v {_kind(patch.verdict)}" href="#{anchor}">'
        f'<span class="face">{_mark(patch.verdict)}{lines}</span>'
        f'<span class="tip" aria-hidden="true">{tip}</span></a></td>'
    )


def _tip(patch: PatchResult) -> Iterator[str]:
    yield f"<b>{escape(patch.subject)}</b>"
    if patch.reason:
        yield escape(patch.reason)
    for hunk in patch.hunks:
        where = f": {_lines(hunk.lines)}" if hunk.lines else ""
        why = f" <i>{escape(hunk.reason)}</i>" if hunk.reason else ""
        yield (f"{_badge(hunk.verdict)} <code>{_scope(hunk.scope)}</code>{where}{why}")


def _details(matrix: Matrix) -> Iterator[str]:
    yield '<section aria-labelledby="details">'
    yield '<h2 id="details">Details</h2>'
    for row in matrix.rows:
        marks = (
            "".join(
                f'<span class="v {_kind(verdict)}">{LOOKS[verdict].glyph}</span>'
                for verdict in row.verdicts
            )
            or '<span class="v unread">!</span>'
        )
        yield "<details>"
        yield (
            f"<summary><b>{escape(row.version)}</b> "
            f'<span class="marks" aria-hidden="true">{marks}</span></summary>'
        )
        yield f'<div class="inside" id="{_anchor(row)}">'
        if row.error is not None:
            hint = f"<br>{escape(row.error.hint)}" if row.error.hint else ""
            yield f"<p>{escape(row.error.message)}.{hint}</p>"
        if row.source:
            yield f'<p class="source">Read from <code>{escape(row.source)}</code></p>'
        place = 0
        for series in row.status.series if row.status is not None else ():
            yield f"<h3>{escape(series.name)}</h3>"
            for patch in series.patches:
                yield from _patch(patch, f"{_anchor(row)}-{place}")
                place += 1
        yield "</div>"
        yield "</details>"
    yield "</section>"


def _patch(patch: PatchResult, anchor: str) -> Iterator[str]:
    badge = "" if patch.adds_only else _badge(patch.verdict)
    yield f'<div class="patch" id="{anchor}">'
    yield f"<h4>{badge} {escape(patch.subject)}</h4>"
    targets = ", ".join(f"<code>{_path(target)}</code>" for target in patch.targets)
    yield f"<p>{escape(patch.file)}: {targets}</p>"
    if patch.adds_only:
        yield "<p>Only adds files, which a wheel has no place for.</p>"
    elif patch.reason:
        yield f"<p>{escape(patch.reason)}</p>"
    if patch.hunks:
        yield "<ul>"
        for hunk in patch.hunks:
            where = f" {_lines(hunk.lines)}" if hunk.lines else ""
            why = f" &ndash; {escape(hunk.reason)}" if hunk.reason else ""
            yield (
                f"<li>{_badge(hunk.verdict)} <code>{_scope(hunk.scope)}</code>"
                f"{where}{why}</li>"
            )
        yield "</ul>"
    yield "</div>"


def _footer(matrix: Matrix) -> Iterator[str]:
    yield "<footer>"
    made = matrix.made.strftime("%Y-%m-%d %H:%M UTC")
    yield f"<p>Made by vllm-graft on {made}"
    if matrix.urls:
        names = ", ".join(f"<code>{escape(url)}</code>" for url in matrix.urls)
        listed = matrix.listed_at
        when = listed.strftime(", as of %Y-%m-%d %H:%M UTC") if listed else ""
        yield f"from the releases on {names}{when}"
    yield "</p>"
    yield from (f"<p>Note: {escape(note)}.</p>" for note in matrix.notes)
    yield "</footer>"


def _kind(verdict: Verdict | None) -> str:
    return verdict.value if verdict is not None else "unread"


def _mark(verdict: Verdict | None) -> str:
    """Glyph and word: the word alone is read aloud, the glyph alone fits a phone."""
    glyph = LOOKS[verdict].glyph if verdict is not None else "!"
    word = verdict.value if verdict is not None else "not read"
    return (
        f'<span class="glyph" aria-hidden="true">{glyph}</span>'
        f'<span class="word">{word}</span>'
    )


def _badge(verdict: Verdict | None) -> str:
    return f'<span class="v badge {_kind(verdict)}">{_mark(verdict)}</span>'


def _lines(lines: Iterable[int]) -> str:
    numbers = [str(line) for line in lines]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _scope(scope: str) -> str:
    """Qualified names may break after a dot."""
    return escape(scope).replace(".", ".<wbr>")


def _path(path: str) -> str:
    return escape(path).replace("/", "/<wbr>")


def _anchor(row: Row) -> str:
    return "v" + re.sub(r"[^0-9a-z.]", "-", row.version)
