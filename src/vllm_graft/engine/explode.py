"""Gives statements that share a physical line a line each (``a; b``, ``if x: a``)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from vllm_graft.engine.layout import blocks, statements, stmt_start
from vllm_graft.engine.source import NEWLINE, Source
from vllm_graft.engine.splice import Edit, LostError, splice
from vllm_graft.engine.text import indentation


def explode(source: Source, offset: int) -> str:
    """The text with the physical line of ``offset`` split between its statements.

    Raises:
        LostError: There is nothing to split.
    """
    number = source.line_number(offset)
    unit = indent_unit(source)
    edits = [
        edit
        for parent in statements(source.tree)
        for _, block in blocks(parent)
        if isinstance(block[0], ast.stmt)
        for edit in _separate(source, block, number, unit)
    ]
    if not edits:
        raise LostError(number)
    return splice(source.text, edits)


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


def shares_header_line(source: Source, block: Sequence[ast.AST]) -> bool:
    """Whether a block stands on the line of its header (``if x: a; b``)."""
    first = stmt_start(source, block[0])
    return bool(source.text[source.line_start(first) : first].strip())


def _separate(
    source: Source, block: Sequence[ast.AST], number: int, unit: str
) -> Iterator[Edit]:
    """Line breaks before those statements of a block that line ``number`` holds."""
    first = stmt_start(source, block[0])
    one_line = shares_header_line(source, block)
    line = source.line(source.line_number(first))
    indent = indentation(line) + (unit if one_line else "")
    ends = [source.text.rindex(":", 0, first) + 1] if one_line else []
    ends += [source.end(node) for node in block[:-1]]
    followers = block if one_line else block[1:]
    for end, node in zip(ends, followers, strict=True):
        start = stmt_start(source, node)
        touched = {source.line_number(end), source.line_number(start)}
        between = source.text[end:start].replace("\\\r\n", "").replace("\\\n", "")
        if number in touched and not NEWLINE.search(between.replace("\\\r", "")):
            yield Edit(end, start, source.newline_at(start) + indent)
