"""Edits of source text, and making them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vllm_graft.engine.text import indentation


class SharedLineError(Exception):
    """An edit would tear a physical line apart; ``offset`` is on that line."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class LostError(Exception):
    """A line to edit has no counterpart in the source (an ``else:``, say)."""

    def __init__(self, line: int) -> None:
        super().__init__(f"the code at line {line} matches, but has no line to edit")


class OverlapError(Exception):
    """Two edits change the same text, from ``offset`` on."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class Edit(NamedTuple):
    """Replaces ``[start, end)`` of the text."""

    start: int
    end: int
    text: str


def merge(hunks: Iterable[Sequence[Edit]]) -> list[Edit]:
    """The edits of several hunks as one list, in the order of the text.

    Where a block ends, one hunk may insert into it and another one behind it, both
    at the same place: what is indented deeper then comes first.
    """
    keyed = []
    for edits in hunks:
        depths: dict[int, int] = {}
        for edit in edits:
            if edit.start == edit.end and edit.text.strip():
                depth = min(map(_depth, filter(str.strip, edit.text.splitlines())))
                depths[edit.start] = min(depth, depths.get(edit.start, depth))
        for edit in edits:
            depth = depths.get(edit.start, 0) if edit.start == edit.end else 0
            keyed.append(((edit.start, edit.end, -depth), edit))
    return [edit for _, edit in sorted(keyed, key=lambda pair: pair[0])]


def _depth(line: str) -> int:
    return len(indentation(line).expandtabs())


def splice(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; insertions at one place keep their order.

    Raises:
        OverlapError: Two edits change the same text.
    """
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise OverlapError(edit.start)
        out += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*out, text[at:]])
