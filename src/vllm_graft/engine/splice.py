"""Edits of source text, and making them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


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
