"""Matrices made by hand, for the tests of what shows them."""

from __future__ import annotations

from datetime import datetime, timezone

from vllm_graft.errors import FetchError
from vllm_graft.matrix.build import Matrix, Row
from vllm_graft.results import (
    HunkResult,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
)

MADE = datetime(2026, 6, 13, 8, 46, tzinfo=timezone.utc)


def patch(
    file: str, verdict: Verdict, *, adds_only: bool = False, reason: str = ""
) -> PatchResult:
    hunks = (HunkResult("Runner.step", verdict, (12, 7), reason),)
    return PatchResult(
        file=file,
        subject=f"[Core] Subject of {file}",
        targets=("vllm/v1/runner.py",),
        verdict=verdict,
        reason=reason,
        hunks=() if adds_only else hunks,
        adds_only=adds_only,
    )


def row(version: str, *verdicts: Verdict, reason: str = "") -> Row:
    """A release with two series: one of all verdicts and a patch that adds files."""
    files = ("0001-first.spatch", "0002-second-part.spatch", "0003-third.spatch")
    patches = [
        patch(file, verdict, reason=reason)
        for file, verdict in zip(files, verdicts, strict=False)
    ]
    tests = patch("0009-tests.spatch", Verdict.ABSENT, adds_only=True)
    one = SeriesResult("first-series", (*patches, tests))
    other = SeriesResult("second", (patch("only.spatch", verdicts[0]),))
    return Row(version, f"vllm-{version}.whl", TreeStatus("", version, (one, other)))


def unread(version: str) -> Row:
    error = FetchError(f"cannot read vllm-{version}.whl: <broken>", hint="Try again.")
    return Row(version, f"vllm-{version}.whl", None, error)


def matrix(*rows: Row, notes: tuple[str, ...] = ()) -> Matrix:
    return Matrix(rows, MADE, ("https://index.test/simple/",), MADE, notes)
