"""Checks ``ensure`` and ``when`` conditions against a tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from vllm_graft.layout import all_blocks
from vllm_graft.match import Matcher
from vllm_graft.patchfile import Condition
from vllm_graft.pattern import View
from vllm_graft.scope import find_scopes


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
        lines = condition.lines
        self._view = View(path, "pattern", lines, range(len(lines)))
        _ = self._view.statements

    @cached_property
    def _matcher(self) -> Matcher:
        view = self._view
        return Matcher(view.statements, exclusion=view.exclusion)

    def failure(self, tree: ast.Module) -> str | None:
        """Why the condition does not hold in a tree, or None where it does."""
        found = next(self._find(tree), None)
        summary = self.condition.summary
        if self.condition.negated and found is not None:
            line = getattr(found, "lineno", 0)
            return f"not so: {summary} (line {line})"
        if not self.condition.negated and found is None:
            return f"not so: {summary}"
        return None

    def _find(self, tree: ast.Module) -> Iterator[ast.AST]:
        pattern = self._view.statements
        for scope in find_scopes(tree, [self.condition.scope]):
            if len(pattern) == 1 and isinstance(pattern[0], ast.Expr):
                yield from self._matcher.search(pattern[0].value, scope)
                continue
            for block in all_blocks(scope):
                for match in self._matcher.find(block):
                    yield match.block.nodes[0]
