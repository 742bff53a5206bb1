"""What an unresolved result is, and which functions hand one on."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal

from vllm_graft.audit.context import Kind, terminal
from vllm_graft.audit.expressions import Event, Policy
from vllm_graft.audit.flow import Flow
from vllm_graft.audit.guards import Guards
from vllm_graft.audit.guards import Kind as TypeKind
from vllm_graft.audit.inference import find_function
from vllm_graft.audit.modules import Scope


class ResultKind(Kind):
    """A kind that follows results; the rule says which types are unresolved."""

    #: See :attr:`Guards.drop`.
    DROP: Literal["resolved", "unresolved"] = "resolved"
    #: See :attr:`Policy.items`.
    ITEMS = False

    def follow(
        self,
        scope: Scope,
        source: Callable[[ast.Call, Scope], bool],
    ) -> list[Event]:
        """What a function does with the results of some calls.

        Args:
            scope: The function's scope, or the module's.
            source: Whether a call there has an unresolved result.
        """
        resolve = self.rule.one("resolve")
        guards = Guards(
            lambda types: self._kind(types, scope),
            resolve,
            self.DROP,
            self.rule.one("flag"),
        )
        policy = Policy(
            lambda call: source(call, scope),
            guards,
            resolve,
            frozenset(self.rule.all("through")),
            frozenset(self.rule.all("allow")),
            lambda call, place: self._passed(call, place, scope),
            self.ITEMS,
        )
        flow = Flow(policy)
        flow.run(scope.node.body if scope.node else scope.module.tree.body)
        return list(flow.events.values())

    def _kind(self, types: ast.expr, scope: Scope) -> TypeKind:
        unresolved = self.names("unresolved")
        found: set[bool | None] = set()
        for part in _parts(types):
            names = self.project.resolve(part, scope)
            if names:
                found |= {self.is_a(name, unresolved) for name in names}
            elif terminal(part) not in {"NoneType", "type"}:
                found.add(None if not isinstance(part, ast.Name) else _builtin(part))
        if None in found:
            return "unknown"
        if found == {True}:
            return "only"
        return "some" if True in found else "none"

    def _passed(self, call: ast.Call, place: int | str, scope: Scope) -> str:
        """What is wrong with passing an unresolved result to a call."""
        name = terminal(call.func)
        if name in self.rule.all("consumers"):
            return f"is passed to {name}()"
        annotation = self._parameter(call, place, scope)
        if annotation is None:
            return ""
        node, around = annotation
        wanted = self.types.annotation(node, around)
        unresolved = self.names("unresolved")
        if wanted & self.names("resolved") and not any(
            self.is_a(c, unresolved) for c in wanted
        ):
            return f"is passed to {name}(), which wants {ast.unparse(node)}"
        return ""

    def _parameter(
        self, call: ast.Call, place: int | str, scope: Scope
    ) -> tuple[ast.expr, Scope] | None:
        """The annotation of the parameter that an argument goes to."""
        skip = 0
        found = None
        for dotted in self.project.resolve(call.func, scope):
            found = found or find_function(self.project, dotted)
        if found is None and isinstance(call.func, ast.Attribute):
            for owner in self.types.of(call.func.value, scope):
                method = self.project.method(owner, call.func.attr)
                if method is not None:
                    found, skip = (method[1], method[2]), 1
        if found is None:
            return None
        module, function = found
        arguments = [*function.args.posonlyargs, *function.args.args]
        if isinstance(place, int):
            arguments = arguments[skip:][place : place + 1]
        else:
            every = [*arguments, *function.args.kwonlyargs]
            arguments = [a for a in every if a.arg == place]
        if not arguments or arguments[0].annotation is None:
            return None
        return arguments[0].annotation, module.scope


def origins(events: list[Event], kind: str) -> list[ast.Call]:
    """The calls whose results something was done with, in the order of the lines."""
    found = {
        node
        for event in events
        if event.kind == kind
        for node in event.origins
        if isinstance(node, ast.Call)
    }
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def describe(events: list[Event], call: ast.Call | None = None) -> str:
    """What is done with the results, in the order of the lines.

    Args:
        events: What was seen.
        call: Only what is done with this call's result.
    """
    uses = sorted(
        {
            (getattr(event.node, "lineno", 0), event.text)
            for event in events
            if event.kind == "use" and (call is None or call in event.origins)
        }
    )
    shown = [f"{text} on line {line}" for line, text in uses[:3]]
    more = len(uses) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _parts(types: ast.expr) -> list[ast.expr]:
    match types:
        case ast.Tuple(elts=parts):
            return [inner for part in parts for inner in _parts(part)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_parts(left), *_parts(right)]
    return [types]


def _builtin(node: ast.Name) -> bool | None:
    """Whether a name is a builtin type, which no unresolved result is."""
    known = {"list", "tuple", "dict", "set", "str", "int", "float", "bool", "bytes"}
    known |= {"Exception", "BaseException"}
    return False if node.id in known else None
