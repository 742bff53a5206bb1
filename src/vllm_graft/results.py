"""What the tool says about a tree: frozen, printable, with a stable JSON form."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NamedTuple


class Verdict(str, Enum):
    """Where a hunk, patch or series stands in a tree."""

    APPLIES = "applies"
    """The before view is there; the change can be made."""
    APPLIED = "applied"
    """The after view is there and the post-conditions hold."""
    SUPERSEDED = "superseded"
    """Neither view is there, yet the post-conditions hold: solved differently."""
    PARTIAL = "partial"
    """Some of it is applied and the rest applies."""
    CONFLICT = "conflict"
    """The place is there but its code is not what the patch knows."""
    AMBIGUOUS = "ambiguous"
    """More places match than the patch allows."""
    ABSENT = "absent"
    """What the patch changes does not exist in this tree."""

    def __str__(self) -> str:
        return self.value


#: Verdicts under which a patch can be applied or needs nothing.
GOOD: Final = frozenset(
    {Verdict.APPLIES, Verdict.APPLIED, Verdict.SUPERSEDED, Verdict.PARTIAL}
)
DONE: Final = frozenset({Verdict.APPLIED, Verdict.SUPERSEDED})


class HunkResult(NamedTuple):
    """One hunk on one file.

    Args:
        scope: The hunk's scopes, as its header has them.
        verdict: Where it stands.
        lines: 1-based source lines of the places it matches.
        reason: Why, in a few words; empty where the verdict says it all.
        optional: Whether a tree without the place is in order.
    """

    scope: str
    verdict: Verdict
    lines: tuple[int, ...] = ()
    reason: str = ""
    optional: bool = False

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "scope": self.scope,
            "verdict": self.verdict.value,
            "lines": list(self.lines),
            "reason": self.reason,
        }


class PatchResult(NamedTuple):
    """One patch on one tree.

    Args:
        adds_only: Whether it only adds new files; a tree without the folder that
            they belong in (an installed package has no tests) is then in order.
        notes: What a person should know although nothing is wrong.
    """

    file: str
    subject: str
    targets: tuple[str, ...]
    verdict: Verdict
    reason: str
    hunks: tuple[HunkResult, ...]
    adds_only: bool = False

    @property
    def ok(self) -> bool:
        """Whether the patch can be applied here, or has nothing to do."""
        return self.verdict in GOOD or (
            self.verdict is Verdict.ABSENT and self.adds_only
        )

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "file": self.file,
            "subject": self.subject,
            "targets": list(self.targets),
            "verdict": self.verdict.value,
            "reason": self.reason,
            "hunks": [hunk.to_json() for hunk in self.hunks],
        }


class SeriesResult(NamedTuple):
    """One series on one tree, each patch on the result of those before it."""

    name: str
    patches: tuple[PatchResult, ...]

    @property
    def verdict(self) -> Verdict:
        """The series' verdict: the worst of its patches', or partial."""
        required = [p.verdict for p in self.patches if not p.adds_only]
        if Verdict.ABSENT not in required:
            required += [
                p.verdict
                for p in self.patches
                if p.adds_only and p.verdict is not Verdict.ABSENT
            ]
        return combine(required)

    @property
    def ok(self) -> bool:
        """Whether every patch can be applied here, or has nothing to do."""
        return all(patch.ok for patch in self.patches)

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "patches": [patch.to_json() for patch in self.patches],
        }


class TreeStatus(NamedTuple):
    """All series on one tree.

    Args:
        tree: The tree's root, as the user names it.
        vllm_version: The version it says it is, or None where it says nothing.
    """

    tree: str
    vllm_version: str | None
    series: tuple[SeriesResult, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every patch can be applied here, or has nothing to do."""
        return all(series.ok for series in self.series)

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "tree": self.tree,
            "vllm_version": self.vllm_version,
            "series": [series.to_json() for series in self.series],
        }


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a whole whose required parts have these verdicts."""
    found = set(verdicts)
    for bad in (Verdict.CONFLICT, Verdict.AMBIGUOUS):
        if bad in found:
            return bad
    if not found or found == {Verdict.ABSENT}:
        return Verdict.ABSENT
    if Verdict.ABSENT in found:
        return Verdict.CONFLICT
    if found == {Verdict.APPLIES}:
        return Verdict.APPLIES
    if found <= DONE:
        return Verdict.SUPERSEDED if Verdict.SUPERSEDED in found else Verdict.APPLIED
    return Verdict.PARTIAL
