"""What a change does, line by line: the vocabulary between a patch and its edits."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from vllm_graft.patchfile import Line
from vllm_graft.views import LogicalLine


@dataclass(frozen=True)
class Keep:
    """A context line: matched, not touched."""

    line: LogicalLine

    @property
    def column(self) -> int:
        """Its indentation in the patch."""
        return self.line.column


@dataclass(frozen=True)
class Drop:
    """A removed logical line; ``named`` is its text in the patch."""

    line: LogicalLine
    named: str

    @property
    def column(self) -> int:
        """Its indentation in the patch."""
        return self.line.column


@dataclass(frozen=True)
class Take:
    """A removed statement whose text goes to a :class:`Put`.

    The comments directly above go along, unless ``bare``: the patch removes one.
    """

    node: ast.AST
    column: int
    bare: bool


@dataclass(frozen=True)
class Put:
    """Where a moved statement goes; the rest is that of its :class:`Take`."""

    node: ast.AST
    column: int
    bare: bool


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
class Hint:
    """A blank line (no text) or comment line of the context.

    It need not be there; where it is, it tells where beside it new lines go.
    """

    text: str


@dataclass(frozen=True)
class Add:
    """An added logical line, comment or blank line, as the patch writes it."""

    lines: tuple[Line, ...]
    column: int

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(line.text for line in self.lines)


Item = Keep | Drop | Take | Put | Gap | Cut | Hint | Add
