"""Turns a matched change into edits of the source text.

Every edit is whole physical lines: the lines of dropped statements go, new lines
come in beside a matched one. Whatever is not edited keeps its bytes. Where
statements share a line (``a; b``, ``if x: a``) and not all of them go, the line is
first split (:mod:`vllm_graft.engine.explode`), and the caller matches again.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from vllm_graft.engine.change import Change
from vllm_graft.engine.explode import indent_unit, shares_header_line
from vllm_graft.engine.extents import Extents
from vllm_graft.engine.items import Add, Cut, Drop, Gap, Hint, Item, Keep, Put, Take
from vllm_graft.engine.layout import Span, all_blocks, stmt_start
from vllm_graft.engine.match import Match
from vllm_graft.engine.source import Source
from vllm_graft.engine.splice import Edit, LostError, SharedLineError
from vllm_graft.engine.substitute import Substitution
from vllm_graft.engine.text import comments, indentation, reindent


class Editor:
    """Turns one match of a change into edits.

    Args:
        source: The file; its text ends with a line ending.
        change: The compiled alternative.
        match: Where its before view matched in ``source``.

    Raises:
        SharedLineError: A line must be split first.
        LostError: The source spells the matched code such that a line to edit
            does not exist.
    """

    def __init__(self, source: Source, change: Change, match: Match) -> None:
        self.source = source
        self.text = source.text
        self.items = change.items
        self.match = match
        self._extents = Extents(source, match)
        self._lines = [self._extents.of(item) for item in self.items]
        self._indents: dict[int, str] = {}
        self._edits: list[Edit] = []
        self._substitution = Substitution(source, change, match)
        self._cursor: int | None = None  # the end of what has been passed
        self._hinted = False  # whether the cursor is below a blank or comment line
        self._inserted = 0  # where the line before went, if that is a new one

    def edits(self) -> list[Edit]:
        """The edits, in order."""
        for index, item in enumerate(self.items):
            here = self._lines[index]
            if here:
                self._learn_indent(item, here)
            if isinstance(item, Drop | Take) and here:
                self._drop(item, here)
            elif isinstance(item, Cut):
                self._cut(item, index)
            elif isinstance(item, Hint):
                self._follow(item, index)
            elif isinstance(item, Add | Put):
                self._insert(item, index)
            if here:
                self._cursor = max(self._cursor or 0, here.end)
                self._hinted = False
                self._inserted = 0
        return self._edits

    def first_line(self) -> int:
        """The source line of the first thing that changes (1-based)."""
        for index, item in enumerate(self.items):
            here = self._lines[index]
            if isinstance(item, Drop | Take) and here:
                return self.source.line_number(here.start)
            above = self._previous(index)
            if isinstance(item, Add | Put) and above is not None:
                end = self._lines[above]
                assert end is not None
                return self.source.line_number(end.end - 1)
        return self.source.line_number(next(x for x in self._lines if x).start)

    # --- indentation ----------------------------------------------------------------

    def _learn_indent(self, item: Item, here: Span) -> None:
        if isinstance(item, Keep | Drop | Take | Gap) and self._extents.own_lines(here):
            known = {c: i for c, i in self._indents.items() if c < item.column}
            self._indents = {**known, item.column: self._indent_of(here)}

    def _indent_of(self, here: Span) -> str:
        return indentation(self.text[here.start : here.end])

    def _indent(self, column: int, index: int) -> str:
        """The indentation in the source for a column of the patch."""
        if column in self._indents:
            return self._indents[column]
        for later, here in zip(self.items[index:], self._lines[index:], strict=True):
            if isinstance(later, Keep | Drop) and here and later.column == column:
                return self._indent_of(here)
        smaller = [c for c in self._indents if c < column]
        if smaller:
            return self._indents[max(smaller)] + indent_unit(self.source)
        return " " * column

    # --- dropping -------------------------------------------------------------------

    def _drop(self, item: Drop | Take, here: Span) -> None:
        if not self._extents.own_lines(here):
            here = self._whole_line(here)
        if isinstance(item, Take):
            start = self._with_comments(item, here)
            self._edits.append(Edit(start, here.end, ""))
            return
        named = [*comments(item.named), *self._carried]
        kept = [
            comment
            for comment in comments(self.text[here.start : here.end])
            if comment not in named
        ]
        newline = self.source.newline_at(here.start)
        indent = self._indent_of(here)
        text = "".join(f"{indent}{comment}{newline}" for comment in kept)
        self._edits.append(Edit(here.start, here.end, text))

    def _with_comments(self, item: Take | Put, here: Span) -> int:
        return here.start if item.bare else self._extents.comments_above(here.start)

    @cached_property
    def _carried(self) -> list[str]:
        """The comments in new lines, bound ones included."""
        new = (item.text for item in self.items if isinstance(item, Add))
        return [c for text in new for c in comments(self._substitution.apply(text))]

    def _whole_line(self, here: Span) -> Span:
        """The line of a dropped piece, if all of the line is dropped.

        The first piece stands for the line; for the others nothing is left to do.
        """
        line = self.source.line_start(here.start)
        pieces = [
            extent
            for item, extent in zip(self.items, self._lines, strict=True)
            if extent
            and isinstance(item, Drop | Take)
            and self.source.line_start(extent.start) == line
        ]
        code = [self.text[line : pieces[0].start]]
        code += [self.text[a.end : b.start] for a, b in pairwise(pieces)]
        rest = self._extents.rest_of_line(pieces[-1].end)
        if "".join(code).strip(" \t\f;") or not rest or self._extents.continues(line):
            raise SharedLineError(here.start)
        return Span(line if here is pieces[0] else rest.end(), rest.end())

    def _cut(self, item: Cut, index: int) -> None:
        """Removes a blank or comment line from the gap around it, if it is there."""
        found = self._find_line(item.text, index)
        if found:
            self._edits.append(Edit(found.start, found.end, ""))

    def _follow(self, item: Hint, index: int) -> None:
        """Passes a blank or comment line of the context, if it is there."""
        found = self._find_line(item.text, index)
        if found:
            self._cursor = found.end
            self._hinted = True
            self._inserted = 0

    def _find_line(self, text: str, index: int) -> Span | None:
        """A line with nothing but ``text`` between the code before and after."""
        following = self._following(index)
        stop = following.start if following else len(self.text)
        at = self._cursor
        if at is None:
            at = self._extents.comments_above(stop)
        taken = {edit.start for edit in self._edits if edit.end > edit.start}
        while at < stop:
            end = self.source.line_end(at)
            line = self.text[at:end].strip()
            if line == text and at not in taken:
                return Span(at, end)
            if line and not line.startswith("#"):
                break  # code behind the match
            at = end
        return None

    # --- inserting ------------------------------------------------------------------

    def _insert(self, item: Add | Put, index: int) -> None:
        indent = self._indent(item.column, index)
        at = self._inserted = max(self._inserted, self._anchor(item, index, indent))
        newline = self.source.newline_at(max(at - 1, 0))
        if isinstance(item, Put):
            text = self._moved(item, indent)
        else:
            raw = item.text
            if raw.strip():
                self._indents[item.column] = indent
                raw = reindent(raw, indentation(raw), indent)
            else:
                raw = ""
            text = self._substitution.apply(f"{raw}\n".replace("\n", newline))
        self._edits.append(Edit(at, at, text))

    def _anchor(self, item: Add | Put, index: int, indent: str) -> int:
        """Where a new line goes: behind the line before it, else above the next."""
        previous = self._previous(index)
        following = self._following(index)
        if isinstance(item, Add) and item.text.lstrip().startswith("@") and following:
            return following.start  # a decorator stands directly above its definition
        if self._hinted and self._cursor is not None:
            return self._cursor
        if following and (previous is None or self._is_behind_gap(item, index)):
            if not self._extents.own_lines(following):
                raise SharedLineError(following.start)
            return self._extents.comments_above(following.start)
        if previous is None or self._cursor is None:
            raise LostError(self._extents.line)
        above = self._lines[previous]
        assert above is not None
        if self.text[above.end - 1] not in "\r\n":
            raise SharedLineError(above.end - 1)
        if self._is_in_one_line_block(item, previous):
            raise SharedLineError(above.start)
        return self._extents.below_deeper_comments(above.end, indent)

    def _previous(self, index: int) -> int | None:
        return next((i for i in range(index - 1, -1, -1) if self._lines[i]), None)

    def _following(self, index: int) -> Span | None:
        return next((x for x in self._lines[index:] if x), None)

    def _is_behind_gap(self, item: Add | Put, index: int) -> bool:
        """Whether an ellipsis precedes and a line of the same block follows."""
        matched = Keep | Drop | Take | Gap
        before = next(
            (x for x in reversed(self.items[:index]) if isinstance(x, matched)), None
        )
        after = next((x for x in self.items[index:] if isinstance(x, matched)), None)
        return (
            isinstance(before, Gap)
            and isinstance(after, Keep | Drop)
            and before.column == item.column == after.column
        )

    def _is_in_one_line_block(self, item: Add | Put, previous: int) -> bool:
        """Whether the line before belongs to ``if x: a``, and the new one should."""
        before, above = self.items[previous], self._lines[previous]
        assert above is not None
        if not isinstance(before, Keep | Gap) or before.column > item.column:
            return False
        if above.start == self.source.line_start(above.start):
            return False
        if isinstance(before, Keep):
            node = self.match.nodes.get(id(before.line.part.node))
        else:
            node = self.match.runs[id(before.node)].nodes[0]
        return any(
            shares_header_line(self.source, block)
            for block in all_blocks(self.source.tree)
            if any(child is node for child in block)
        )

    def _moved(self, item: Put, indent: str) -> str:
        node = self.match.nodes[id(item.node)]
        extent = self._extents.of(Take(item.node, item.column, item.bare))
        assert extent is not None
        if not self._extents.own_lines(extent):
            raise SharedLineError(stmt_start(self.source, node))
        start = self._with_comments(item, extent)
        return reindent(self.text[start : extent.end], self._indent_of(extent), indent)
