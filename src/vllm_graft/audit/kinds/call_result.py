"""Calls that go round the executors and take the result for a resolved one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import Context, Hit, instance_of, terminal
from vllm_graft.audit.modules import Scope, Site
from vllm_graft.audit.results import ResultKind, describe, origins
from vllm_graft.audit.rules import Rule


class CallResult(ResultKind):
    """``runner.m(...)`` where the runner is one of the classes, or a wrapper of one.

    ``methods`` always give an unresolved result. ``passing`` ones may hand one on: on
    a wrapper they do, on the classes where their code says so.
    """

    WORDS = ("methods", "passing")

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("classes")
        self.wrappers = self.names("wrappers")
        self.exempt = self.names("exempt")
        self.methods = frozenset(rule.all("methods"))
        self.passing = frozenset(rule.all("passing"))
        self.holders = frozenset(rule.all("holders"))
        self._handing: dict[tuple[str, str], bool] = {}

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        done: set[Scope] = set()
        for site in sites:
            scope = site.scope
            if scope in done or self._is_exempt(scope):
                continue
            if not isinstance(site.node, ast.Call):
                continue
            if not self._is_source(site.node, scope):
                continue
            done.add(scope)
            events = self.follow(scope, self._is_source)
            for call in origins(events, "use"):
                yield Hit(call, scope, ast.unparse(call.func), describe(events, call))

    def _is_exempt(self, scope: Scope) -> bool:
        owner = instance_of(scope)
        return bool(owner) and self.is_a(owner, self.exempt)

    def _is_source(self, call: ast.Call, scope: Scope) -> bool:
        match call.func:
            case ast.Attribute(value=receiver, attr=name):
                pass
            case _:
                return False
        if name not in self.methods and name not in self.passing:
            return False
        if isinstance(receiver, ast.Call) and terminal(receiver.func) == "super":
            return self._base_hands_on(instance_of(scope), name)
        classes = self.types.of(receiver, scope)
        if classes:
            return any(self._hands_on(dotted, name) for dotted in classes)
        named = self.project.resolve(receiver, scope)
        if any(self.is_a(dotted, self.targets) for dotted in named):
            # An override that calls its base by name is for another rule.
            own = instance_of(scope)
            inside = bool(own) and self.is_a(own, self.targets)
            return not inside and name in self.methods
        return name in self.methods and terminal(receiver) in self.holders

    def _base_hands_on(self, dotted: str, name: str) -> bool:
        """The same for a wrapper's base; a runner's is for another rule."""
        if not dotted or self.is_a(dotted, self.targets) or not self._wraps(dotted):
            return False
        base = self.project.ancestors(dotted)[1:2]
        return any(self._hands_on(ancestor, name) for ancestor in base)

    def _hands_on(self, dotted: str, name: str) -> bool:
        key = (dotted, name)
        if key not in self._handing:
            self._handing[key] = False  # what a cycle gets
            self._handing[key] = self._find_out(dotted, name)
        return self._handing[key]

    def _find_out(self, dotted: str, name: str) -> bool:
        """Whether a method of a class gives an unresolved result."""
        runner = self.is_a(dotted, self.targets)
        if not runner and not self._wraps(dotted):
            return False
        for ancestor in self.project.ancestors(dotted):
            if ancestor in self.wrappers:
                return True
            if ancestor in self.targets and name in self.methods:
                return True
            for module, node in self.project.classes(ancestor):
                if function := module.function(node, name):
                    scope = module.method_scope(node, function)
                    events = self.follow(scope, self._is_inner_source)
                    return any(event.kind == "return" for event in events)
        return not runner

    def _wraps(self, dotted: str) -> bool:
        """Whether a class is a wrapper whose inner object may be one of the classes."""
        if not self.is_a(dotted, self.wrappers):
            return False
        inner = self.types.attribute(dotted, self.rule.one("inner"))
        return not inner or any(self.is_a(c, self.targets) for c in inner)

    def _is_inner_source(self, call: ast.Call, scope: Scope) -> bool:
        """The same for a method that is looked through, which may ask `super()`."""
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                runner = self.is_a(instance_of(scope), self.targets)
                return name in self.methods or (name in self.passing and not runner)
        return self._is_source(call, scope)
