"""All text that commands print, but for errors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from vllm_graft.results import HunkResult, PatchResult, TreeStatus, Verdict

if TYPE_CHECKING:
    from vllm_graft.api import Outcome
    from vllm_graft.fetch import Fetched
    from vllm_graft.lint import Problem
    from vllm_graft.plan import Plan

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
    Verdict.PARTIAL: "half reverted",
}


def show(
    arguments: argparse.Namespace, record: dict[str, Any], lines: Iterable[str]
) -> None:
    """Prints a command's result, as JSON if the user asked for it."""
    if arguments.json:
        print(json.dumps(record, indent=2))  # noqa: T201
    else:
        for line in lines:
            print(line)  # noqa: T201


def complain(line: str) -> None:
    """Prints a line on standard error."""
    print(line, file=sys.stderr)  # noqa: T201


def status_lines(status: TreeStatus, *, reverse: bool = False) -> Iterator[str]:
    """A verdict a patch, a line each, the reasons below."""
    version = f" (vLLM {status.vllm_version})" if status.vllm_version else ""
    yield f"{status.tree}{version}"
    for series in status.series:
        yield ""
        yield f"{series.name}: {_word(series.verdict, reverse)}"
        width = max((len(patch.file) for patch in series.patches), default=0)
        for patch in series.patches:
            yield from _patch_lines(patch, width, reverse)


def _patch_lines(patch: PatchResult, width: int, reverse: bool) -> Iterator[str]:
    word = _word(patch.verdict, reverse)
    yield f"  {patch.file:<{width}}  {word}".rstrip()
    shown = {hunk.reason for hunk in patch.hunks}
    if patch.reason and patch.reason not in shown:
        yield f"      {patch.reason}"
    for hunk in patch.hunks:
        yield from _hunk_lines(hunk, reverse)


def _hunk_lines(hunk: HunkResult, reverse: bool) -> Iterator[str]:
    where = ""
    if hunk.lines:
        where = f", line{'s' if len(hunk.lines) > 1 else ''} "
        where += ", ".join(map(str, hunk.lines))
    word = _word(hunk.verdict, reverse)
    note = " (optional)" if hunk.optional and hunk.verdict is Verdict.ABSENT else ""
    yield f"      {hunk.scope}: {word}{where}{note}"
    if hunk.reason:
        yield f"          {hunk.reason}"


def outcome_lines(outcome: Outcome, *, reverse: bool) -> Iterator[str]:
    """What apply or revert did."""
    done = "reverted" if reverse else "applied"
    if not outcome.changed:
        yield f"{outcome.status.tree}: nothing to do"
    for path in outcome.changed:
        yield f"{done} {path}"
    for commit in outcome.commits:
        yield f"commit {commit}"
    for name in outcome.inexact:
        yield (
            f"note: {name} is reverted as the patch writes the code; for want of a "
            "record of the original, its layout and comments may differ"
        )


def refusal_lines(planned: Plan) -> Iterator[str]:
    """Why a plan was not carried out."""
    bad = [step.result for step in planned.steps if not step.result.ok]
    verb = "be reverted" if planned.reverse else "be applied"
    names = ", ".join(result.file for result in bad)
    yield f"error: {planned.status.tree}: cannot {verb}: {names}; nothing was changed"
    for result in bad:
        reasons = [result.reason, *(h.reason for h in result.hunks)]
        for reason in dict.fromkeys(filter(None, reasons)):
            yield f"  {result.file}: {result.verdict}: {reason}"


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
    for note in fetched.notes:
        yield f"  note: {note}"


def _word(verdict: Verdict, reverse: bool) -> str:
    word = _REVERSE.get(verdict, verdict.value) if reverse else verdict.value
    if not _colour():
        return word
    return f"\x1b[{_COLOURS[verdict]}m{word}\x1b[0m"


def _colour() -> bool:
    import os  # noqa: PLC0415

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
