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
        flag: The value that the watched flag has wherever it is one, if that is known.
        known: Whether the code has made sure that it is an unresolved one.
    """

    origins: frozenset[ast.AST] = frozenset()
    wrapped: bool = False
    flag: bool | None = None
    known: bool = False

    def __or__(self, other: Value) -> Value:
        if not self.origins or not other.origins:
            return self if self.origins else other
        return Value(
            self.origins | other.origins,
            self.wrapped or other.wrapped,
            self.flag if self.flag == other.flag else None,
            self.known and other.known,
        )

    def inside(self) -> Value:
        """A container that holds it."""
        return self._replace(wrapped=bool(self.origins), known=False)

    def item(self) -> Value:
        """What a container holds."""
        return self._replace(wrapped=False)


NOTHING = Value()


@dataclass
class State:
    """One point of a function.

    Args:
        names: What names and attributes of names may hold; only what is followed.
        flag: The value of the flag that the flow watches, where it is known.
        tests: What names stand for that were given a test's outcome.
    """

    names: dict[str, Value] = field(default_factory=dict)
    flag: bool | None = None
    tests: dict[str, ast.expr] = field(default_factory=dict)

    def copy(self) -> State:
        """A state that can change on its own."""
        return State(dict(self.names), self.flag, dict(self.tests))

    def without(self, key: str) -> State:
        """A copy in which a name is nothing that is followed."""
        copied = self.copy()
        copied.names.pop(key, None)
        return copied

    def knowing(self, key: str) -> State:
        """A copy in which a name is known to be an unresolved result."""
        copied = self.copy()
        copied.names[key] = copied.names[key]._replace(known=True)
        return copied

    def become(self, other: State) -> None:
        """Takes over what another state knows."""
        self.names, self.flag, self.tests = other.names, other.flag, other.tests

    def forget(self, key: str) -> None:
        """Forgets what was followed, or tested, under a name that is assigned to."""
        for name in [n for n in self.names if n == key or n.startswith(f"{key}.")]:
            del self.names[name]
        for name, test in [*self.tests.items()]:
            if name == key or key in map(key_of, ast.walk(test)):
                del self.tests[name]


def merge(*states: State | None) -> State | None:
    """What is known where several ways meet; None where none arrives."""
    alive = [state for state in states if state is not None]
    if not alive:
        return None
    names: dict[str, Value] = {}
    for state in alive:
        for name, value in state.names.items():
            flag = state.flag if value.flag is None else value.flag
            known = value.known and all(name in other.names for other in alive)
            held = value._replace(flag=flag, known=known)
            names[name] = names.get(name, NOTHING) | held
    flags = {state.flag for state in alive}
    first, *others = (state.tests for state in alive)
    tests = {k: v for k, v in first.items() if all(o.get(k) is v for o in others)}
    return State(names, flags.pop() if len(flags) == 1 else None, tests)


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
