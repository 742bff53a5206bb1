"""Splits the lines of a hunk into its before view and its after view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vllm_graft.errors import PatchError
from vllm_graft.patchfile import Kind, Line
from vllm_graft.pattern import View, is_dots


@dataclass(frozen=True)
class Views:
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
            replace(views.lines[row], kind=side)
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
