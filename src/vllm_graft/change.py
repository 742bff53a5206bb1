"""Compiles one alternative of a hunk: its two views, and what to edit.

The edit is a list of *items* in the order of the hunk's lines: logical lines that
are kept, dropped or added, ellipses, and moves. A statement that is removed at one
place and added at another is a move: its text travels with its comments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from vllm_graft.errors import PatchError
from vllm_graft.match import Matcher
from vllm_graft.patchfile import Alternative, Kind, Line, Where
from vllm_graft.pattern import (
    LogicalLine,
    View,
    is_dots,
    meta_name,
    parse_expression,
)


@dataclass(frozen=True)
class Keep:
    """A context line: matched, not touched."""

    line: LogicalLine


@dataclass(frozen=True)
class Drop:
    """A removed logical line; ``named`` is its text in the patch."""

    line: LogicalLine
    named: str


@dataclass(frozen=True)
class Take:
    """A removed statement whose text goes to a :class:`Put`."""

    node: ast.AST
    column: int


@dataclass(frozen=True)
class Put:
    """Where a moved statement goes."""

    node: ast.AST
    column: int


@dataclass(frozen=True)
class Gap:
    """A statement ellipsis."""

    node: ast.AST
    column: int


@dataclass(frozen=True)
class Cut:
    """A removed blank line (no text) or comment line."""

    text: str


@dataclass(frozen=True)
class Add:
    """An added logical line, comment or blank line, as the patch writes it."""

    lines: tuple[Line, ...]
    column: int


Item = Keep | Drop | Take | Put | Gap | Cut | Add


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
        self.choices = {w.name: _choices(path, w) for w in wheres}
        self._defaults = {
            w.name: expressions[0]
            for w in wheres
            if not _metas(expressions := self.choices[w.name])
        }
        lines = [line for line in alternative.lines if line.kind != "#"]
        self.lines = _whole_logical_lines(path, lines)
        self.before = _view(path, self.lines, "before")
        self.after = _view(path, self.lines, "after")
        self._moves = dict(self._find_moves())
        self._check()
        self.items = list(self._items())

    # --- matching -------------------------------------------------------------------

    def matcher(self, view: View) -> Matcher:
        """A matcher for one of the two views."""
        other = self.after if view is self.before else self.before
        return Matcher(
            view.statements,
            choices=self.choices,
            barriers=self._barriers(view, other),
            exclusion=view.exclusion,
        )

    @cached_property
    def is_layout(self) -> bool:
        """Whether the views are the same code, written differently."""
        return _dump(self.before.statements) == _dump(self.after.statements)

    @property
    def one_way(self) -> str | None:
        """Why the alternative cannot be reversed, or None where it can."""
        known = self.after.metavariables.keys() | self._defaults.keys()
        for name, number in self.before.metavariables.items():
            if name not in known:
                return f"${name} of line {number} is not in the after view"
        for line in self.lines:
            if line.kind == "-" and "$_" in line.text:
                return f"line {line.number} has $_, which stands for no one text"
        return None

    @property
    def defaults(self) -> Mapping[str, ast.expr]:
        """What a metavariable stands for that only one view has."""
        return self._defaults

    def _barriers(
        self, view: View, other: View
    ) -> dict[int, list[Sequence[ast.AST]]]:
        """The other view's own lines beside an ellipsis stop that ellipsis."""
        kind: Kind = "+" if view is self.before else "-"
        twins = {
            other.row_of(node): (block, index)
            for block in other.sibling_lists()
            for index, node in enumerate(block)
            if is_dots(node)
        }
        barriers: dict[int, list[Sequence[ast.AST]]] = {}
        for block in view.sibling_lists():
            for node in block:
                twin = twins.get(view.row_of(node)) if is_dots(node) else None
                if twin:
                    runs = _changed_beside(other, *twin, self.lines, kind)
                    barriers[id(node)] = runs
        return barriers

    # --- what to edit ---------------------------------------------------------------

    def _find_moves(self) -> Iterator[tuple[int, tuple[ast.AST, ast.AST]]]:
        """Added statements that are removed ones: first row, (old, new)."""
        removed = [s for s in _statements(self.before) if self._all(s, "-")]
        for added in _statements(self.after):
            if not self._all(added, "+") or is_dots(added):
                continue
            twin = next((s for s in removed if _dump(s) == _dump(added)), None)
            if twin is not None and not self.is_layout:
                inside = {id(node) for node in ast.walk(twin)}
                removed = [s for s in removed if id(s) not in inside]
                yield self.after.row_of(added), (twin, added)

    def _all(self, statement: ast.AST, kind: Kind) -> bool:
        view = self.before if kind == "-" else self.after
        rows = view.rows[statement.lineno - 2 : statement.end_lineno - 1]  # type: ignore[attr-defined]
        kinds = {self.lines[row].kind for row in rows if self.lines[row].text.strip()}
        return kinds == {kind}

    def _check(self) -> None:
        taken = self._rows_of_moves(0)
        put = self._rows_of_moves(1)
        for view, rows, kind in (
            (self.before, taken, "-"),
            (self.after, put, "+"),
        ):
            for logical in view.logical_lines:
                row = logical.rows[0]
                if self.lines[row].kind != kind or row in rows:
                    continue
                if is_dots(logical.part.node):
                    raise PatchError(
                        f"an ellipsis on a {kind} line stands for no one text",
                        where=f"{self.path}:{self.lines[row].number}",
                        hint="name the statements, or move the whole statement: the "
                        "same one on - lines and on + lines",
                    )
        known = self.before.metavariables.keys() | self._defaults.keys()
        for name, number in self.after.metavariables.items():
            if name not in known:
                raise PatchError(
                    f"${name} is added but nothing binds it",
                    where=f"{self.path}:{number}",
                    hint="use it in a context or - line, or give it a 'where'",
                )
        for line in self.lines:
            if line.kind == "+" and "$_" in line.text:
                raise PatchError(
                    "$_ on a + line stands for no one text",
                    where=f"{self.path}:{line.number}",
                    hint="give the metavariable a name",
                )

    def _rows_of_moves(self, side: int) -> set[int]:
        rows: set[int] = set()
        for pair in self._moves.values():
            node = pair[side]
            view = (self.before, self.after)[side]
            start, stop = node.lineno - 2, node.end_lineno - 1  # type: ignore[attr-defined]
            rows.update(view.rows[start:stop])
        return rows

    def _items(self) -> Iterator[Item]:
        before = {line.rows[0]: line for line in self.before.logical_lines}
        after = {line.rows[0]: line for line in self.after.logical_lines}
        takes = {self.before.row_of(old): old for old, _ in self._moves.values()}
        taken, put = self._rows_of_moves(0), self._rows_of_moves(1)
        done = -1  # the last row of the logical line at hand
        for row, line in enumerate(self.lines):
            logical = after.get(row) if line.kind == "+" else before.get(row)
            if row in takes:
                yield Take(takes[row], logical.column if logical else 0)
            elif row in self._moves:
                yield Put(self._moves[row][0], logical.column if logical else 0)
            if row in taken or row in put or row <= done:
                continue
            if logical:
                done = logical.rows[-1]
                yield self._item(line, logical)
            elif line.kind == "+":
                yield Add((line,), _column(line.text))
            elif line.kind == "-":
                yield Cut(line.text.strip())

    def _item(self, line: Line, logical: LogicalLine) -> Item:
        if is_dots(logical.part.node):
            return Gap(logical.part.node, logical.column)
        if line.kind == " ":
            return Keep(logical)
        texts = tuple(self.lines[row] for row in logical.rows)
        mine = tuple(text for text in texts if text.kind == line.kind)
        if line.kind == "-":
            return Drop(logical, "\n".join(text.text for text in mine))
        return Add(mine, logical.column)


def _choices(path: str, where: Where) -> list[ast.expr]:
    tuple_ = parse_expression(f"({where.choices},)", path, where.number)
    assert isinstance(tuple_, ast.Tuple)
    return tuple_.elts


def _metas(expressions: Sequence[ast.expr]) -> bool:
    return any(
        meta_name(value) is not None
        for node in ast.walk(expressions[0])
        for _, value in ast.iter_fields(node)
    )


def _view(path: str, lines: Sequence[Line], name: str) -> View:
    drop = "+" if name == "before" else "-"
    rows = [row for row, line in enumerate(lines) if line.kind != drop]
    if not rows:
        raise PatchError(
            f"the {name} view is empty",
            where=f"{path}:{lines[0].number}",
            hint="add a context line, so that there is a place to find",
        )
    view = View(path, name, [lines[row] for row in rows], rows)
    if not view.statements or all(is_dots(s) for s in view.statements):
        raise PatchError(
            f"the {name} view matches everywhere",
            where=f"{path}:{lines[rows[0]].number}",
            hint="add a context line, so that there is a place to find",
        )
    return view


def _whole_logical_lines(path: str, lines: list[Line]) -> list[Line]:
    """Makes every logical line wholly context or wholly changed.

    A context line inside a call of which another line changes is really both
    removed and added.
    """
    while True:
        mixed = next(
            (
                logical.rows
                for name in ("before", "after")
                for logical in _view(path, lines, name).logical_lines
                if len({lines[row].kind for row in logical.rows}) > 1
                and any(lines[row].kind == " " for row in logical.rows)
            ),
            None,
        )
        if mixed is None:
            return lines
        sides: tuple[Kind, ...] = ("-", "+")
        both = [
            replace(lines[row], kind=side)
            for side in sides
            for row in mixed
            if lines[row].kind in (side, " ")
        ]
        lines = [*lines[: mixed[0]], *both, *lines[mixed[-1] + 1 :]]


def _statements(view: View) -> Iterator[ast.AST]:
    for block in view.sibling_lists():
        yield from block


def _changed_beside(
    view: View, block: Sequence[ast.AST], at: int, lines: Sequence[Line], kind: Kind
) -> list[Sequence[ast.AST]]:
    def changed(node: ast.AST) -> bool:
        return lines[view.row_of(node)].kind == kind and not is_dots(node)

    runs: list[Sequence[ast.AST]] = []
    stop = at + 1
    while stop < len(block) and changed(block[stop]):
        stop += 1
    start = at
    while start > 0 and changed(block[start - 1]):
        start -= 1
    for run in (block[at + 1 : stop], block[start:at]):
        if run:
            runs.append(run)
    return runs


def _column(text: str) -> int:
    return len(text) - len(text.lstrip()) if text.strip() else 0


def _dump(node: ast.AST | Sequence[ast.AST]) -> str:
    if isinstance(node, ast.AST):
        return ast.dump(node)
    return "\n".join(map(ast.dump, node))

