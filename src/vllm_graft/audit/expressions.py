"""What expressions do with results that are followed; see :mod:`.flow`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vllm_graft.audit.guards import Guards
from vllm_graft.audit.state import NOTHING, State, Value, key_of

#: Builtins that take anything, and those that look into what they get.
_TAKE_ANY: Final = {
    *("isinstance", "issubclass", "hasattr", "type", "id", "repr", "str", "bool"),
    *("print", "callable", "hash"),
}
_LOOK_INTO: Final = {
    *("len", "list", "tuple", "set", "dict", "iter", "next", "sum", "min", "max"),
    *("sorted", "enumerate", "zip", "map", "filter", "any", "all", "vars", "float"),
    *("int", "reversed", "abs"),
}
_KEEP: Final = {"list", "tuple", "set", "sorted", "reversed", "iter"}
_COLLECT: Final = {"append", "add", "insert", "extend", "appendleft"}


@dataclass
class Policy:
    """What a flow follows.

    Args:
        source: Whether a call's result is to be followed.
        guards: What tests say about a result.
        resolve: The method that resolves a result.
        through: Methods that hand the result on, as a future's does.
        allow: Further attributes that may be read.
        passed: Says what is wrong with passing the result to a call, or nothing:
            of the call, and the argument's position or name.
        items: Whether a result may be a list of results.
    """

    source: Callable[[ast.Call], bool]
    guards: Guards
    resolve: str
    through: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    passed: Callable[[ast.Call, int | str], str] = field(default=lambda *_: "")
    items: bool = False


class Event(NamedTuple):
    """Something done with a result.

    Args:
        kind: ``use``: as if it were resolved; ``resolve``; or ``return``.
        node: Where.
        origins: The calls whose result it may be.
        text: What is done, as in ``.req_ids is read``.
        flag: The value of the watched flag there, where it is known.
    """

    kind: str
    node: ast.AST
    origins: frozenset[ast.AST]
    text: str = ""
    flag: bool | None = None


class Expressions:
    """Evaluates expressions.

    Args:
        policy: What to follow.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.events: dict[tuple[int, str, str], Event] = {}
        self._loops: list[list[State]] = [[]]
        #: What is resolved in a `try` that goes on where it cannot be.
        self._tries: list[set[str]] = []

    def used(self, value: Value, node: ast.AST, text: str) -> None:
        """Notes that a result is used as if it were resolved."""
        if value.origins and not value.known:
            self._event(Event("use", node, value.origins, text))

    def returned(self, node: ast.AST, value: Value, state: State) -> None:
        """Notes that a result, or something that holds it, is returned."""
        if value.origins:
            flag = value.flag if state.flag is None else state.flag
            self._event(Event("return", node, value.origins, "", flag))

    def _event(self, event: Event) -> None:
        key = (id(event.node), event.kind, event.text)
        known = self.events.get(key)
        if known is not None:
            flag = known.flag if known.flag == event.flag else None
            origins = known.origins | event.origins
            event = event._replace(flag=flag, origins=origins)
        self.events[key] = event

    def branches(self, test: ast.expr, state: State) -> tuple[State, State]:
        """Evaluates a test; the states where it is true and where it is false."""
        self.value(test, state)
        return self.policy.guards.split(test, state)

    def value(self, node: ast.AST, state: State) -> Value:
        """What an expression may evaluate to."""
        key = key_of(node)
        if key in state.names and not isinstance(node, ast.NamedExpr):
            return state.names[key]
        match node:
            case ast.Call():
                return self._call(node, state)
            case ast.Attribute(value=value, attr=attribute):
                return self._attribute(node, self.value(value, state), attribute)
            case ast.Await(value=value) | ast.Starred(value=value):
                return self.value(value, state)
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value, state)
                self.bind(target, found, state)
                return found
            case ast.IfExp(test=test, body=body, orelse=orelse):
                true, false = self.branches(test, state)
                return self.value(body, true) | self.value(orelse, false)
            case ast.BoolOp():
                return self._choice(node, state)
            case ast.Lambda():
                return NOTHING
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, state)
        return self._compound(node, state)

    def _compound(self, node: ast.AST, state: State) -> Value:
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return self._all(parts, state).inside()
            case ast.Dict(values=parts):
                return self._all(parts, state).inside()
            case ast.Subscript(value=value, slice=index):
                self.value(index, state)
                found = self.value(value, state)
                if found.wrapped or self.policy.items:
                    return found.item()
                self.used(found, node, "is indexed")
                return NOTHING
            case ast.BinOp(left=left, right=right):
                both = self.value(left, state) | self.value(right, state)
                if both.wrapped:
                    return both
                self.used(both, node, "is calculated with")
                return NOTHING
            case ast.UnaryOp(op=op, operand=operand):
                found = self.value(operand, state)
                if not isinstance(op, ast.Not):
                    self.used(found, node, "is calculated with")
                return NOTHING
            case ast.Compare():
                self._compare(node, state)
                return NOTHING
        self.children(node, state)
        return NOTHING

    def children(self, node: ast.AST, state: State) -> None:
        """Evaluates the parts of a node."""
        for child in ast.iter_child_nodes(node):
            self.value(child, state)

    def _all(self, parts: list[ast.expr], state: State) -> Value:
        found = NOTHING
        for part in parts:
            found |= self.value(part, state)
        return found

    def bind(self, target: ast.expr, value: Value, state: State) -> None:
        """Assigns to a target."""
        if isinstance(target, (ast.Tuple, ast.List)):
            if value.origins and not value.wrapped:
                self.used(value, target, "is unpacked")
            for part in target.elts:
                self.bind(part, NOTHING, state)
            return
        key = key_of(target)
        if not key:
            self._put(target, value, state)
            return
        if isinstance(target, ast.Attribute):
            owner = self.value(target.value, state)
            if not owner.wrapped and target.attr not in self.policy.allow:
                self.used(owner, target, f".{target.attr} is set")
        state.forget(key)
        if value.origins:
            state.names[key] = value

    def _put(self, target: ast.expr, value: Value, state: State) -> None:
        """Assigns to an item, or to what has no name."""
        self.value(target, state)
        key = key_of(target.value) if isinstance(target, ast.Subscript) else ""
        if key and value.origins:
            state.names[key] = state.names.get(key, NOTHING) | value.inside()

    def iterate(self, target: ast.expr, over: ast.expr, state: State) -> None:
        """Binds the target of a loop."""
        found = self.value(over, state)
        if not found.wrapped and not self.policy.items:
            self.used(found, over, "is iterated over")
            found = NOTHING
        self.bind(target, found.item(), state)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        state: State,
    ) -> Value:
        inner = state.copy()
        for generator in node.generators:
            self.iterate(generator.target, generator.iter, inner)
            for test in generator.ifs:
                inner, _ = self.branches(test, inner)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return self._all(parts, inner).inside()

    def _choice(self, node: ast.BoolOp, state: State) -> Value:
        found = NOTHING
        inner = state
        for part in node.values:
            value = self.value(part, inner)
            true, false = self.policy.guards.split(part, inner)
            if isinstance(node.op, ast.Or):
                found |= value
                inner = false
            else:
                # Only what is false is handed on early; a result is not.
                found = value
                inner = true
        return found

    def _compare(self, node: ast.Compare, state: State) -> None:
        parts = [node.left, *node.comparators]
        values = [self.value(part, state) for part in parts]
        for number, op in enumerate(node.ops):
            left, right = values[number], values[number + 1]
            if isinstance(op, (ast.Is, ast.IsNot)):
                continue
            if isinstance(op, (ast.In, ast.NotIn)):
                if not right.wrapped:
                    self.used(right, node, "is searched")
            elif not any(isinstance(part, ast.Constant) for part in parts):
                both = left | right
                if not both.wrapped:
                    self.used(both, node, "is compared")

    def _attribute(self, node: ast.AST, found: Value, name: str) -> Value:
        if not found.origins or found.wrapped:
            return NOTHING
        if name in self.policy.through:
            return found
        if name == self.policy.resolve:
            if self._tries and isinstance(node, ast.Attribute):
                self._tries[-1].add(key_of(node.value))
            else:
                self._event(Event("resolve", node, found.origins))
        elif name not in self.policy.allow:
            self.used(found, node, f".{name} is read")
        return NOTHING

    def _call(self, node: ast.Call, state: State) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        match node:
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[owner, ast.Constant(value=str(attribute)), *default],
            ):
                found = self.value(owner, state)
                if default and attribute == self.policy.resolve:
                    return NOTHING  # it asks whether there is one
                return self._attribute(node, found, attribute)
            case ast.Call(func=ast.Name(id="cast"), args=[_, argument]):
                return self.value(argument, state)
        receiver = NOTHING
        if not name:
            receiver = self.value(node.func, state)
        arguments: list[tuple[int | str, ast.expr]] = list(enumerate(node.args))
        arguments += [(word.arg or "**", word.value) for word in node.keywords]
        values = [(place, self.value(part, state)) for place, part in arguments]
        if self.policy.source(node):
            return Value(frozenset({node}))
        held = NOTHING
        for place, found in values:
            held |= found
            if found.origins and not found.wrapped and name not in _TAKE_ANY:
                self._passed(node, name, place, found)
        self._collect(node, held, state)
        if name in _KEEP and held.wrapped:
            return held
        return receiver

    def _passed(
        self, node: ast.Call, name: str, place: int | str, found: Value
    ) -> None:
        if name in _LOOK_INTO:
            self.used(found, node, f"is passed to {name}()")
        elif text := self.policy.passed(node, place):
            self.used(found, node, text)

    def _collect(self, node: ast.Call, held: Value, state: State) -> None:
        """``results.append(result)`` makes the list hold it."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECT:
            key = key_of(node.func.value)
            if key and held.origins:
                state.names[key] = state.names.get(key, NOTHING) | held.inside()
