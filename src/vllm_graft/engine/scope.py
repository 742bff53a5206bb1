"""Finds definitions by a glob over their qualified names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from vllm_graft.engine.layout import blocks
from vllm_graft.engine.parser import MODULE

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every definition below a node with its dotted name, in source order.

    The name is like ``__qualname__`` without ``<locals>``; definitions under
    ``if``, ``try`` and the like count as if they stood outside of it.
    """
    for _, block in blocks(node):
        for child in block:
            if isinstance(child, _DEFS):
                name = f"{prefix}{child.name}"
                yield name, child
                yield from definitions(child, f"{name}.")
            else:
                yield from definitions(child, prefix)


def find_scopes(tree: ast.Module, scopes: Sequence[str]) -> list[ast.AST]:
    """The definitions that any of the globs names, in source order.

    A definition inside of one that is found already is not listed again.
    """
    if MODULE in scopes:
        return [tree]
    found: dict[int, ast.AST] = {}
    for scope in scopes:
        for node in _descend(tree, scope.split(".")):
            found.setdefault(id(node), node)
    nested = {
        id(inner)
        for node in found.values()
        if len(found) > 1
        for _, inner in definitions(node)
    }
    nodes = [node for key, node in found.items() if key not in nested]
    return sorted(nodes, key=lambda node: node.lineno)  # type: ignore[attr-defined]


def nearest_names(tree: ast.Module, scope: str) -> list[str]:
    """Names of definitions that a mistyped or renamed scope may have meant."""
    from difflib import get_close_matches  # noqa: PLC0415 (slow, and rarely needed)

    names = sorted({name for name, _ in definitions(tree)})
    return get_close_matches(scope, names, n=2, cutoff=0.7)


def _descend(node: ast.AST, glob: Sequence[str]) -> Iterator[ast.AST]:
    """The definitions below a node whose dotted names match a glob.

    ``*`` stands for one component or a part of it, ``**`` for any number.
    """
    for child in _children(node):
        name = child.name
        if glob[0] == "**":
            if len(glob) == 1 or (len(glob) == 2 and _fits(name, glob[1])):
                yield child
            yield from _descend(child, glob)
            if len(glob) > 2 and _fits(name, glob[1]):
                yield from _descend(child, glob[2:])
        elif _fits(name, glob[0]):
            if len(glob) == 1 or glob[1:] == ["**"]:
                yield child
            if len(glob) > 1:
                yield from _descend(child, glob[1:])


def _fits(name: str, glob: str) -> bool:
    return name == glob or (not glob.isidentifier() and fnmatchcase(name, glob))


def _children(
    node: ast.AST,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for _, block in blocks(node):
        for child in block:
            if isinstance(child, _DEFS):
                yield child
            else:
                yield from _children(child)
