"""What is known at one point of a function about the results that are followed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple


class Value(NamedTuple):
    """What an expression may evaluate to.

    Args:
        origins: The calls whose result it may be.
        wrapped: Whether it holds such a result, instead of being one.
    """

    origins: frozenset[ast.AST] = frozenset()
    wrapped: bool = False

    def __or__(self, other: Value) -> Value:
        return Value(self.origins | other.origins, self.wrapped or other.wrapped)

    def inside(self) -> Value:
        """A container that holds it."""
        return Value(self.origins, bool(self.origins))


NOTHING = Value()


@dataclass
class State:
    """One point of a function.

    Args:
        names: What names and attributes of names may hold; only what is followed.
        flag: The value of the flag that the flow watches, where it is known.
    """

    names: dict[str, Value] = field(default_factory=dict)
    flag: bool | None = None

    def copy(self) -> State:
        """A state that can change on its own."""
        return State(dict(self.names), self.flag)

    def without(self, key: str) -> State:
        """A copy in which a name is nothing that is followed."""
        copied = self.copy()
        copied.names.pop(key, None)
        return copied

    def become(self, other: State) -> None:
        """Takes over what another state knows."""
        self.names, self.flag = other.names, other.flag


def merge(*states: State | None) -> State | None:
    """What is known where several ways meet; None where none arrives."""
    alive = [state for state in states if state is not None]
    if not alive:
        return None
    names: dict[str, Value] = {}
    for state in alive:
        for name, value in state.names.items():
            names[name] = names.get(name, NOTHING) | value
    flags = {state.flag for state in alive}
    return State(names, flags.pop() if len(flags) == 1 else None)


def key_of(node: ast.AST | None) -> str:
    """The name under which an expression's value is followed; empty if it has none."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            owner = key_of(value)
            return f"{owner}.{attribute}" if owner else ""
        case ast.NamedExpr(target=target):
            return key_of(target)
    return ""
