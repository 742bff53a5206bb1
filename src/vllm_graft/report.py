"""All text that commands print, but for errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from vllm_graft.results import HunkResult, PatchResult, TreeStatus, Verdict

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from vllm_graft.api import Outcome
    from vllm_graft.index.fetch import Fetched
    from vllm_graft.lint import Problem
    from vllm_graft.planner import Plan

_COLOURS: Final = {
    Verdict.APPLIES: "32",
    Verdict.APPLIED: "36",
    Verdict.SUPERSEDED: "36",
    Verdict.PARTIAL: "33",
    Verdict.CONFLICT: "31",
    Verdict.AMBIGUOUS: "31",
    Verdict.ABSENT: "2",
}
# On the way back the same verdicts mean these.
_REVERSE: Final = {
    Verdict.APPLIES: "reverts",
    Verdict.APPLIED: "not there",
    Verdict.PARTIAL: "half there",
}
_WIDTH: Final = max(len(verdict.value) for verdict in Verdict)
_INDENT: Final = " " * (2 + _WIDTH + 2)


def show(
    arguments: argparse.Namespace, record: dict[str, Any], lines: Iterable[str]
) -> None:
    """Prints a command's result, as JSON if the user asked for it."""
    if arguments.json:
        show_json(record)
    else:
        for line in lines:
            print(line)  # noqa: T201


def show_json(record: dict[str, Any]) -> None:
    """Prints one JSON document."""
    import json  # noqa: PLC0415 - takes time, and most runs print text

    print(json.dumps(record, indent=2))  # noqa: T201


def complain(line: str) -> None:
    """Prints a line on standard error."""
    print(line, file=sys.stderr)  # noqa: T201


def refuse(arguments: argparse.Namespace, plan: Plan) -> None:
    """Prints where the series stand that keep a command from starting."""
    if arguments.json:
        show_json(plan.status.to_json())
        return
    for line in status_lines(plan.status, reverse=plan.reverse):
        complain(line)


def note(notes: Iterable[str]) -> None:
    """Prints what a person should know although nothing is wrong."""
    for text in notes:
        complain(f"note: {text}")


def status_lines(status: TreeStatus, *, reverse: bool = False) -> Iterator[str]:
    """A verdict a patch, a line each, the places and reasons below."""
    yield tree_line(status)
    for series in status.series:
        yield ""
        yield f"{series.name}: {_word(series.verdict, reverse)}"
        for patch in series.patches:
            yield from _patch_lines(patch, reverse)


def tree_line(status: TreeStatus) -> str:
    """The tree, and the version of vLLM that it says it is."""
    version = f" (vLLM {status.vllm_version})" if status.vllm_version else ""
    return f"{status.tree}{version}"


def _patch_lines(patch: PatchResult, reverse: bool) -> Iterator[str]:
    yield f"  {_word(patch.verdict, reverse, _WIDTH)}  {patch.file}"
    usual = (patch.verdict, patch.reason)
    # A hunk with nothing to say of its own is not worth a line.
    shown = [h for h in patch.hunks if h.lines or (h.verdict, h.reason) != usual]
    if patch.reason and patch.reason not in {hunk.reason for hunk in shown}:
        yield f"{_INDENT}{patch.reason}"
    for hunk in shown:
        yield f"{_INDENT}{_place(patch, hunk)}{_unusual(patch, hunk, reverse)}"
        if hunk.reason:
            yield f"{_INDENT}  {hunk.reason}"


def _place(patch: PatchResult, hunk: HunkResult) -> str:
    lines = ",".join(map(str, hunk.lines))
    if len(patch.targets) == 1:  # else it is not known which one the hunk is on
        return f"{':'.join(filter(None, (*patch.targets, lines)))}: {hunk.scope}"
    return f"line {lines}: {hunk.scope}" if lines else hunk.scope


def _unusual(patch: PatchResult, hunk: HunkResult, reverse: bool) -> str:
    """The hunk's verdict where it is not the patch's."""
    if hunk.verdict is patch.verdict:
        return ""
    optional = hunk.optional and hunk.verdict is Verdict.ABSENT
    return f": {_word(hunk.verdict, reverse)}{' (optional)' if optional else ''}"


def outcome_lines(outcome: Outcome, *, reverse: bool) -> Iterator[str]:
    """What apply or revert did."""
    yield tree_line(outcome.status)
    for path in outcome.changed:
        yield f"  changed  {path}"
    for commit in outcome.commits:
        yield f"  commit   {commit}"
    if outcome.changed:
        return
    for series in outcome.status.series:
        yield f"  nothing to do: {series.name} is {_word(series.verdict, reverse)}"


def outcome_notes(outcome: Outcome) -> list[str]:
    """What a person should know about it although nothing is wrong."""
    left_out = [
        f"{patch.file} left out: {patch.reason}"
        for series in outcome.status.series
        for patch in series.patches
        if patch.verdict is Verdict.ABSENT
    ]
    if not outcome.inexact:
        return left_out
    names = ", ".join(outcome.inexact)
    guessed = (
        f"the code is as {names} has it; for want of a record of the original, its "
        "layout and comments may differ"
    )
    return [*left_out, guessed]


def export_lines(out: Path, names: Sequence[str]) -> Iterator[str]:
    """The mail that was written."""
    yield from names
    if names:
        yield f"apply it with: git am --keep-non-patch {out}/*.patch"
    else:
        yield "nothing to export"


def problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """The findings of check."""
    for problem in problems:
        yield f"{problem.where}: {problem.message}"
        if problem.hint:
            yield f"  hint: {problem.hint}"
    if not problems:
        yield "no problems"


def fetched_lines(fetched: Fetched) -> Iterator[str]:
    """What fetch made."""
    yield f"{fetched.path}: vLLM {fetched.version}, commit {fetched.commit[:12]}"
    yield f"  from {fetched.filename}, SHA-256 {fetched.sha256} verified"
    for text in fetched.notes:
        yield f"  note: {text}"


def _word(verdict: Verdict, reverse: bool, width: int = 0) -> str:
    word = _REVERSE.get(verdict, verdict.value) if reverse else verdict.value
    padded = f"{word:<{width}}"
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return padded
    return f"\x1b[{_COLOURS[verdict]}m{padded}\x1b[0m"
