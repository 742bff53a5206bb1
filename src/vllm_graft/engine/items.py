"""What a change does, line by line: the vocabulary between a patch and its edits."""

from __future__ import annotations

import ast
from typing import NamedTuple

from vllm_graft.engine.patchfile import Line
from vllm_graft.engine.views import LogicalLine


class Keep(NamedTuple):
    """A context line: matched, not touched."""

    line: LogicalLine

    @property
    def column(self) -> int:
        """Its indentation in the patch."""
        return self.line.column


class Drop(NamedTuple):
    """A removed logical line; ``named`` is its text in the patch."""

    line: LogicalLine
    named: str

    @property
    def column(self) -> int:
        """Its indentation in the patch."""
        return self.line.column


class Take(NamedTuple):
    """A removed statement whose text goes to a :class:`Put`.

    The comments directly above go along, unless ``bare``: the patch removes one.
    """

    node: ast.AST
    column: int
    bare: bool


class Put(NamedTuple):
    """Where a moved statement goes; the rest is that of its :class:`Take`."""

    node: ast.AST
    column: int
    bare: bool


class Gap(NamedTuple):
    """A statement ellipsis."""

    node: ast.AST
    column: int


class Cut(NamedTuple):
    """A removed blank line (no text) or comment line."""

    text: str


class Hint(NamedTuple):
    """A blank line (no text) or comment line of the context.

    It need not be there; where it is, it tells where beside it new lines go.
    """

    text: str


class Add(NamedTuple):
    """An added logical line, comment or blank line, as the patch writes it."""

    lines: tuple[Line, ...]
    column: int

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(line.text for line in self.lines)


Item = Keep | Drop | Take | Put | Gap | Cut | Hint | Add
