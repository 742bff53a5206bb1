"""The record of a fault in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from vllm_graft.proof.records import ANSWERED


class Word(NamedTuple):
    """What is shown of a record.

    Args:
        glyph: A sign for the kind.
        kind: The class of its colours.
        text: What reached the caller, short.
        full: The same as it was recorded.
        seconds: After how long.
        after: Whether the engine goes on.
        following: What the next call gave, as it was recorded.
        left: What was left behind, in words; empty for nothing.
    """

    glyph: str
    kind: str
    text: str
    full: str
    seconds: float
    after: str
    following: str
    left: str


def word_for(record: Mapping[str, Any]) -> Word:
    """The words for a record; see ``proof.records.Record``."""
    caller = str(record["caller"])
    glyph, kind, text = _short(caller)
    following = str(record["next_call"])
    if not record["goes_on"]:
        after = "ends"
    elif following == ANSWERED:
        after = "goes on"
    else:
        after = f"next call: {_short(following)[2]}"
    parts = [
        (record["left_processes"], "process", "processes"),
        (record["left_segments"], "segment", "segments"),
    ]
    left = [f"{n} {one if n == 1 else many}" for n, one, many in parts if n]
    said = f"; left after shutdown: {', '.join(left)}" if left else ""
    seconds = float(record["seconds"])
    return Word(glyph, kind, text, caller, seconds, after, following, said)


def _short(outcome: str) -> tuple[str, str, str]:
    if outcome == ANSWERED:
        return "✓", "applied", "answered"
    if outcome.startswith("TimeoutError"):
        return "…", "partial", "timeout"
    if outcome.startswith(("wrong", "no outcome")):
        return "✗", "conflict", outcome.partition(":")[0]
    return "!", "applies", outcome.partition(":")[0]
