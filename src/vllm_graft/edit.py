"""Splices a matched change into source text.

Every edit is whole physical lines: the lines of dropped statements go, new lines
come in beside a matched one. Whatever is not edited keeps its bytes. Where
statements share a line (``a; b``, ``if x: a``) and not all of them go, the line is
first split (:func:`explode`), and the caller matches again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vllm_graft.change import Add, Change, Cut, Drop, Gap, Item, Keep, Put, Take
from vllm_graft.layout import Part, Span, blocks, span, statements, stmt_start
from vllm_graft.match import Match
from vllm_graft.source import Source
from vllm_graft.substitute import Substitution
from vllm_graft.text import comments, indentation, reindent

_LEFT: Final = re.compile(r"[ \t\f]*")
_RIGHT: Final = re.compile(r"[ \t\f]*(;[ \t\f]*)?(#[^\r\n]*)?(\r\n|\r|\n|\Z)")


class SharedLineError(Exception):
    """An edit would tear a physical line apart; ``offset`` is on that line."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class LostError(Exception):
    """A line to edit has no counterpart in the source (an ``else:``, say)."""

    def __init__(self, line: int) -> None:
        super().__init__(f"the code at line {line} matches, but has no line to edit")


@dataclass(frozen=True)
class Edit:
    """Replaces ``[start, end)`` of the text."""

    start: int
    end: int
    text: str


def splice(source: Source, edits: Iterable[Edit]) -> str:
    """The text with all edits made. Edits do not overlap."""
    out: list[str] = []
    at = 0
    text = padded(source)
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        assert edit.start >= at, "edits overlap"
        out += [text[at : edit.start], edit.text]
        at = edit.end
    result = "".join([*out, text[at:]])
    if text != source.text:  # the file had no final newline, and keeps it so
        newline = text[len(source.text) :]
        result = result[: -len(newline)] if result.endswith(newline) else result
    return result


def padded(source: Source) -> str:
    """The text with a final newline, so that its last line is like others."""
    if source.text.endswith(("\n", "\r")) or not source.text:
        return source.text
    return source.text + source.newline_at(len(source.text))


class Editor:
    """Turns one match of a change into edits.

    Args:
        source: The file.
        change: The compiled alternative.
        match: Where its before view matched in ``source``.

    Raises:
        SharedLineError: A line must be split first.
        LostError: The source spells the matched code such that a line to edit
            does not exist.
    """

    def __init__(self, source: Source, change: Change, match: Match) -> None:
        self.source = source
        self.text = padded(source)
        self.change = change
        self.match = match
        self._line = int(getattr(match.block.nodes[0], "lineno", 0))
        self._indents: dict[int, str] = {}
        self._edits: list[Edit] = []
        self._substitution = Substitution(source, change, match)
        self._lines = [self._physical(item) for item in change.items]

    def edits(self) -> list[Edit]:
        """The edits, in order."""
        items = self.change.items
        cursor: int | None = None
        for index, item in enumerate(items):
            self._learn_indent(item, self._lines[index])
            here = self._lines[index]
            if isinstance(item, Drop | Take) and here:
                self._drop(item, here)
            if isinstance(item, Cut):
                self._cut(item, cursor, index)
            elif isinstance(item, Add | Put):
                self._insert(item, self._anchor(index, cursor, item))
            if here and not isinstance(item, Cut):
                cursor = here.end if cursor is None else max(cursor, here.end)
        return self._edits

    def first_line(self) -> int:
        """The source line of the first thing that changes (1-based)."""
        items = self.change.items
        for index, item in enumerate(items):
            here = self._lines[index]
            if isinstance(item, Drop | Take) and here:
                return self.source.line_number(here.start)
            if isinstance(item, Add | Put):
                anchors = [x for x in self._lines[:index] if x]
                if anchors:
                    return self.source.line_number(max(anchors[-1].end - 1, 0))
        first = next(x for x in self._lines if x)
        return self.source.line_number(first.start)

    # --- where items stand ------------------------------------------------------------

    def _span(self, part: Part) -> Span:
        node = self.match.nodes.get(id(part.node))
        if node is None:
            raise LostError(self._line)
        try:
            return span(self.source, Part(node, part.name))
        except (AssertionError, ValueError, IndexError) as error:
            raise LostError(self._line) from error

    def _physical(self, item: Item) -> Span | None:
        """The code that an item stands for, or None (blank, new, empty run)."""
        if isinstance(item, Keep | Drop):
            return self._lines_of(self._span(item.line.part), isinstance(item, Drop))
        if isinstance(item, Take):
            node = self.match.nodes[id(item.node)]
            code = Span(stmt_start(self.source, node), self.source.end(node))
            return self._lines_of(code, exact=True)
        if isinstance(item, Gap):
            run = self.match.runs.get(id(item.node))
            if run and run.nodes:
                start = stmt_start(self.source, run.nodes[0])
                code = Span(start, self.source.end(run.nodes[-1]))
                return self._lines_of(code, exact=False)
        return None

    def _lines_of(self, code: Span, exact: bool) -> Span:
        """Widens code to whole physical lines, where they are its own."""
        start = self.source.line_start(code.start)
        left = self.text[start : code.start]
        right = _RIGHT.match(self.text, code.end)
        if exact and (left.strip(" \t\f") or self._continued(start) or not right):
            return code  # shared with other code; see _drop
        end = right.end() if right else code.end
        return Span(start if not left.strip(" \t\f") else code.start, end)

    def _continued(self, line_start: int) -> bool:
        before = self.text[:line_start].rstrip("\r\n")
        if not before.endswith("\\") or len(self.text[:line_start]) == len(before):
            return False
        last = before[max(before.rfind("\n"), before.rfind("\r")) + 1 :]
        return not comments(last)

    def _own_lines(self, extent: Span) -> bool:
        start = self.source.line_start(extent.start)
        return extent.start == start and (
            extent.end == len(self.text) or self.text[extent.end - 1] in "\r\n"
        )

    # --- indentation --------------------------------------------------------------------

    def _learn_indent(self, item: Item, here: Span | None) -> None:
        if here and self._own_lines(here) and isinstance(item, Keep | Drop | Take | Gap):
            column = item.line.column if isinstance(item, Keep | Drop) else item.column
            line = self.text[here.start : here.end]
            self._indents = {c: i for c, i in self._indents.items() if c < column}
            self._indents[column] = indentation(line)

    def _indent(self, column: int, index: int) -> str:
        if column in self._indents:
            return self._indents[column]
        for later, here in zip(
            self.change.items[index:], self._lines[index:], strict=True
        ):
            if isinstance(later, Keep | Drop) and here and later.line.column == column:
                return indentation(self.text[here.start : here.end])
        smaller = [c for c in self._indents if c < column]
        if smaller:
            return self._indents[max(smaller)] + indent_unit(self.source)
        return " " * column

    # --- dropping -------------------------------------------------------------------------

    def _drop(self, item: Drop | Take, here: Span) -> None:
        if not self._own_lines(here):
            here = self._shared(here)
        if isinstance(item, Take):
            start = self._with_comments_above(here.start)
            self._edits.append(Edit(start, here.end, ""))
            return
        kept = comments(self.text[here.start : here.end])
        named = comments(item.named)
        kept = [comment for comment in kept if comment not in named]
        newline = self.source.newline_at(here.start)
        indent = indentation(self.text[here.start : here.end])
        text = "".join(f"{indent}{comment}{newline}" for comment in kept)
        self._edits.append(Edit(here.start, here.end, text))

    def _shared(self, here: Span) -> Span:
        """A dropped piece of a shared line: fine if all of the line goes."""
        line = self.source.line_start(here.start)
        dropped = [
            extent
            for item, extent in zip(self.change.items, self._lines, strict=True)
            if extent and isinstance(item, Drop | Take)
        ]
        pieces = sorted(
            (e for e in dropped if self.source.line_start(e.start) == line),
            key=lambda e: e.start,
        )
        between = "".join(
            self.text[a.end : b.start]
            for a, b in zip(pieces, pieces[1:], strict=False)
        )
        left = self.text[line : pieces[0].start]
        right = _RIGHT.match(self.text, pieces[-1].end)
        if left.strip(" \t\f") or between.strip(" \t;") or not right:
            raise SharedLineError(here.start)
        if self._continued(line) or here.start != pieces[0].start:
            if here.start == pieces[0].start:
                raise SharedLineError(here.start)
            return Span(right.end(), right.end())
        return Span(line, right.end())

    def _with_comments_above(self, start: int) -> int:
        """The start of the comment lines that stand directly above a line."""
        indent = indentation(self.text[start:])
        while start > 0:
            above = self.source.line_start(start - 1)
            line = self.text[above:start]
            if not line.lstrip().startswith("#") or indentation(line) != indent:
                break
            start = above
        return start

    def _cut(self, item: Cut, cursor: int | None, index: int) -> None:
        """Removes a blank or comment line from the gap around it, if it is there."""
        stop = next((x.start for x in self._lines[index:] if x), len(self.text))
        at = cursor if cursor is not None else self._with_comments_above(stop)
        taken = {edit.start for edit in self._edits}
        while at < stop:
            end = min(self.source.line_end(at), stop) or stop
            line = self.text[at:end]
            if line.strip() == item.text and at not in taken:
                self._edits.append(Edit(at, end, ""))
                return
            at = end

    # --- inserting ------------------------------------------------------------------------

    def _anchor(self, index: int, cursor: int | None, item: Add | Put) -> int:
        """Where a new line goes: behind the line before it, else above the next."""
        previous = self._previous(index)
        following = self._following(index)
        if following and (previous is None or self._sibling_gap(index)):
            if not self._own_lines(following):
                raise SharedLineError(following.start)
            return self._with_comments_above(following.start)
        if cursor is None or previous is None:
            raise LostError(self._line)
        end = previous.end
        if end != len(self.text) and self.text[end - 1] not in "\r\n":
            raise SharedLineError(max(end - 1, 0))
        if end == len(self.text) and self._line_is_shared(previous):
            raise SharedLineError(max(previous.end - 1, 0))
        return self._below_deeper_comments(end, self._indent(item.column, index))

    def _line_is_shared(self, extent: Span) -> bool:
        return not _RIGHT.match(self.text, extent.end)

    def _previous(self, index: int) -> Span | None:
        return next((x for x in reversed(self._lines[:index]) if x), None)

    def _following(self, index: int) -> Span | None:
        return next((x for x in self._lines[index:] if x), None)

    def _sibling_gap(self, index: int) -> bool:
        """Whether an ellipsis precedes and a line of the same block follows."""
        items = self.change.items
        column = items[index].column if isinstance(items[index], Add | Put) else -1  # type: ignore[union-attr]
        before = next(
            (x for x in reversed(items[:index]) if not isinstance(x, Add | Put | Cut)),
            None,
        )
        after = next(
            (x for x in items[index:] if not isinstance(x, Add | Put | Cut)), None
        )
        return (
            isinstance(before, Gap)
            and isinstance(after, Keep | Drop)
            and before.column == column == after.line.column
        )

    def _below_deeper_comments(self, at: int, indent: str) -> int:
        """Comments that close a deeper block stay in it."""
        best = at
        while at < len(self.text):
            end = self.source.line_end(at)
            line = self.text[at:end]
            if line.strip() and not line.lstrip().startswith("#"):
                break
            if line.strip() and len(indentation(line)) <= len(indent):
                break
            at = end
            best = end if line.strip() else best
        return best

    def _insert(self, item: Add | Put, at: int) -> None:
        index = next(i for i, x in enumerate(self.change.items) if x is item)
        newline = self.source.newline_at(max(at - 1, 0))
        indent = self._indent(item.column, index)
        if isinstance(item, Put):
            text = self._moved(item, indent)
        else:
            raw = "\n".join(line.text for line in item.lines)
            if raw.strip():
                self._indents[item.column] = indent
            old = indentation(raw)
            body = reindent(raw, old, indent) if raw.strip() else ""
            text = self._substitution.apply(body) + "\n"
            text = text.replace("\n", newline)
        self._edits.append(Edit(at, at, text))

    def _moved(self, item: Put, indent: str) -> str:
        node = self.match.nodes[id(item.node)]
        code = Span(stmt_start(self.source, node), self.source.end(node))
        extent = self._lines_of(code, exact=True)
        if not self._own_lines(extent):
            raise SharedLineError(code.start)
        old = indentation(self.text[extent.start : extent.end])
        start = self._with_comments_above(extent.start)
        return reindent(self.text[start : extent.end], old, indent)


def indent_unit(source: Source) -> str:
    """The file's step of indentation, from its first indented block."""
    for parent in statements(source.tree):
        for _, block in blocks(parent):
            if isinstance(parent, ast.stmt) and isinstance(block[0], ast.stmt):
                outer = indentation(source.line(parent.lineno))
                inner = indentation(source.line(block[0].lineno))
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
    return "    "


def explode(source: Source, offset: int) -> str:
    """Gives each statement of a physical line a line of its own."""
    number = source.line_number(offset)
    edits: list[Edit] = []
    unit = indent_unit(source)
    for parent in statements(source.tree):
        for _, block in blocks(parent):
            if not isinstance(block[0], ast.stmt):
                continue
            edits += _separate(source, parent, block, number, unit)
    if not edits:
        raise LostError(number)
    return splice(source, edits)


def _separate(
    source: Source, parent: ast.AST, block: Sequence[ast.AST], number: int, unit: str
) -> list[Edit]:
    first = stmt_start(source, block[0])
    line = source.line(source.line_number(first))
    head = line[: first - source.line_start(first)]
    one_line = bool(head.strip()) or isinstance(parent, ast.Module) and bool(head)
    indent = indentation(line) + (unit if one_line else "")
    edits = []
    ends: list[int | None] = [_header_end(source, first) if one_line else None]
    ends += [source.end(node) for node in block[:-1]]
    for end, node in zip(ends, block, strict=True):
        start = stmt_start(source, node)
        if end is None or not _touches(source, end, start, number):
            continue
        if "\n" in source.text[end:start].replace("\\\n", "").replace("\\\r\n", ""):
            continue
        newline = source.newline_at(start)
        edits.append(Edit(end, start, newline + indent))
    return edits


def _touches(source: Source, end: int, start: int, number: int) -> bool:
    return number in (source.line_number(end), source.line_number(start))


def _header_end(source: Source, first: int) -> int:
    return source.text.rindex(":", 0, first) + 1

