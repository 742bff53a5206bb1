"""Finds the statements that a hunk moves: the same ones on - lines and + lines.

The same, to the letter: where the patch writes a statement in another layout or with
other comments, it is to be written so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from vllm_graft.engine.layout import statements
from vllm_graft.engine.patchfile import Kind
from vllm_graft.engine.pattern import is_dots
from vllm_graft.engine.text import indentation, reindent
from vllm_graft.engine.views import View, Views


class Move(NamedTuple):
    """One statement that moves.

    Args:
        old: It in the before view.
        new: It in the after view.
        taken: The rows of the hunk that it leaves.
        put: The rows of the hunk that it goes to.
    """

    old: ast.AST
    new: ast.AST
    taken: frozenset[int]
    put: frozenset[int]


def find_moves(views: Views) -> Iterator[Move]:
    """The moves, in the order of their new places. Inner ones move with the outer."""
    removed = [
        (s, r, _letters(views, r)) for s, r in _changed(views, views.before, "-")
    ]
    done: set[int] = set()
    for added, rows in _changed(views, views.after, "+"):
        if not removed or rows & done:
            continue
        wanted = _letters(views, rows)
        twin = next((one for one in removed if one[2] == wanted), None)
        if twin is not None:
            yield Move(twin[0], added, twin[1], rows)
            done |= rows
            removed = [one for one in removed if not one[1] & twin[1]]


def _changed(
    views: Views, view: View, kind: Kind
) -> Iterator[tuple[ast.AST, frozenset[int]]]:
    """The statements that are wholly on removed or added lines of their own."""
    for block in view.sibling_lists():
        for statement in block:
            rows = frozenset(_rows(view, statement))
            kinds = {
                views.lines[row].kind for row in rows if views.lines[row].text.strip()
            }
            if kinds == {kind} and not is_dots(statement):
                inside = {id(node) for node in statements(statement)}
                if all(
                    id(logical.part.node) in inside
                    for logical in view.logical_lines
                    if rows & {logical.rows[0], logical.rows[-1]}
                ):
                    yield statement, rows


def _letters(views: Views, rows: frozenset[int]) -> str:
    """The text of some rows, whatever their indentation."""
    text = "\n".join(views.lines[row].text.rstrip() for row in sorted(rows))
    return reindent(text, indentation(text), "")


def _rows(view: View, statement: ast.AST) -> Iterator[int]:
    """The hunk's rows that a statement stands on, decorators included."""
    assert isinstance(statement, ast.stmt)
    assert statement.end_lineno is not None
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(node.lineno for node in decorators)])
    yield from view.rows[first - 2 : statement.end_lineno - 1]
