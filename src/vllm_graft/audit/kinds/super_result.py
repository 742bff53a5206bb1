"""Overrides that take what ``super()`` returns for a resolved result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import (
    Context,
    Hit,
    instance_of,
    receiver,
    short,
    terminal,
)
from vllm_graft.audit.modules import Module, Scope, Site
from vllm_graft.audit.results import ResultKind, describe, origins
from vllm_graft.audit.rules import Rule


class SuperResult(ResultKind):
    """``super().m(...)``, ``super(C, self).m(...)`` and ``Base.m(self, ...)``."""

    WORDS = ("methods",)

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("classes")
        self.methods = frozenset(rule.all("methods"))
        self._mixed: dict[Module, dict[str, str]] = {}
        self._running: set[ast.AST] = set()

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        done: set[Scope] = set()
        for site in sites:
            scope = site.scope
            if scope in done or scope.node is None:
                continue
            call = site.node
            if not isinstance(call, ast.Call) or not self._is_source(call, scope):
                continue
            done.add(scope)
            events = self.follow(scope, self._is_source)
            for call in origins(events, "use"):
                subject = f"{short(instance_of(scope))}.{terminal(call.func)}"
                yield Hit(call, scope, subject, describe(events, call))

    def _is_source(self, call: ast.Call, scope: Scope) -> bool:
        on = receiver(call, self.methods)
        if on is None:
            return False
        owner = instance_of(scope)
        if not owner or owner in self.targets:
            return False
        whole = self._whole(owner, scope)
        if not whole:
            return False
        match on:
            case ast.Call(func=ast.Name(id="super")):
                line = self.project.ancestors(whole)
                above = line[line.index(owner) + 1 :]
            case ast.Name() | ast.Attribute() if call.args[:1]:
                above = tuple(self.project.resolve(on, scope))
                if not any(self.is_a(a, self.targets) for a in above):
                    return False
            case _:
                return False
        return self._unresolved(above, terminal(call.func))

    def _whole(self, owner: str, scope: Scope) -> str:
        """The subclass that a class is, or is mixed into; empty if there is none."""
        if self.is_a(owner, self.targets):
            return owner
        if scope.module not in self._mixed:
            self._mixed[scope.module] = self.mixed(scope.module, self.targets)
        return self._mixed[scope.module].get(owner, "")

    def _unresolved(self, above: tuple[str, ...], name: str) -> bool:
        """Whether the nearest definition of a method hands on an unresolved result."""
        for ancestor in above:
            if ancestor in self.targets:
                return True
            for module, node in self.project.classes(ancestor):
                function = module.function(node, name)
                if function is None:
                    continue
                if function in self._running:
                    return False
                self._running.add(function)
                events = self.follow(
                    module.method_scope(node, function), self._is_source
                )
                self._running.discard(function)
                return any(event.kind == "return" for event in events)
        return False
