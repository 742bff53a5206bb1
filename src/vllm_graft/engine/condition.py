"""Checks ``ensure`` and ``when`` conditions against a tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from vllm_graft.engine.change import choices
from vllm_graft.engine.layout import all_blocks, blocks
from vllm_graft.engine.match import Matcher
from vllm_graft.engine.patchfile import Condition, Line, Where
from vllm_graft.engine.pattern import identifiers
from vllm_graft.engine.reparse import Edited
from vllm_graft.engine.scope import find_scopes
from vllm_graft.engine.splits import Splits
from vllm_graft.engine.views import View
from vllm_graft.errors import PatchError

TextOf = Callable[[ast.AST], "str | None"]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Check:
    """A compiled condition.

    Args:
        path: The patch file, for messages.
        condition: The condition as written.

    Raises:
        PatchError: Its pattern is not Python.
    """

    def __init__(self, path: str, condition: Condition) -> None:
        self.condition = condition
        self._patterns = [
            _Pattern(path, lines, condition.wheres)
            for lines in (condition.lines, *condition.others)
        ]

    def failure(self, edited: Edited, splits: Splits) -> str | None:
        """Why the condition does not hold in a file, or None where it does."""
        tree, text_of = edited.tree, edited.text_of
        scopes = find_scopes(tree, [self.condition.scope])
        found = next(
            (
                node
                for pattern in self._patterns
                for scope in scopes
                for node in pattern.find(scope, text_of)
            ),
            None,
        )
        summary = self.condition.summary
        if self.condition.negated and found is not None:
            if edited.changed:  # line numbers are those of neither text
                return f"not so: {summary} (`{_first_line(found)}` in the result)"
            line = splits.original(getattr(found, "lineno", 0))
            return f"not so: {summary} (line {line})"
        if not self.condition.negated and found is None:
            return f"not so: {summary}"
        return None


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).split("\n", 1)[0]


class _Pattern:
    """One pattern of a condition: a run of statements, or one expression."""

    def __init__(
        self, path: str, lines: Sequence[Line], wheres: Sequence[Where]
    ) -> None:
        view = View(path, "pattern", lines, range(len(lines)))
        self._matcher = Matcher(
            view.statements, choices=choices(path, wheres), limit=view.limit
        )
        if not self._matcher.pattern:
            raise PatchError(
                "a condition that every block meets",
                where=f"{path}:{lines[0].number}",
                hint="write a statement or expression behind 'has'",
            )
        first = self._matcher.pattern[0]
        self._expression = None
        if isinstance(first, ast.Expr) and len(view.statements) == 1:
            self._expression = first.value
        self._names = {
            name
            for node in (*view.statements, *view.required())
            for name in identifiers(node)
        }

    def find(self, scope: ast.AST, text_of: TextOf) -> Iterator[ast.AST]:
        """Where the pattern occurs in a scope."""
        if self._expression is not None:
            for region in self._regions(scope, text_of):
                yield from self._matcher.search(self._expression, region)
            return
        for block in self._blocks(scope, text_of):
            for match in self._matcher.find(block):
                yield match.block.nodes[0]

    def _blocks(self, node: ast.AST, text_of: TextOf) -> Iterator[list[ast.AST]]:
        """The blocks of a scope that can hold the statements."""
        if isinstance(node, _FUNCTIONS):
            if self._may_be_in(text_of(node)):
                yield from all_blocks(node)
            return
        for name, block in blocks(node):
            if name in ("body", "orelse", "finalbody"):
                yield block
            for child in block:
                yield from self._blocks(child, text_of)

    def _may_be_in(self, text: str | None) -> bool:
        # Python reads other spellings of non-ASCII letters as the same name.
        unsure = text is None or not text.isascii()
        return unsure or all(name in text for name in self._names)  # type: ignore[operator]

    def _regions(self, node: ast.AST, text_of: TextOf) -> Iterator[ast.AST]:
        """The parts of a scope that can hold the expression."""
        if isinstance(node, _FUNCTIONS):
            if self._may_be_in(text_of(node)):
                yield node
            return
        inner = list(blocks(node))
        nested = {id(child) for _, block in inner for child in block}
        for child in ast.iter_child_nodes(node):
            if id(child) not in nested:
                yield child
        for _, block in inner:
            for child in block:
                yield from self._regions(child, text_of)
