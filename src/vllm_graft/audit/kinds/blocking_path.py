"""Overrides that return unresolved results where their caller does not wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import Context, Hit, instance_of, short
from vllm_graft.audit.modules import Scope, Site
from vllm_graft.audit.results import ResultKind, origins
from vllm_graft.audit.rules import Rule


class BlockingPath(ResultKind):
    """A method returns what a producer gave, and the flag may be false there."""

    WORDS = ("methods",)
    PATTERN = r"\bdef\s+(?:{})\b"

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("classes")
        self.handled = self.names("handled")
        self.producers = self.names("producers")
        self.methods = frozenset(rule.all("methods"))

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        for site in sites:
            match site.node, site.owner:
                case ast.FunctionDef(name=name), ast.ClassDef() as owner:
                    pass
                case _:
                    continue
            module = site.scope.module
            dotted = module.class_name(owner)
            wanted = name in self.methods and dotted not in self.handled
            if not wanted or not self.is_a(dotted, self.targets):
                continue
            scope = module.method_scope(owner, site.node)
            events = [
                event
                for event in self.follow(scope, self._is_source)
                if event.kind == "return" and event.flag is not True
            ]
            for event in sorted(events, key=lambda e: getattr(e.node, "lineno", 0)):
                calls = origins([event], "return")
                said = ", ".join(ast.unparse(call.func) for call in calls)
                subject = f"{short(instance_of(scope))}.{name}"
                yield Hit(event.node, scope, subject, f"{said}()")

    def _is_source(self, call: ast.Call, scope: Scope) -> bool:
        return not self.producers.isdisjoint(self.project.resolve(call.func, scope))
