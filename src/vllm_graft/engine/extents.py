"""The physical lines that the items of a matched change stand on."""

from __future__ import annotations

import re
from typing import Final

from vllm_graft.engine.items import Drop, Gap, Item, Keep, Take
from vllm_graft.engine.layout import Part, Span, span, stmt_start
from vllm_graft.engine.match import Match
from vllm_graft.engine.source import Source
from vllm_graft.engine.splice import LostError
from vllm_graft.engine.text import comments, indentation

_BLANK: Final = " \t\f"
_REST_OF_LINE: Final = re.compile(
    r"[ \t\f]*(;[ \t\f]*)?(#[^\r\n]*)?(\r\n|\r|\n)", re.ASCII
)
# Python reads these in the first two lines only, so nothing goes above them.
_OPENING: Final = re.compile(r"#!|[ \t\f]*#.*?coding[:=]")


class Extents:
    """Finds lines around the code of one match.

    Args:
        source: The file; its text ends with a line ending.
        match: Where the change's before view matched.
    """

    def __init__(self, source: Source, match: Match) -> None:
        self.source = source
        self.text = source.text
        self.match = match
        self.line = int(getattr(match.block.nodes[0], "lineno", 0))

    def of(self, item: Item) -> Span | None:
        """The lines of an item, or None (blank, new, an ellipsis over nothing).

        Code that shares a line with other code has only its own extent.

        Raises:
            LostError: The source has no such line.
        """
        if isinstance(item, Keep | Drop):
            return self._widen(self._span(item.line.part), isinstance(item, Drop))
        if isinstance(item, Take):
            node = self.match.nodes[id(item.node)]
            code = Span(stmt_start(self.source, node), self.source.end(node))
            lines = self._widen(code, exact=True)
            if not self.own_lines(lines):
                return lines
            indent = indentation(self.text[lines.start : lines.end])
            return Span(lines.start, self.below_deeper_comments(lines.end, indent))
        if isinstance(item, Gap):
            run = self.match.runs.get(id(item.node))
            if run and run.nodes:
                start = stmt_start(self.source, run.nodes[0])
                return self._widen(Span(start, self.source.end(run.nodes[-1])), False)
        return None

    def _span(self, part: Part) -> Span:
        node = self.match.nodes.get(id(part.node))
        if node is None:
            raise LostError(self.line)
        try:
            return span(self.source, Part(node, part.name))
        except (AssertionError, ValueError, IndexError) as error:
            raise LostError(self.line) from error

    def _widen(self, code: Span, exact: bool) -> Span:
        start = self.source.line_start(code.start)
        left = self.text[start : code.start].strip(_BLANK)
        rest = self.rest_of_line(code.end)
        if exact and (left or self.continues(start) or not rest):
            return code
        return Span(code.start if left else start, rest.end() if rest else code.end)

    def rest_of_line(self, offset: int) -> re.Match[str] | None:
        """What follows code on its line, if that is no other code."""
        return _REST_OF_LINE.match(self.text, offset)

    def continues(self, line_start: int) -> bool:
        """Whether a line continues the one above it with a backslash."""
        number = self.source.line_number(line_start)
        above = self.source.line(number - 1).rstrip("\r\n") if number > 1 else ""
        return above.endswith("\\") and not comments(above)

    def own_lines(self, extent: Span) -> bool:
        """Whether an extent is whole physical lines."""
        start = self.source.line_start(extent.start)
        return extent.start == start and self.text[extent.end - 1] in "\r\n"

    def comments_above(self, start: int) -> int:
        """The start of the comment lines that stand directly above a line."""
        indent = indentation(self.text[start : self.source.line_end(start)])
        while start > 0:
            above = self.source.line_start(start - 1)
            line = self.text[above:start]
            if not line.lstrip().startswith("#") or indentation(line) != indent:
                break
            if self.source.line_number(above) <= 2 and _OPENING.match(line):
                break
            start = above
        return start

    def below_deeper_comments(self, at: int, indent: str) -> int:
        """Past the comment lines below a line that close a block deeper than it.

        Comments above code that is as deep belong to that code.
        """
        start = best = at
        while at < len(self.text):
            end = self.source.line_end(at)
            line = self.text[at:end]
            deeper = len(indentation(line)) > len(indent)
            if line.strip() and not line.lstrip().startswith("#"):
                return start if deeper else best
            if line.strip() and not deeper:
                return best
            if line.strip():
                best = end
            at = end
        return best
