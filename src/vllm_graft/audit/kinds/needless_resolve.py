"""Code that resolves what is resolved already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from vllm_graft.audit.context import Context, Hit, receiver, terminal
from vllm_graft.audit.modules import Scope, Site
from vllm_graft.audit.results import ResultKind, origins
from vllm_graft.audit.rules import Rule


class NeedlessResolve(ResultKind):
    """``executor.m(...).get_output()`` without a look at what it is."""

    WORDS = ("methods",)
    DROP: Literal["resolved", "unresolved"] = "unresolved"
    ITEMS = True

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("classes")
        self.methods = frozenset(rule.all("methods"))
        self.holders = frozenset(rule.all("holders"))

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        word = self.rule.one("resolve").encode()
        if not sites or word not in sites[0].scope.module.data:
            return
        done: set[Scope] = set()
        for site in sites:
            call, scope = site.node, site.scope
            if scope in done or not isinstance(call, ast.Call):
                continue
            if not self._is_source(call, scope):
                continue
            done.add(scope)
            for event in self.follow(scope, self._is_source):
                if event.kind == "resolve":
                    first = origins([event], "resolve")[0]
                    said = f"line {first.lineno}"
                    yield Hit(event.node, scope, ast.unparse(first.func), said)

    def _is_source(self, call: ast.Call, scope: Scope) -> bool:
        on = receiver(call, self.methods)
        if on is None:
            return False
        classes = self.types.of(on, scope)
        if classes:
            return any(self.is_a(dotted, self.targets) for dotted in classes)
        return terminal(on) in self.holders
