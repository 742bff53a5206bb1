"""Matches pattern trees against source trees. Pure: nothing here edits.

Statements backtrack (an ellipsis tries the shortest run first); expressions bind
metavariables left to right and backtrack only within one argument list, which is
all that patches need and keeps matching linear in practice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vllm_graft.layout import BLOCKS, blocks
from vllm_graft.pattern import ANONYMOUS, is_dots, meta_name

# Fields that say nothing about meaning: load/store follows from the position,
# `kind` is the u of u"", type comments are comments.
_IGNORED: Final = frozenset({"ctx", "kind", "type_comment"})
_FIELDS: Final[dict[type[ast.AST], tuple[str, ...]]] = {}
_DEFS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

Exclusion = Callable[[ast.AST], "ast.expr | None"]


@dataclass(frozen=True)
class Run:
    """The siblings under an ellipsis: ``items[start:stop]``."""

    items: Sequence[ast.AST]
    start: int
    stop: int

    @property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes themselves; empty where the ellipsis matched nothing."""
        return self.items[self.start : self.stop]


@dataclass(frozen=True)
class Match:
    """One place where a pattern matches.

    Args:
        bindings: What each metavariable stands for: a node or an identifier.
        nodes: For each pattern node with a text of its own (statements, handlers,
            cases), by ``id``, the source node that it matched.
        runs: For each ellipsis, by ``id``, what it ran over.
        block: The source block that holds the matched run, and where.
    """

    bindings: Mapping[str, ast.AST | str]
    nodes: Mapping[int, ast.AST]
    runs: Mapping[int, Run]
    block: Run


def _fields(node: ast.AST) -> tuple[str, ...]:
    kind = type(node)
    found = _FIELDS.get(kind)
    if found is None:
        found = tuple(name for name in node._fields if name not in _IGNORED)
        _FIELDS[kind] = found
    return found


class Matcher:
    """Matches the statements of one pattern.

    Args:
        pattern: The statements, which must follow each other in one block.
        choices: What a metavariable may bind, where that is limited.
        barriers: For an ellipsis, by ``id``, the statement runs that it must not
            run over (the lines that the patch adds or removes beside it).
        exclusion: Gives the expression that a run must be without, or None.
    """

    def __init__(
        self,
        pattern: Sequence[ast.AST],
        *,
        choices: Mapping[str, Sequence[ast.expr]] | None = None,
        barriers: Mapping[int, Sequence[Sequence[ast.AST]]] | None = None,
        exclusion: Exclusion = lambda _: None,
    ) -> None:
        items = list(pattern)
        while items and is_dots(items[0]):
            del items[0]
        while items and is_dots(items[-1]):
            del items[-1]
        self.pattern = items
        self._choices = choices or {}
        self._barriers = barriers or {}
        self._exclusion = exclusion
        self._bindings: dict[str, ast.AST | str] = {}
        self._nodes: dict[int, ast.AST] = {}
        self._runs: dict[int, Run] = {}
        self.misses: list[tuple[int, ast.AST, ast.AST | None]] | None = None

    def find(self, block: Sequence[ast.AST]) -> Iterator[Match]:
        """The matches in one block, at most one for each start."""
        if not self.pattern:
            return
        first = type(self.pattern[0])
        for start, node in enumerate(block):
            if type(node) is not first and self.misses is None:
                continue
            for stop in self._run(self.pattern, 0, block, start, whole=False):
                yield Match(
                    dict(self._bindings),
                    dict(self._nodes),
                    dict(self._runs),
                    Run(block, start, stop),
                )
                break
            self._reset()

    def _reset(self) -> None:
        self._bindings.clear()
        self._nodes.clear()
        self._runs.clear()

    # --- statements: generators that yield once for each way to match -----------

    def _run(
        self,
        pattern: Sequence[ast.AST],
        i: int,
        block: Sequence[ast.AST],
        j: int,
        *,
        whole: bool,
    ) -> Iterator[int]:
        if i == len(pattern):
            if not whole or j == len(block):
                yield j
            else:
                self._miss(pattern[-1] if pattern else None, block[j])
            return
        if is_dots(pattern[i]):
            yield from self._dots(pattern, i, block, j, whole=whole)
        elif j < len(block):
            matched = False
            for _ in self._statement(pattern[i], block[j]):
                matched = True
                yield from self._run(pattern, i + 1, block, j + 1, whole=whole)
            if not matched:
                self._miss(pattern[i], block[j])
        else:
            self._miss(pattern[i], None)

    def _dots(
        self,
        pattern: Sequence[ast.AST],
        i: int,
        block: Sequence[ast.AST],
        j: int,
        *,
        whole: bool,
    ) -> Iterator[int]:
        dots = pattern[i]
        last = i + 1 == len(pattern)
        for stop in range(j, len(block) + 1):
            if stop > j and self._blocked(dots, block, stop - 1):
                return
            if whole and last and stop < len(block):
                continue  # the ellipsis must reach the end
            self._runs[id(dots)] = Run(block, j, stop)
            yield from self._run(pattern, i + 1, block, stop, whole=whole)
            self._runs.pop(id(dots), None)

    def _blocked(self, dots: ast.AST, block: Sequence[ast.AST], at: int) -> bool:
        exclusion = self._exclusion(dots)
        if exclusion is not None and any(
            True for _ in self.search(exclusion, block[at])
        ):
            return True
        saved = dict(self._bindings), dict(self._nodes), dict(self._runs), self.misses
        self.misses = None
        hit = any(
            next(self._run(barrier, 0, block, at, whole=False), None) is not None
            for barrier in self._barriers.get(id(dots), ())
        )
        self._bindings, self._nodes, self._runs, self.misses = saved
        return hit

    def _statement(self, pattern: ast.AST, node: ast.AST) -> Iterator[None]:
        if type(pattern) is not type(node):
            return
        saved = dict(self._bindings)
        if self._header(pattern, node):
            self._nodes[id(pattern)] = node
            mine = dict(blocks(pattern))
            theirs = dict(blocks(node))
            if mine.keys() == theirs.keys():
                pairs = [(mine[name], theirs[name]) for name in mine]
                yield from self._blocks(pairs, 0)
            else:
                self._miss_block(mine, theirs)
            self._nodes.pop(id(pattern), None)
        self._bindings = saved

    def _blocks(
        self, pairs: Sequence[tuple[Sequence[ast.AST], Sequence[ast.AST]]], k: int
    ) -> Iterator[None]:
        if k == len(pairs):
            yield
            return
        pattern, block = pairs[k]
        for _ in self._run(pattern, 0, block, 0, whole=True):
            yield from self._blocks(pairs, k + 1)

    def _header(self, pattern: ast.AST, node: ast.AST) -> bool:
        for name in _fields(pattern):
            if name in BLOCKS and isinstance(getattr(pattern, name), list):
                continue
            mine = getattr(pattern, name)
            theirs = getattr(node, name, None)
            # What a `def` or `class` pattern leaves out, the target may have.
            if isinstance(pattern, (*_DEFS, ast.ClassDef)) and (
                not mine and name in ("decorator_list", "returns", "type_params")
            ):
                continue
            if name == "bases":
                if not self._list(mine, 0, theirs or [], 0, dots=True):
                    return False
            elif name == "keywords":
                dots = next(filter(is_dots, getattr(pattern, "bases", ())), None)
                if not self._keywords(mine, theirs or [], dots):
                    return False
            elif not self._value(mine, theirs):
                return False
        return True

    # --- expressions: plain predicates that bind as they go ----------------------

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
        if isinstance(pattern, ast.Name):
            name = meta_name(pattern.id)
            if name is not None:
                return isinstance(node, ast.expr) and self._bind(name, node)
        if type(pattern) is not type(node):
            return False
        if isinstance(pattern, ast.arguments):
            return self._arguments(pattern, node)
        if isinstance(pattern, ast.arg):
            annotated = pattern.annotation is None or self._value(
                pattern.annotation, getattr(node, "annotation", None)
            )
            return annotated and self._value(pattern.arg, getattr(node, "arg", None))
        if isinstance(pattern, ast.Call):
            return self._call(pattern, node)
        return all(
            self._value(getattr(pattern, name), getattr(node, name, None))
            for name in _fields(pattern)
        )

    def _call(self, pattern: ast.Call, node: ast.AST) -> bool:
        assert isinstance(node, ast.Call)
        dots = next(filter(is_dots, pattern.args), None)
        if not self._node(pattern.func, node.func):
            return False
        if not self._list(pattern.args, 0, node.args, 0, dots=True):
            return False
        return self._keywords(pattern.keywords, node.keywords, dots)

    def _keywords(
        self,
        pattern: Sequence[ast.keyword],
        keywords: Sequence[ast.keyword],
        dots: ast.AST | None,
    ) -> bool:
        rest = list(keywords)
        for wanted in pattern:
            for candidate in rest:
                saved = dict(self._bindings)
                if self._node(wanted, candidate):
                    rest.remove(candidate)
                    break
                self._bindings = saved
            else:
                return False
        if dots is not None:
            run = self._runs.get(id(dots))
            nodes = [*(run.nodes if run else ()), *rest]
            self._runs[id(dots)] = Run(nodes, 0, len(nodes))
        return dots is not None or not rest

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
                    self._runs[id(pattern[i])] = Run(items, j, stop)
                    return True
                self._bindings = saved
            return False
        return (
            j < len(items)
            and self._value(pattern[i], items[j])
            and self._list(pattern, i + 1, items, j + 1, dots=dots)
        )

    def _arguments(self, pattern: ast.arguments, node: ast.AST) -> bool:
        mine = [*pattern.posonlyargs, *pattern.args, *pattern.kwonlyargs]
        if not any(is_dots(argument) for argument in mine):
            return all(
                self._value(getattr(pattern, name), getattr(node, name))
                for name in _fields(pattern)
            )
        named = [a for a in mine if not is_dots(a)]
        named += [a for a in (pattern.vararg, pattern.kwarg) if a is not None]
        assert isinstance(node, ast.arguments)
        theirs = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        theirs += [a for a in (node.vararg, node.kwarg) if a is not None]
        return all(any(self._node(a, b) for b in theirs) for a in named)

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
        saved = dict(self._bindings)
        if isinstance(value, ast.AST) and self._node(choice, value):
            return True
        self._bindings = saved
        return False

    def search(self, expression: ast.expr, node: ast.AST) -> Iterator[ast.AST]:
        """The expressions below ``node`` that ``expression`` matches.

        A name, attribute or subscript counts where it is read, not where it is
        assigned or deleted.
        """
        for candidate in ast.walk(node):
            if not isinstance(candidate, ast.expr):
                continue
            if not isinstance(getattr(candidate, "ctx", ast.Load()), ast.Load):
                continue
            saved = dict(self._bindings)
            if self._node(expression, candidate):
                yield candidate
            self._bindings = saved

    # --- the nearest miss ---------------------------------------------------------

    def _miss(self, pattern: ast.AST | None, node: ast.AST | None) -> None:
        if self.misses is not None and pattern is not None:
            self.misses.append((len(self._nodes), pattern, node))

    def _miss_block(
        self,
        mine: Mapping[str, Sequence[ast.AST]],
        theirs: Mapping[str, Sequence[ast.AST]],
    ) -> None:
        for name in mine.keys() ^ theirs.keys():
            if name in theirs:
                self._miss(mine["body"][-1], theirs[name][0])
            else:
                self._miss(mine[name][0], None)


def same(one: ast.AST | str, other: ast.AST | str) -> bool:
    """Whether two bound things are the same code; a name equals its identifier."""
    if isinstance(one, ast.Name):
        one = one.id
    if isinstance(other, ast.Name):
        other = other.id
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return Matcher([])._value(one, other)  # noqa: SLF001
