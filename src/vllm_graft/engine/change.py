"""Compiles one alternative of a hunk: its two views, and what to edit.

The edit is a list of *items* in the order of the hunk's lines: logical lines that
are kept, dropped or added, ellipses, and moves. A statement that is removed at one
place and added at another is a move: its text travels with its comments.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from vllm_graft.engine.items import Add, Cut, Drop, Gap, Hint, Item, Keep, Put, Take
from vllm_graft.engine.match import Matcher
from vllm_graft.engine.moves import Move, find_moves
from vllm_graft.engine.patchfile import Alternative, Kind, Line, Where
from vllm_graft.engine.pattern import is_dots, meta_name, parse_expressions
from vllm_graft.engine.text import code_lines, comments
from vllm_graft.engine.views import LogicalLine, View, split_views
from vllm_graft.errors import PatchError


class Change:
    """One alternative, compiled.

    Args:
        path: The patch file, for messages.
        alternative: The lines.
        wheres: The hunk's constraints on metavariables.

    Raises:
        PatchError: A view is not Python, or the two do not fit each other.
    """

    def __init__(
        self, path: str, alternative: Alternative, wheres: Sequence[Where] = ()
    ) -> None:
        self.path = path
        self.number = alternative.number
        self.choices = choices(path, wheres)
        views = split_views(path, alternative.lines)
        self.lines, self.before, self.after = views.lines, views.before, views.after
        self._moves = [] if self.is_layout else list(find_moves(views))
        self._taken = frozenset[int]().union(*(move.taken for move in self._moves))
        self._put = frozenset[int]().union(*(move.put for move in self._moves))
        self._check_texts()
        self._check_names()
        self.items = list(self._items())
        self._check_layout()

    # --- matching -------------------------------------------------------------------

    def matcher(self, view: View) -> Matcher:
        """The matcher for one of the two views."""
        return self._matchers[view.name]

    @cached_property
    def _matchers(self) -> Mapping[str, Matcher]:
        return {
            view.name: Matcher(
                view.statements,
                choices=self.choices,
                barriers=self._barriers[view.name],
                limit=view.limit,
            )
            for view in (self.before, self.after)
        }

    @cached_property
    def is_layout(self) -> bool:
        """Whether the views are the same code, written differently."""
        return self.before.weight[1] == self.after.weight[1] and (
            _dump(self.before.statements) == _dump(self.after.statements)
        )

    @property
    def one_way(self) -> str | None:
        """Why the alternative cannot be reversed, or None where it can."""
        known = self.after.metavariables.keys() | self.defaults.keys()
        for name, number in self.before.metavariables.items():
            if name not in known:
                return f"${name} of line {number} is not in the after view"
        for number, what in self._textless(self.before, "-"):
            return f"line {number} has {what}, which stands for no one text"
        return None

    @cached_property
    def defaults(self) -> Mapping[str, ast.expr]:
        """What a metavariable stands for that only one view has."""
        return {
            name: expressions[0]
            for name, expressions in self.choices.items()
            if not _has_metavariable(expressions[0])
        }

    @cached_property
    def _barriers(self) -> Mapping[str, Mapping[int, list[Sequence[ast.AST]]]]:
        """The other view's own lines beside an ellipsis stop that ellipsis."""
        return {
            "before": dict(self._stops(self.before, self.after, "+")),
            "after": dict(self._stops(self.after, self.before, "-")),
        }

    def _stops(
        self, view: View, other: View, kind: Kind
    ) -> Iterator[tuple[int, list[Sequence[ast.AST]]]]:
        twins = {
            other.row_of(node): (block, index)
            for block in other.sibling_lists()
            for index, node in enumerate(block)
            if is_dots(node)
        }
        for node in (n for block in view.sibling_lists() for n in block if is_dots(n)):
            twin = twins.get(view.row_of(node))
            if twin:
                yield id(node), _changed_beside(other, *twin, self.lines, kind)

    # --- what to edit ---------------------------------------------------------------

    def _items(self) -> Iterator[Item]:
        before, after = _by_row(self.before), _by_row(self.after)
        takes = {min(move.taken): move for move in self._moves}
        puts = {min(move.put): move for move in self._moves}
        done = -1  # the last row of the logical lines at hand
        for row, line in enumerate(self.lines):
            logical = (after if line.kind == "+" else before).get(row, [])
            column = logical[0].column if logical else _column(line.text)
            if row in takes:
                yield Take(takes[row].old, column, self._is_bare(takes[row]))
            elif row in puts:
                yield Put(puts[row].old, column, self._is_bare(puts[row]))
            if row in self._taken or row in self._put or row <= done:
                continue
            if logical:
                done = max(one.rows[-1] for one in logical)
                yield from self._logical(line.kind, logical)
            elif line.kind == "+":
                yield Add((line,), column)
            elif line.kind == "-":
                yield Cut(line.text.strip())
            else:
                yield Hint(line.text.strip())

    def _is_bare(self, move: Move) -> bool:
        row = min(move.taken)
        above = self.lines[row - 1] if row else None
        return bool(above and above.kind == "-" and above.text.lstrip()[:1] == "#")

    def _logical(self, kind: Kind, logical: Sequence[LogicalLine]) -> Iterator[Item]:
        """The items of the logical lines that begin on one row (``if x: y``)."""
        rows = range(logical[0].rows[0], max(one.rows[-1] for one in logical) + 1)
        mine = tuple(self.lines[row] for row in rows if self.lines[row].kind == kind)
        if kind == "+":
            yield Add(mine, logical[0].column)
            return
        named = "\n".join(line.text for line in mine)
        for one in logical:
            if is_dots(one.part.node):
                yield Gap(one.part.node, one.column)
            elif kind == " ":
                yield Keep(one)
            else:
                yield Drop(one, named)

    # --- checks -----------------------------------------------------------------------

    def _check_texts(self) -> None:
        """Changed lines must have a text, unless they move."""
        for view, kind, moved in (
            (self.before, "-", self._taken),
            (self.after, "+", self._put),
        ):
            for logical in view.logical_lines:
                row = logical.rows[0]
                if (
                    self.lines[row].kind == kind
                    and row not in moved
                    and is_dots(logical.part.node)
                ):
                    raise PatchError(
                        f"an ellipsis on a {kind} line stands for no one text",
                        where=f"{self.path}:{self.lines[row].number}",
                        hint="name the statements, or move the whole statement: the "
                        "same one on - lines and on + lines",
                    )
        for number, what in self._textless(self.after, "+"):
            raise PatchError(
                f"{what} on a + line stands for no one text",
                where=f"{self.path}:{number}",
                hint="bind it to a named metavariable, or write the code",
            )

    def _textless(self, view: View, kind: Kind) -> Iterator[tuple[int, str]]:
        moved = self._taken if kind == "-" else self._put
        for index, what in view.unspecific():
            if view.lines[index].kind == kind and view.rows[index] not in moved:
                yield view.lines[index].number, what

    def _check_names(self) -> None:
        known = self.before.metavariables.keys() | self.defaults.keys()
        for name, number in self.after.metavariables.items():
            if name not in known:
                raise PatchError(
                    f"${name} is added but nothing binds it",
                    where=f"{self.path}:{number}",
                    hint="use it in a context or - line, or give it a 'where'",
                )

    def _check_layout(self) -> None:
        if not self.is_layout:
            return
        sides = [
            "\n".join(line.text for line in self.lines if line.kind == kind)
            for kind in "-+"
        ]
        if code_lines(sides[0]) == code_lines(sides[1]) and (
            comments(sides[0]) == comments(sides[1])
        ):
            raise PatchError(
                "a hunk that changes only blank lines or indentation",
                where=f"{self.path}:{self.number}",
                hint="change code or a comment; nothing else can be found again",
            )


def choices(path: str, wheres: Sequence[Where]) -> dict[str, tuple[ast.expr, ...]]:
    """What each metavariable that is limited may bind.

    Raises:
        PatchError: That is no list of expressions.
    """
    return {w.name: parse_expressions(w.choices, path, w.number) for w in wheres}


def _has_metavariable(expression: ast.expr) -> bool:
    return any(
        meta_name(value) is not None
        for node in ast.walk(expression)
        for _, value in ast.iter_fields(node)
    )


def _by_row(view: View) -> Mapping[int, list[LogicalLine]]:
    """The logical lines of a view by the row that they begin on."""
    found: dict[int, list[LogicalLine]] = defaultdict(list)
    for logical in view.logical_lines:
        found[logical.rows[0]].append(logical)
    return found


def _changed_beside(
    view: View, block: Sequence[ast.AST], at: int, lines: Sequence[Line], kind: Kind
) -> list[Sequence[ast.AST]]:
    """The runs of changed statements directly behind and before an ellipsis."""

    def changed(node: ast.AST) -> bool:
        return lines[view.row_of(node)].kind == kind and not is_dots(node)

    stop = at + 1
    while stop < len(block) and changed(block[stop]):
        stop += 1
    start = at
    while start > 0 and changed(block[start - 1]):
        start -= 1
    return [run for run in (block[at + 1 : stop], block[start:at]) if run]


def _column(text: str) -> int:
    return len(text) - len(text.lstrip()) if text.strip() else 0


def _dump(nodes: Sequence[ast.AST]) -> str:
    return "\n".join(map(ast.dump, nodes))
