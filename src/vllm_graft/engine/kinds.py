"""Which kinds of statements a pattern can match, and a block has."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from vllm_graft.engine.pattern import meta_name


def kinds_of(statements: Iterable[ast.AST]) -> frozenset[object]:
    """What kinds of statements a block has: a pattern's kinds must be among them.

    Returns and assignments are told apart by the kind of their value too.
    """
    found: set[object] = set()
    for statement in statements:
        kind = type(statement)
        if kind is ast.AnnAssign:
            kind = ast.Assign  # see comparable
        found.add(kind)
        if kind is ast.Return or kind is ast.Assign:
            value = statement.value  # type: ignore[attr-defined]
            if not isinstance(value, ast.Name) or meta_name(value.id) is None:
                found.add((kind, type(value)))
    return frozenset(found)


def comparable(pattern: ast.AST, node: ast.AST) -> bool:
    """Whether a statement is of a kind that a pattern can match.

    ``x = 1`` matches ``x: int = 1``: a pattern may leave annotations out.
    """
    if type(pattern) is type(node):
        return True
    is_plain = isinstance(pattern, ast.Assign) and len(pattern.targets) == 1
    return is_plain and isinstance(node, ast.AnnAssign) and node.value is not None
