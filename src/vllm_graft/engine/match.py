"""Matches pattern statements against source trees. Pure: nothing here edits.

Statements backtrack: an ellipsis tries the shortest run first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from vllm_graft.engine.kinds import comparable, kinds_of
from vllm_graft.engine.layout import BLOCKS, blocks
from vllm_graft.engine.limit import NO_LIMIT, Limit
from vllm_graft.engine.pattern import is_dots
from vllm_graft.engine.unify import Unifier, fields

_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# What a `def` or `class` pattern leaves out, the target may have.
_MAY_LACK: Final = ("decorator_list", "returns", "type_params")

LimitOf = Callable[[ast.AST], Limit]


class Run(NamedTuple):
    """The siblings under an ellipsis: ``items[start:stop]``."""

    items: Sequence[ast.AST]
    start: int
    stop: int

    @property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes themselves; empty where the ellipsis matched nothing."""
        return self.items[self.start : self.stop]


class Match(NamedTuple):
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


class Matcher(Unifier):
    """Matches the statements of one pattern.

    Args:
        pattern: The statements, which must follow each other in one block.
        choices: What a metavariable may bind, where that is limited.
        barriers: For an ellipsis, by ``id``, the statement runs that it must not
            run over (the lines that the patch adds or removes beside it).
        limit: Gives what the run under an ellipsis must or must not have.
    """

    def __init__(
        self,
        pattern: Sequence[ast.AST],
        *,
        choices: Mapping[str, Sequence[ast.expr]] | None = None,
        barriers: Mapping[int, Sequence[Sequence[ast.AST]]] | None = None,
        limit: LimitOf = lambda _: NO_LIMIT,
    ) -> None:
        super().__init__(choices)
        self._barriers = barriers or {}
        self._limit = limit
        items = list(pattern)
        while items and self._says_nothing(items[0]):
            del items[0]
        while items and self._says_nothing(items[-1]):
            del items[-1]
        self.pattern = items
        self._kinds = kinds_of(item for item in items if not is_dots(item))
        self._nodes: dict[int, ast.AST] = {}
        self._runs: dict[int, Run] = {}
        self.misses: list[tuple[int, ast.AST, ast.AST | None]] | None = None

    def _says_nothing(self, node: ast.AST) -> bool:
        """Whether a node, at the edge of the pattern, is an ellipsis over anything."""
        return is_dots(node) and self._limit(node) == NO_LIMIT

    def find(
        self,
        block: Sequence[ast.AST],
        kinds: frozenset[object] | None = None,
        dead: set[tuple[str, int]] | None = None,
    ) -> Iterator[Match]:
        """The matches in one block, at most one for each start.

        Args:
            block: The block.
            kinds: :func:`kinds_of` it, where it is known, to save time.
            dead: Starts that other patterns have tried in vain, and adds to it: the
                ways to write a hunk often begin alike.
        """
        if not self.pattern or (kinds is not None and not self._kinds <= kinds):
            return
        first = self.pattern[0]
        for start, node in enumerate(block):
            if start and self._limit(first).reaches_edge:
                break
            fits = is_dots(first) or comparable(first, node)
            if self.misses is None and not fits:
                continue
            self._reset()
            if dead is not None and self._is_dead(node, dead):
                continue
            for stop in self._run(self.pattern, 0, block, start, whole=False):
                yield Match(
                    dict(self._bindings),
                    dict(self._nodes),
                    dict(self._runs),
                    Run(block, start, stop),
                )
                break

    @cached_property
    def _first(self) -> str:
        return ast.dump(self.pattern[0])

    def _is_dead(self, node: ast.AST, dead: set[tuple[str, int]]) -> bool:
        """Whether a simple statement does not match the pattern's first one."""
        first = self.pattern[0]
        if is_dots(first) or any(blocks(first)):
            return False
        key = (self._first, id(node))
        if key not in dead and self._header(first, node):
            self._reset()
            return False
        dead.add(key)
        return True

    def _reset(self) -> None:
        self._bindings = {}
        self._nodes = {}
        self._runs = {}

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
        to_end = i + 1 == len(pattern) and (whole or self._limit(dots).reaches_edge)
        for stop in range(j, len(block) + 1):
            if stop > j and self._blocked(dots, block, stop - 1):
                return
            if to_end and stop < len(block):
                continue  # the ellipsis must reach the end
            self._runs[id(dots)] = Run(block, j, stop)
            for _ in self._holding(self._limit(dots).having, block[j:stop]):
                yield from self._run(pattern, i + 1, block, stop, whole=whole)
            self._runs.pop(id(dots), None)

    def _holding(
        self, wanted: Sequence[ast.expr], run: Sequence[ast.AST]
    ) -> Iterator[None]:
        """Once for each way in which a run has all that its ellipsis asks for."""
        if not wanted:
            yield
            return
        for node in run:
            for _ in self.search(wanted[0], node):
                yield from self._holding(wanted[1:], run)

    def _blocked(self, dots: ast.AST, block: Sequence[ast.AST], at: int) -> bool:
        for unwanted in self._limit(dots).without:
            if next(self.search(unwanted, block[at]), None) is not None:
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
        if not comparable(pattern, node):
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
        if isinstance(pattern, ast.Assign) and isinstance(node, ast.AnnAssign):
            target = self._node(pattern.targets[0], node.target)
            return target and self._value(pattern.value, node.value)
        may_lack = _MAY_LACK if isinstance(pattern, _DEFINITIONS) else ()
        for name in fields(pattern):
            mine, theirs = getattr(pattern, name), getattr(node, name, None)
            if (name in BLOCKS and isinstance(mine, list)) or (
                name in may_lack and not mine
            ):
                continue
            if isinstance(pattern, ast.ClassDef) and name in ("bases", "keywords"):
                assert isinstance(theirs, list)
                bases = pattern.bases
                fits = (
                    self._list(mine, 0, theirs, 0, dots=True)
                    if name == "bases"
                    else self._keywords(mine, theirs, bases)
                )
            else:
                fits = self._value(mine, theirs)
            if not fits:
                return False
        return True

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
