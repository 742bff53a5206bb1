"""Matches pattern expressions against source expressions, binding metavariables.

Bindings are made left to right; there is backtracking only within one list of
arguments, which is all that patches need and keeps matching linear in practice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from vllm_graft.engine.pattern import ANONYMOUS, is_dots, meta_name

# Fields that say nothing about meaning: load/store follows from the position,
# `kind` is the u of u"", type comments are comments.
_IGNORED: Final = frozenset({"ctx", "kind", "type_comment"})
_FIELDS: Final[dict[type[ast.AST], tuple[str, ...]]] = {}


def fields(node: ast.AST) -> tuple[str, ...]:
    """The names of the fields of a node that carry meaning."""
    kind = type(node)
    found = _FIELDS.get(kind)
    if found is None:
        found = tuple(name for name in node._fields if name not in _IGNORED)
        _FIELDS[kind] = found
    return found


def same(one: object, other: object) -> bool:
    """Whether two pieces of source are the same code; a name is its identifier."""
    if isinstance(one, ast.Name):
        one = one.id
    if isinstance(other, ast.Name):
        other = other.id
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return all(
            same(getattr(one, name, None), getattr(other, name, None))
            for name in fields(one)
        )
    if isinstance(one, list):
        assert isinstance(other, list)
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def _read(node: ast.AST) -> ast.expr | None:
    """The expression that a node reads, or None."""
    if isinstance(node, ast.AugAssign):
        return node.target
    is_load = isinstance(getattr(node, "ctx", _LOAD), ast.Load)
    return node if is_load and isinstance(node, ast.expr) else None


class Unifier:
    """The bindings of one attempt at a match.

    Args:
        choices: What a metavariable may bind, where that is limited.
    """

    def __init__(self, choices: Mapping[str, Sequence[ast.expr]] | None = None) -> None:
        self._choices = choices or {}
        self._bindings: dict[str, ast.AST | str] = {}
        self._special: Mapping[type, Callable[[Any, Any], bool]] = {
            ast.arguments: self._arguments,
            ast.arg: self._argument,
            ast.Call: self._call,
        }

    def search(self, expression: ast.expr, node: ast.AST) -> Iterator[ast.AST]:
        """The expressions below ``node`` that ``expression`` matches.

        A name, attribute or subscript counts where it is read (``x += 1`` reads
        ``x``), not where it is assigned or deleted.
        """
        kind = type(expression)
        is_any = kind is ast.Name and meta_name(expression.id) is not None  # type: ignore[attr-defined]
        for candidate in ast.walk(node):
            if type(candidate) is not kind and not (
                is_any or isinstance(candidate, ast.AugAssign)
            ):
                continue
            read = _read(candidate)
            if read is not None:
                saved = dict(self._bindings)
                try:
                    if self._node(expression, read):
                        yield read
                finally:  # the caller may not ask for more
                    self._bindings = saved

    def _value(self, pattern: object, value: object) -> bool:
        if isinstance(pattern, ast.AST):
            return isinstance(value, ast.AST) and self._node(pattern, value)
        if isinstance(pattern, list):
            return isinstance(value, list) and self._list(pattern, 0, value, 0)
        name = meta_name(pattern)
        if name is not None:
            return isinstance(value, str) and self._bind(name, value)
        return type(pattern) is type(value) and pattern == value

    def _node(self, pattern: ast.AST, node: ast.AST) -> bool:
        kind = type(pattern)
        if kind is ast.Name:
            name = meta_name(pattern.id)  # type: ignore[attr-defined]
            if name is not None:
                # `*args` is a part of a call or display, not an expression.
                is_expression = isinstance(node, ast.expr)
                is_starred = isinstance(node, ast.Starred)
                return is_expression and not is_starred and self._bind(name, node)
        if kind is not type(node):
            return False
        special = self._special.get(kind)
        if special is not None:
            return special(pattern, node)
        return all(
            self._value(getattr(pattern, name), getattr(node, name, None))
            for name in fields(pattern)
        )

    def _attempt(self, pattern: ast.AST, node: ast.AST) -> bool:
        """Like ``_node``, but leaves no bindings behind where it fails."""
        saved = dict(self._bindings)
        if self._node(pattern, node):
            return True
        self._bindings = saved
        return False

    # --- lists ----------------------------------------------------------------------

    def _list(
        self,
        pattern: Sequence[Any],
        i: int,
        items: Sequence[Any],
        j: int,
        *,
        dots: bool = False,
    ) -> bool:
        if i == len(pattern):
            return j == len(items)
        # Only among arguments: in `tuple[int, ...]` the ellipsis is meant.
        if dots and is_dots(pattern[i]):
            for stop in range(j, len(items) + 1):
                saved = dict(self._bindings)
                if self._list(pattern, i + 1, items, stop, dots=True):
                    return True
                self._bindings = saved
            return False
        return (
            j < len(items)
            and self._value(pattern[i], items[j])
            and self._list(pattern, i + 1, items, j + 1, dots=dots)
        )

    def _call(self, pattern: ast.Call, node: ast.Call) -> bool:
        return (
            self._node(pattern.func, node.func)
            and self._list(pattern.args, 0, node.args, 0, dots=True)
            and self._keywords(pattern.keywords, node.keywords, pattern.args)
        )

    def _keywords(
        self,
        pattern: Sequence[ast.keyword],
        keywords: Sequence[ast.keyword],
        positional: Sequence[ast.AST],
    ) -> bool:
        """Keywords in any order; an ellipsis among the arguments takes the rest."""
        rest = list(keywords)
        for wanted in pattern:
            found = next((k for k in rest if self._attempt(wanted, k)), None)
            if found is None:
                return False
            rest.remove(found)
        return not rest or any(map(is_dots, positional))

    def _arguments(self, pattern: ast.arguments, node: ast.arguments) -> bool:
        mine = _parameters(pattern)
        if not any(is_dots(argument) for argument, _ in mine):
            return all(
                self._value(getattr(pattern, name), getattr(node, name))
                for name in fields(pattern)
            )
        theirs = _parameters(node)
        return all(
            any(self._parameter(wanted, one) for one in theirs)
            for wanted in mine
            if not is_dots(wanted[0])
        )

    def _parameter(self, pattern: _Parameter, other: _Parameter) -> bool:
        (argument, default), (their_argument, their_default) = pattern, other
        saved = dict(self._bindings)
        if self._node(argument, their_argument) and (
            default is None or self._value(default, their_default)
        ):
            return True
        self._bindings = saved
        return False

    def _argument(self, pattern: ast.arg, node: ast.arg) -> bool:
        """A parameter; an annotation that the pattern leaves out may be there."""
        return self._value(pattern.arg, node.arg) and (
            pattern.annotation is None
            or self._value(pattern.annotation, node.annotation)
        )

    # --- binding --------------------------------------------------------------------

    def _bind(self, name: str, value: ast.AST | str) -> bool:
        if name == ANONYMOUS:
            return True
        bound = self._bindings.get(name)
        if bound is not None:
            return same(bound, value)
        choices = self._choices.get(name)
        if choices and not any(self._choice(choice, value) for choice in choices):
            return False
        self._bindings[name] = value
        return True

    def _choice(self, choice: ast.expr, value: ast.AST | str) -> bool:
        if isinstance(value, str):
            return same(choice, value)
        return self._attempt(choice, value)


_LOAD: Final = ast.Load()
_Parameter = tuple[ast.arg, "ast.expr | None"]


def _parameters(arguments: ast.arguments) -> list[_Parameter]:
    """Every parameter with its default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * len(positional)
    if arguments.defaults:
        defaults[-len(arguments.defaults) :] = arguments.defaults
    found = list(zip(positional, defaults, strict=True))
    found += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [(a, None) for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return found
