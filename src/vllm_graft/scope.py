"""Finds definitions by a glob over their qualified names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from vllm_graft.layout import blocks
from vllm_graft.parser import MODULE

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
    """The definitions that any of the globs names; nested ones only once."""
    if MODULE in scopes:
        return [tree]
    wanted = [scope.split(".") for scope in scopes]
    found: list[ast.AST] = []
    inside: set[int] = set()
    for name, node in definitions(tree):
        parts = name.split(".")
        if id(node) not in inside and any(_glob(parts, glob) for glob in wanted):
            found.append(node)
            inside |= {id(inner) for _, inner in definitions(node)}
    return found


def nearest_names(tree: ast.Module, scope: str) -> list[str]:
    """Names of definitions that a mistyped or renamed scope may have meant."""
    names = sorted({name for name, _ in definitions(tree)})
    return get_close_matches(scope, names, n=2, cutoff=0.7)


def _glob(parts: Sequence[str], glob: Sequence[str]) -> bool:
    """``*`` stands for one component or a part of it, ``**`` for any number."""
    if not glob:
        return not parts
    if glob[0] == "**":
        return any(_glob(parts[i:], glob[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts) and fnmatchcase(parts[0], glob[0]) and _glob(parts[1:], glob[1:])
    )
