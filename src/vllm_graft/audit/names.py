"""What the names of a scope may stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Import(NamedTuple):
    """A name that stands for a module or a member of one, by its dotted name."""

    target: str


class Definition(NamedTuple):
    """A name that stands for a class or function defined here."""

    node: ast.ClassDef | Function


class Alias(NamedTuple):
    """A name that stands for the value of an expression."""

    value: ast.expr


Binding: TypeAlias = Import | Definition | Alias


class Names:
    """What the names of a scope may stand for.

    Args:
        body: The scope's statements. Those of other scopes inside are left out.
        absolute: The dotted name of the module that a statement imports from.
    """

    def __init__(
        self,
        body: Sequence[ast.stmt],
        absolute: Callable[[ast.ImportFrom], str],
    ) -> None:
        self.bound: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        self.annotations: dict[str, list[ast.expr]] = {}
        #: What a class's own name stood for before, for ``class A(A)``.
        self.before: dict[ast.ClassDef, list[Binding]] = {}
        self._absolute = absolute
        self._take(body, sure=True)

    def _take(self, body: Sequence[ast.stmt], *, sure: bool) -> None:
        for statement in body:
            match statement:
                case ast.Import():
                    self._take_import(statement, sure=sure)
                case ast.ImportFrom():
                    self._take_from(statement, sure=sure)
                case ast.ClassDef():
                    self.before[statement] = self.bound.get(statement.name, [])
                    self._bind(statement.name, Definition(statement), sure=sure)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._bind(statement.name, Definition(statement), sure=sure)
                case ast.Assign(targets=targets, value=value):
                    for target, given in (p for t in targets for p in pairs(t, value)):
                        if isinstance(target, ast.Name):
                            self._bind(target.id, Alias(given), sure=sure)
                case ast.AnnAssign(target=ast.Name() as variable):
                    said = self.annotations.setdefault(variable.id, [])
                    said.append(statement.annotation)
                    if statement.value is not None:
                        self._bind(variable.id, Alias(statement.value), sure=sure)
                case _:
                    for part in blocks(statement):
                        self._take(part, sure=False)

    def _take_import(self, statement: ast.Import, *, sure: bool) -> None:
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            target = alias.name if alias.asname else top
            self._bind(alias.asname or top, Import(target), sure=sure)

    def _take_from(self, statement: ast.ImportFrom, *, sure: bool) -> None:
        base = self._absolute(statement)
        for alias in statement.names:
            if alias.name == "*":
                self.stars.append(base)
                continue
            target = f"{base}.{alias.name}" if base else alias.name
            self._bind(alias.asname or alias.name, Import(target), sure=sure)

    def _bind(self, name: str, binding: Binding, *, sure: bool) -> None:
        # In a branch, what the name stood for before may stay.
        if sure:
            self.bound[name] = [binding]
        else:
            self.bound[name] = [*self.bound.get(name, []), binding]


def pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what, as far as it is written side by side."""
    match target, value:
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(targets) == len(values):
            both = zip(targets, values, strict=True)
            return [pair for one, other in both for pair in pairs(one, other)]
    return [(target, value)]


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement that is no definition."""
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body
