"""Where each logical line of a parsed file stands in its text.

A *logical line* is a simple statement or the header of a compound one: ``if x:``,
``else:``, ``except E as e:``, ``case 1:``, ``@decorator``, ``def f():``. Patches
edit whole logical lines, so these spans are all that splicing needs to know.
:mod:`ast` does not record where ``else``, ``finally``, ``case`` and the colons
stand; they are found here by scanning the few characters where they can be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from vllm_graft.engine.source import Source

BLOCKS: Final = ("body", "handlers", "cases", "orelse", "finalbody")
_COMPOUND: Final = {
    ast.Module,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.ExceptHandler,
    ast.Match,
    ast.match_case,
    *([ast.TryStar] if hasattr(ast, "TryStar") else []),  # Python 3.11
}
_CODE = re.compile(r"#[^\r\n]*|[^\s\\]")


class Span(NamedTuple):
    """Half-open character range of one logical line, colon included."""

    start: int
    end: int


class Part(NamedTuple):
    """One logical line of the tree: a node, and which of its lines.

    ``name`` is ``head`` (the statement itself or its first header), ``else``,
    ``finally``, or ``@0``, ``@1`` … for decorators.
    """

    node: ast.AST
    name: str = "head"


def blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
    """The statement lists of a node, in source order."""
    if type(node) in _COMPOUND:
        for name in BLOCKS:
            block = getattr(node, name, None)
            if block:
                yield name, block


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and every statement in it."""
    yield node
    for _, block in blocks(node):
        for child in block:
            yield from statements(child)


def all_blocks(node: ast.AST) -> Iterator[list[ast.AST]]:
    """Every statement list in and below a node."""
    for name, block in blocks(node):
        if name in ("body", "orelse", "finalbody"):
            yield block
        for child in block:
            yield from all_blocks(child)


def is_elif(source: Source, node: ast.AST) -> bool:
    """Whether the ``orelse`` of an ``if`` is written as ``elif``."""
    orelse = getattr(node, "orelse", [])
    return (
        isinstance(node, ast.If)
        and len(orelse) == 1
        and isinstance(orelse[0], ast.If)
        and source.text.startswith("elif", source.start(orelse[0]))
    )


def parts(source: Source, node: ast.AST) -> Iterator[Part]:
    """The logical lines of a statement and of all it contains, in order."""
    for index in range(len(getattr(node, "decorator_list", ()))):
        yield Part(node, f"@{index}")
    yield Part(node)
    for name, block in blocks(node):
        if name == "orelse" and not is_elif(source, node):
            yield Part(node, "else")
        if name == "finalbody":
            yield Part(node, "finally")
        for child in block:
            yield from parts(source, child)


def span(source: Source, part: Part) -> Span:
    """The character range of one logical line."""
    node = part.node
    if part.name == "head":
        start = first = _own_start(source, node)
        body = _first_block(node)
        if body is None:
            return Span(start, source.end(node))
        first = max([start, *(source.end(child) for child in _header_nodes(node))])
        return Span(start, _colon(source, first, stmt_start(source, body[0])))
    if part.name.startswith("@"):
        decorator = node.decorator_list[int(part.name[1:])]  # type: ignore[attr-defined]
        first = source.start(decorator)
        start = _line_opening(source, "@", first)
        return Span(
            start, _past_parentheses(source, start, first, source.end(decorator))
        )
    block = node.orelse if part.name == "else" else node.finalbody  # type: ignore[attr-defined]
    stop = stmt_start(source, block[0])
    previous = _last_before(node, part.name)
    start = _keyword(source, source.end(previous), stop, part.name)
    return Span(start, _colon(source, start, stop))


def stmt_start(source: Source, node: ast.AST) -> int:
    """Where a statement begins, its decorators included."""
    if getattr(node, "decorator_list", None):
        return span(source, Part(node, "@0")).start
    return _own_start(source, node)


def _own_start(source: Source, node: ast.AST) -> int:
    # A match_case has no position; the keyword stands just before its pattern.
    if isinstance(node, ast.match_case):
        return _line_opening(source, "case", source.start(node.pattern))
    return source.start(node)


def _first_block(node: ast.AST) -> list[ast.AST] | None:
    return next((block for _, block in blocks(node)), None)


def _last_before(node: ast.AST, name: str) -> ast.AST:
    stop = {"else": "orelse", "finally": "finalbody"}[name]
    earlier: list[ast.AST] = []
    for block_name, block in blocks(node):
        if block_name == stop:
            break
        earlier = block
    last = earlier[-1]
    return last.body[-1] if isinstance(last, ast.match_case) else last


def _header_nodes(node: ast.AST) -> Iterator[ast.AST]:
    skipped = {id(child) for _, block in blocks(node) for child in block}
    skipped |= {id(child) for child in getattr(node, "decorator_list", ())}
    for child in ast.iter_child_nodes(node):
        if id(child) in skipped:
            continue
        if hasattr(child, "end_lineno"):
            yield child
        else:  # arguments, withitem: containers without a position
            yield from _header_nodes(child)


def _line_opening(source: Source, word: str, before: int) -> int:
    """Where the nearest line above ``before`` that begins with a word does so."""
    for number in range(source.line_number(before), 0, -1):
        line = source.line(number)
        start = source.line_start_of(number) + len(line) - len(line.lstrip(" \t\f"))
        if start < before and source.text.startswith(word, start):
            return start
    raise AssertionError(f"{source.path}: no {word} before {before}")


def _past_parentheses(source: Source, start: int, node_start: int, end: int) -> int:
    """The end of an expression with the parentheses that open before it."""
    opened = _CODE.findall(source.text, start, node_start).count("(")
    for found in _CODE.finditer(source.text, end):
        if not opened:
            break
        assert found.group() == ")" or found.group().startswith("#")
        opened -= found.group() == ")"
        end = found.end()
    return end


def _colon(source: Source, start: int, stop: int) -> int:
    for found in _CODE.finditer(source.text, start, stop):
        if found.group() == ":":
            return found.end()
    raise AssertionError(f"{source.path}: no colon between {start} and {stop}")


def _keyword(source: Source, start: int, stop: int, word: str) -> int:
    for found in _CODE.finditer(source.text, start, stop):
        if source.text.startswith(word, found.start()):
            return found.start()
    raise AssertionError(f"{source.path}: no {word} between {start} and {stop}")
