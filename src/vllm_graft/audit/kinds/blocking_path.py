"""Overrides that return unresolved results where their caller does not wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import Context, Hit, instance_of, short, terminal
from vllm_graft.audit.modules import Scope, Site
from vllm_graft.audit.names import Alias
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
                case (
                    ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name),
                    ast.ClassDef() as owner,
                ):
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
        """A call of a producer, by its name or a method's, or by a computed name."""
        if terminal(call.func) in self.rule.all("producer_methods"):
            return True
        if _is_dispatch(call.func, scope):
            return True
        return not self.producers.isdisjoint(self.project.resolve(call.func, scope))


def _is_dispatch(function: ast.expr, scope: Scope) -> bool:
    """Whether a function is looked up on an object by a name in a variable."""
    match function:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Name(), *_]):
            return True
        case ast.Name(id=name):
            bound = scope.names.bound.get(name, ())
            values = [b.value for b in bound if isinstance(b, Alias)]
            return any(
                isinstance(v, ast.Call) and _is_dispatch(v, scope) for v in values
            )
    return False
