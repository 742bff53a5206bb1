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
                func=ast.Name(id="hasattr"),
                args=[value, ast.Constant(value=attribute)],
            ) if attribute == self.resolve:
                return self._split_types(key_of(value), "only", state)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._split_comparison(left, op, right, state)
            case ast.Name(id=name) if name == self.flag:
                return _flagged(state, True), _flagged(state, False)
        key = key_of(test)
        if key in state.names:  # a result is always true
            return state.copy(), state.without(key)
        return state.copy(), state.copy()

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
        return unknown, known

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
                key = key_of(left)
                true, false = state.without(key), state.copy()
            case ast.Name(id=name), ast.Constant(value=bool(said)) if name == self.flag:
                true, false = _flagged(state, said), _flagged(state, not said)
            case _:
                return state.copy(), state.copy()
        return (true, false) if same else (false, true)


def _flagged(state: State, value: bool) -> State:
    copied = state.copy()
    copied.flag = value
    return copied
