"""The two views of a hunk: context with removed, and context with added lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from vllm_graft.engine.layout import Part, all_blocks, parts, span
from vllm_graft.engine.limit import NO_LIMIT, Limit
from vllm_graft.engine.patchfile import Kind, Line
from vllm_graft.engine.pattern import (
    ANONYMOUS,
    decode,
    encode,
    is_dots,
    is_whole_name,
    meta_name,
    own_names,
    parse_expressions,
)
from vllm_graft.engine.source import Source
from vllm_graft.errors import PatchError, SourceError

_LIMITED: Final = re.compile(r"(\s*\.\.\.)( with .+?)?( without .+)?")


class LogicalLine(NamedTuple):
    """A logical line of a view, and the hunk lines it stands on."""

    part: Part
    rows: range
    column: int


class View:
    """One view of an alternative, or the pattern of a condition.

    Args:
        lines: The patch lines that the view is made of.
        rows: For each of them, its index among the hunk's lines.
        name: ``before`` or ``after`` or ``pattern``, for messages.
        path: The patch file, for messages.
    """

    def __init__(
        self, path: str, name: str, lines: Sequence[Line], rows: Sequence[int]
    ) -> None:
        self.path = path
        self.name = name
        self.lines = lines
        self.rows = rows
        self.limits: dict[int, Limit] = {}

    @cached_property
    def source(self) -> Source:
        """The view as text, below ``if 1:`` where it is indented."""
        texts = [line.text if line.kind != "#" else "" for line in self.lines]
        for index, text in enumerate(texts):
            found = _LIMITED.fullmatch(text)
            if found and (found[2] or found[3]):
                texts[index] = found[1]
                number = self.lines[index].number
                having, without = (
                    parse_expressions(part.split(maxsplit=1)[1], self.path, number)
                    if part
                    else ()
                    for part in found.group(2, 3)
                )
                self.limits[index] = Limit(without, having)
        code = [t for t in texts if t.strip() and not t.lstrip().startswith("#")]
        indented = bool(code) and code[0][:1].isspace()
        prefix = "if 1:\n" if indented else "\n"
        source = Source(self.path, prefix + encode("\n".join(texts)) + "\n")
        try:
            _ = source.tree
        except SourceError as error:
            raise self._not_python(error) from error
        return source

    def _not_python(self, error: SourceError) -> PatchError:
        cause = error.__cause__
        row = (getattr(cause, "lineno", None) or 2) - 2
        line = self.lines[min(max(row, 0), len(self.lines) - 1)]
        problem = getattr(cause, "msg", None) or error.message
        return PatchError(
            f"the {self.name} view is not Python: {problem}",
            where=f"{self.path}:{line.number}",
            hint=f"read the {self.name} view alone, without the other side's lines: "
            f"{decode(line.text.strip())!r}",
        )

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The pattern: statements that follow each other in one block."""
        body = self.source.tree.body
        if self.source.text.startswith("if 1:"):
            wrapper = body[0]
            assert isinstance(wrapper, ast.If)
            outside = [*body[1:], *wrapper.orelse]
            if outside:
                row = outside[0].lineno - 2
                raise PatchError(
                    f"the {self.name} view ends its block early",
                    where=f"{self.path}:{self.lines[row].number}",
                    hint="indent no line less than the hunk's first",
                )
            return wrapper.body
        return body

    @cached_property
    def logical_lines(self) -> list[LogicalLine]:
        """All logical lines, in order."""
        result = []
        for statement in self.statements:
            for part in parts(self.source, statement):
                extent = span(self.source, part)
                first = self.source.line_number(extent.start) - 2
                last = self.source.line_number(max(extent.start, extent.end - 1)) - 2
                start = self.source.line_start(extent.start)
                column = len(self.source.text[start : extent.start].expandtabs())
                rows = range(self.rows[first], self.rows[last] + 1)
                result.append(LogicalLine(part, rows, column))
        return result

    @cached_property
    def weight(self) -> tuple[int, int]:
        """How much the view says: its logical lines, then its code."""
        return len(self.logical_lines), len(self._nodes)

    @cached_property
    def metavariables(self) -> dict[str, int]:
        """Each named metavariable, and the patch line of its first use.

        Raises:
            PatchError: One is only a part of a name.
        """
        names: dict[str, int] = {}
        for row, node in (*self._nodes, *self._bound_by_limits()):
            for identifier in own_names(node):
                name = meta_name(identifier)
                if name:
                    names.setdefault(name, self.lines[row].number)
                if not is_whole_name(identifier):
                    raise PatchError(
                        f"a metavariable is only a part of {decode(identifier)!r}",
                        where=f"{self.path}:{self.lines[row].number}",
                        hint="let $name stand for a whole name or expression",
                    )
        return names

    def unspecific(self) -> Iterator[tuple[int, str]]:
        """What stands for no one text, and its row: ``$_`` and argument ellipses."""
        for row, node in self._nodes:
            if any(meta_name(name) == ANONYMOUS for name in own_names(node)):
                yield row, "$_"
            arguments: list[ast.expr] = []
            if isinstance(node, ast.Call):
                arguments = node.args
            elif isinstance(node, ast.ClassDef):
                arguments = node.bases
            if any(map(is_dots, arguments)) or (
                isinstance(node, ast.arg) and is_dots(node)
            ):
                yield row, "an ellipsis among arguments"

    def required(self) -> list[ast.expr]:
        """What ellipses ask for."""
        return [wanted for limit in self.limits.values() for wanted in limit.having]

    def _bound_by_limits(self) -> Iterator[tuple[int, ast.AST]]:
        for row, limit in self.limits.items():
            for expression in limit.having:
                yield from ((row, node) for node in ast.walk(expression))

    @cached_property
    def _nodes(self) -> list[tuple[int, ast.AST]]:
        """All nodes that say something, each with its row."""
        found: list[tuple[int, ast.AST]] = []
        for statement in self.statements:
            first = statement.lineno
            last = statement.end_lineno or first
            for node in ast.walk(statement):
                if node._fields:  # not Load and the like
                    # Before Python 3.12, positions inside f-strings mean nothing.
                    line = max(getattr(node, "lineno", 0), first)
                    found.append((min(line, last) - 2, node))
        return found

    def limit(self, dots: ast.AST) -> Limit:
        """What the run under an ellipsis must or must not have."""
        return self.limits.get(dots.lineno - 2, NO_LIMIT)  # type: ignore[attr-defined]

    def row_of(self, node: ast.AST) -> int:
        """The index, among the hunk's lines, of a node's first line."""
        return self.rows[node.lineno - 2]  # type: ignore[attr-defined]

    def line_of(self, node: ast.AST) -> Line:
        """The patch line that a pattern node begins on."""
        place: Any = getattr(node, "pattern", node)  # a match_case has no position
        index: int = place.lineno - 2
        return self.lines[index]

    def sibling_lists(self) -> Iterable[list[ast.AST]]:
        """Every block of the pattern, the outermost first."""
        top: list[ast.AST] = list(self.statements)
        yield top
        for statement in top:
            yield from all_blocks(statement)


class Views(NamedTuple):
    """The two views of a hunk.

    Args:
        lines: The hunk's lines, without remarks on the patch, such that each
            logical line is wholly context, wholly removed or wholly added.
        before: Context and removed lines.
        after: Context and added lines.
    """

    lines: Sequence[Line]
    before: View
    after: View


def split_views(path: str, lines: Sequence[Line]) -> Views:
    """The views of a hunk.

    A context line inside a call of which another line changes is really both
    removed and added; it is treated so.

    Raises:
        PatchError: A view is not Python, or names no place.
    """
    views = _views(path, [line for line in lines if line.kind != "#"])
    while mixed := next(_mixed(views), None):
        sides: tuple[Kind, ...] = ("-", "+")
        both = [
            views.lines[row]._replace(kind=side)
            for side in sides
            for row in mixed
            if views.lines[row].kind in (side, " ")
        ]
        lines = [*views.lines[: mixed[0]], *both, *views.lines[mixed[-1] + 1 :]]
        views = _views(path, lines)
    return views


def _views(path: str, lines: Sequence[Line]) -> Views:
    return Views(lines, _view(path, lines, "before"), _view(path, lines, "after"))


def _view(path: str, lines: Sequence[Line], name: str) -> View:
    drop = "+" if name == "before" else "-"
    rows = [row for row, line in enumerate(lines) if line.kind != drop]
    view = View(path, name, [lines[row] for row in rows], rows)
    if not rows or not view.statements:
        problem = "is empty"
    elif all(map(is_dots, view.statements)):
        problem = "matches everywhere"
    else:
        return view
    raise PatchError(
        f"the {name} view {problem}",
        where=f"{path}:{lines[0].number}",
        hint="add a context line, so that there is a place to find",
    )


def _mixed(views: Views) -> Iterator[range]:
    """The rows of logical lines of which only a part changes."""
    for view in (views.before, views.after):
        for logical in view.logical_lines:
            kinds = {views.lines[row].kind for row in logical.rows}
            if len(kinds) > 1 and " " in kinds:
                yield logical.rows
