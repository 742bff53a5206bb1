"""What a test says about a result that is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vllm_graft.audit.state import State, key_of, merge

#: What the types of an ``isinstance`` are: unresolved ones only, some, none, unknown.
Kind: TypeAlias = Literal["only", "some", "none", "unknown"]


@dataclass
class Guards:
    """Splits a state by a test.

    Args:
        kind: What the types of an ``isinstance`` are.
        resolve: The method that only an unresolved result has.
        drop: What need not be followed on: a result that is known to be ``resolved``,
            or one that is known to be ``unresolved``.
        flag: A name whose value is watched.
    """

    kind: Callable[[ast.expr], Kind]
    resolve: str
    drop: Literal["resolved", "unresolved"] = "resolved"
    flag: str = ""

    def split(self, test: ast.expr, state: State) -> tuple[State, State]:
        """The states where the test is true and where it is false."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                true, false = self.split(operand, state)
                return false, true
            case ast.BoolOp(op=op, values=values):
                return self._split_all(values, state, both=isinstance(op, ast.And))
            case ast.Call(func=ast.Name(id="isinstance"), args=[value, types]):
                return self._split_types(key_of(value), self.kind(types), state)
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"),
                args=[value, ast.Constant(value=attribute), *_],
            ):
                return self._split_attribute(key_of(value), attribute, state)
            case ast.Call(func=ast.Name(id="callable"), args=[value]):
                return self.split(value, state)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._split_comparison(left, op, right, state)
            case ast.Name(id=name) if name == self.flag:
                return _flagged(state, True), _flagged(state, False)
            case ast.Name(id=name) if name in state.tests:
                return self.split(state.tests[name], state)
        key = key_of(test)
        if key in state.names:  # a result is always true
            return state.copy(), state.without(key)
        return state.copy(), state.copy()

    def split_pattern(
        self, key: str, pattern: ast.pattern, state: State
    ) -> tuple[State, State | None]:
        """The states where a pattern matches and where it does not; None for never.

        Args:
            key: The name of what is matched.
            pattern: The pattern.
            state: The state before.
        """
        match pattern:
            case ast.MatchAs(pattern=None):
                return state.copy(), None
            case ast.MatchAs(pattern=ast.pattern() as inner):
                return self.split_pattern(key, inner, state)
            case ast.MatchClass(cls=types):
                true, false = self._split_types(key, self.kind(types), state)
                whole = not pattern.patterns and not pattern.kwd_patterns
                return true, false if whole else state.copy()
            case ast.MatchOr(patterns=patterns):
                going: State | None = state
                ways: list[State] = []
                for part in patterns:
                    if going is not None:
                        true, going = self.split_pattern(key, part, going)
                        ways.append(true)
                return merge(*ways) or state, going
        return state.without(key), state.copy()

    def _split_attribute(
        self, key: str, attribute: object, state: State
    ) -> tuple[State, State]:
        if attribute == self.resolve:
            return self._split_types(key, "only", state)
        if key not in state.names or self.drop == "unresolved":
            return state.copy(), state.copy()
        return state.without(key), state.copy()

    def _split_all(
        self, values: list[ast.expr], state: State, *, both: bool
    ) -> tuple[State, State]:
        going: State = state
        leaving: list[State] = []
        for value in values:
            true, false = self.split(value, going)
            going, out = (true, false) if both else (false, true)
            leaving.append(out)
        left = merge(*leaving) or state
        return (going, left) if both else (left, going)

    def _split_types(self, key: str, kind: Kind, state: State) -> tuple[State, State]:
        if key not in state.names:
            return state.copy(), state.copy()
        known, unknown = state.without(key), state.copy()
        if kind == "unknown":
            return known, known.copy()
        if self.drop == "unresolved":
            # Whether it is followed on where it is resolved, and only there.
            return (unknown, unknown.copy()) if kind == "none" else (known, unknown)
        if kind == "none":
            return known, unknown
        return (state.knowing(key) if kind == "only" else unknown), known

    def _split_comparison(
        self, left: ast.expr, op: ast.cmpop, right: ast.expr, state: State
    ) -> tuple[State, State]:
        same = isinstance(op, (ast.Is, ast.Eq))
        if not same and not isinstance(op, (ast.IsNot, ast.NotEq)):
            return state.copy(), state.copy()
        match left, right:
            case ast.Call(func=ast.Name(id="type"), args=[value]), types:
                true, false = self._split_types(key_of(value), self.kind(types), state)
            case _, ast.Constant(value=None):
                test = state.tests.get(key_of(left), left)
                if isinstance(test, ast.Call):  # what `getattr` found
                    false, true = self.split(test, state)
                else:
                    true, false = state.without(key_of(left)), state.copy()
            case ast.Name(id=name), ast.Constant(value=bool(said)) if name == self.flag:
                true, false = _flagged(state, said), _flagged(state, not said)
            case _:
                return state.copy(), state.copy()
        return (true, false) if same else (false, true)


def _flagged(state: State, value: bool) -> State:
    copied = state.copy()
    copied.flag = value
    for name, held in state.names.items():
        if held.flag is not None and held.flag is not value:
            del copied.names[name]
    return copied
