"""Tells where a hunk stands that changes only how code is laid out.

Both of its views match the same code, so its text decides: the lines of code, and
the comments in and around it.
"""

from __future__ import annotations

from enum import Enum, auto

from vllm_graft.engine.change import Change
from vllm_graft.engine.extents import Extents
from vllm_graft.engine.items import Drop
from vllm_graft.engine.layout import stmt_start
from vllm_graft.engine.match import Match
from vllm_graft.engine.source import Source
from vllm_graft.engine.substitute import Substitution
from vllm_graft.engine.text import code_lines, comments


class LayoutState(Enum):
    """Which of the two layouts is there."""

    BEFORE = auto()
    AFTER = auto()
    NEITHER = auto()


def layout_state(source: Source, change: Change, match: Match) -> LayoutState:
    """Compares the text of matched code with both views.

    Args:
        source: The file; its text ends with a line ending.
        change: An alternative whose views are the same code.
        match: Where it matched.
    """
    write = Substitution(source, change, match).apply
    removed, added = (
        "\n".join(line.text for line in change.lines if line.kind == kind)
        for kind in "-+"
    )
    extents = Extents(source, match)
    lines = [extents.of(item) for item in change.items if isinstance(item, Drop)]
    here = [
        line
        for extent in lines
        if extent
        for line in code_lines(source.text[extent.start : extent.end])
    ]
    there = set(comments(_around(source, extents)))
    gone, new = set(comments(removed)), set(comments(added))
    if here == code_lines(write(added)) and new <= there and not (gone - new) & there:
        return LayoutState.AFTER
    if here == code_lines(write(removed)) and gone <= there:
        return LayoutState.BEFORE
    return LayoutState.NEITHER


def _around(source: Source, extents: Extents) -> str:
    """The matched lines with the comment lines above and below them."""
    nodes = extents.match.block.nodes
    first = source.line_start(stmt_start(source, nodes[0]))
    stop = source.line_end(source.end(nodes[-1]))
    while stop < len(source.text):
        end = source.line_end(stop)
        line = source.text[stop:end].strip()
        if line and not line.startswith("#"):
            break
        stop = end
    return source.text[extents.comments_above(first) : stop]
