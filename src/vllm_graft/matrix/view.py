"""What the table and the page of a matrix have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_graft.results import Verdict

if TYPE_CHECKING:
    from vllm_graft.matrix.build import Matrix
    from vllm_graft.results import PatchResult


@dataclass(frozen=True)
class Look:
    """How a verdict is shown.

    Attributes:
        glyph: One character that tells it from the others without colour.
        style: Its style on a terminal, in rich's words.
        meaning: What it says, as the end of a sentence on the patch.
    """

    glyph: str
    style: str
    meaning: str


LOOKS = {
    Verdict.APPLIES: Look("+", "blue", "can be applied"),
    Verdict.APPLIED: Look("✓", "green", "is already there"),
    Verdict.SUPERSEDED: Look("≈", "cyan", "was solved another way"),
    Verdict.PARTIAL: Look("◐", "yellow", "is there in part; the rest can be applied"),
    Verdict.CONFLICT: Look("✗", "bold red", "meets code that it does not know"),
    Verdict.AMBIGUOUS: Look("?", "magenta", "matches more places than it may"),
    Verdict.ABSENT: Look("·", "dim", "changes what does not exist here"),
}

#: Verdicts that ask somebody to do something.
BAD = (Verdict.CONFLICT, Verdict.AMBIGUOUS, Verdict.PARTIAL)


@dataclass(frozen=True)
class Column:
    """A patch, as the head of a column.

    Attributes:
        number: The number its file name begins with, or its place in the series.
        name: The rest of the file name, without its ending.
        subject: Its subject line.
        adds_only: Whether it only adds files, which no wheel has a place for.
    """

    number: str
    name: str
    subject: str
    adds_only: bool


def columns(patches: tuple[PatchResult, ...]) -> list[Column]:
    """The columns of one series."""
    found = []
    for place, patch in enumerate(patches, 1):
        stem = patch.file.rsplit("/", 1)[-1].rpartition(".")[0] or patch.file
        number, _, name = stem.partition("-")
        if not (number.isdigit() and name):
            number, name = f"{place:04}", stem
        found.append(Column(number, name, patch.subject, patch.adds_only))
    return found


def lines_of(patch: PatchResult) -> tuple[int, ...]:
    """The source lines of the places that a patch matches, in order."""
    return tuple(sorted({line for hunk in patch.hunks for line in hunk.lines}))


def headline(matrix: Matrix) -> str:
    """What the matrix comes to, in a sentence."""
    patches = sum(len(series.patches) for series in matrix.series)
    text = (
        f"{_count(patches, 'patch', 'patches')} of "
        f"{_count(len(matrix.series), 'series', 'series')} on "
        f"{_count(len(matrix.rows), 'release', 'releases')}"
    )
    if matrix.rows:
        first, last = matrix.rows[0].version, matrix.rows[-1].version
        text += f" of vLLM, {first} to {last}" if first != last else f", {first}"
    return text


def outcome(matrix: Matrix) -> tuple[bool, str]:
    """Whether all is well, and the sentence that says so or what is not."""
    troubles = []
    for verdict in BAD:
        hit = [row.version for row in matrix.rows if verdict in row.verdicts]
        if hit:
            troubles.append(f"{verdict} on {', '.join(hit)}")
    if matrix.failed:
        unread = ", ".join(row.version for row in matrix.failed)
        troubles.append(f"could not read {unread}")
    if troubles:
        text = "; ".join(troubles)
        return False, text[0].upper() + text[1:]
    return True, "No conflict on any release"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
