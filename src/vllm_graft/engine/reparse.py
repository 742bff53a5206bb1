"""The syntax tree of an edited file, parsing only the functions that changed.

Parsing is most of the cost of a patch. All edits of a patch fall inside functions
whose borders are known, so the rest of the tree can be kept. Whenever that is in
doubt the whole file is parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from vllm_graft.engine.layout import blocks, statements, stmt_start
from vllm_graft.engine.source import Source, parse
from vllm_graft.engine.splice import Edit, splice

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Edited:
    """The tree of ``source`` with ``edits`` made.

    Line numbers in it are those of neither text; it is for matching only.

    Raises:
        SourceError: The result is not Python.
        OverlapError: Two edits change the same text.
    """

    def __init__(self, source: Source, edits: Sequence[Edit]) -> None:
        self._source = source
        self.changed = bool(edits)
        self._new: dict[int, str | None] | None = {}
        self.text = splice(source.text, edits) if edits else source.text
        self.tree = self._parse(edits) if edits else source.tree

    def text_of(self, function: ast.AST) -> str | None:
        """The text of a function in the tree, or None where it is not known."""
        if self._new is None:
            return None
        if id(function) in self._new:
            return self._new[id(function)]
        known = self._source.texts
        if id(function) not in known:
            start, end = _lines(self._source, function)
            known[id(function)] = self._source.text[start:end]
        return known[id(function)]

    def _parse(self, edits: Sequence[Edit]) -> ast.Module:
        source = self._source
        replaced: dict[int, ast.AST] = {}
        texts: dict[int, str | None] = {}
        pending = list(edits)
        while pending:
            function = _enclosing(source, source.tree, pending[0])
            start, end = _lines(source, function) if function else (0, 0)
            mine = [e for e in pending if start <= e.start and e.end <= end]
            parsed = _parse(source, function, mine) if function else None
            if function is None or parsed is None:
                self._new = None
                return source.with_text(self.text).tree
            replaced[id(function)], text = parsed
            # Positions below it are those of its own text.
            texts.update((id(inner), None) for inner in _inner(replaced[id(function)]))
            texts[id(replaced[id(function)])] = text
            pending = [edit for edit in pending if edit not in mine]
        tree = _copy(source.tree, replaced)
        assert isinstance(tree, ast.Module)
        self._new = texts
        return tree


def _inner(function: ast.AST) -> Iterator[ast.AST]:
    return (node for node in statements(function) if isinstance(node, _FUNCTIONS))


def _lines(source: Source, node: ast.AST) -> tuple[int, int]:
    start = source.line_start(stmt_start(source, node))
    return start, source.line_end(source.end(node))


def _enclosing(source: Source, node: ast.AST, edit: Edit) -> ast.AST | None:
    """The outermost function that holds an edit, or None."""
    for _, block in blocks(node):
        for child in block:
            if not isinstance(child, ast.stmt):
                continue
            start, end = _lines(source, child)
            # An insertion at either border would fall outside of the function.
            if start < edit.start and edit.end <= end and edit.start < end:
                if isinstance(child, _FUNCTIONS):
                    return child
                return _enclosing(source, child, edit)
    return None


def _parse(
    source: Source, function: ast.AST, edits: Sequence[Edit]
) -> tuple[ast.AST, str] | None:
    start, end = _lines(source, function)
    shifted = [Edit(e.start - start, e.end - start, e.text) for e in edits]
    text = splice(source.text[start:end], shifted)
    prefix = "if 1:\n" if text[:1].isspace() else ""
    parsed = source.parsed.get(
        (id(function), text)
    )  # guards are judged on much the same result
    if parsed is None:
        try:
            body = parse(prefix + text).body
        except (SyntaxError, ValueError):
            return None
        if prefix:
            body = body[0].body  # type: ignore[attr-defined]
        if len(body) != 1:
            return None
        parsed = source.parsed[id(function), text] = body[0]
    return (parsed, text) if type(parsed) is type(function) else None


def _shallow(node: ast.AST) -> ast.AST:
    twin = type(node).__new__(type(node))
    twin.__dict__.update(node.__dict__)
    return twin


def _copy(node: ast.AST, replaced: dict[int, ast.AST]) -> ast.AST:
    """``node`` with some descendants replaced; the rest is shared."""
    if id(node) in replaced:
        return replaced[id(node)]
    if isinstance(node, _FUNCTIONS):
        return node  # only outermost functions are ever replaced
    twin = None
    for name, block in blocks(node):
        children = [_copy(child, replaced) for child in block]
        if any(a is not b for a, b in zip(children, block, strict=True)):
            twin = twin or _shallow(node)
            setattr(twin, name, children)
    return twin or node
