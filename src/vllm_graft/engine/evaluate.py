"""Judges and makes the changes of one patch to one file.

The result is verified before anyone sees it: its changed functions parse, every
hunk is then found *applied*, and the post-conditions hold. What fails that is a
conflict, and the file stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from vllm_graft.engine.condition import Check
from vllm_graft.engine.explode import explode
from vllm_graft.engine.locate import CompiledHunk, Found
from vllm_graft.engine.patchfile import FilePatch
from vllm_graft.engine.reparse import Edited
from vllm_graft.engine.source import Source, split_lines
from vllm_graft.engine.splice import LostError, OverlapError, SharedLineError, merge
from vllm_graft.engine.splits import Splits
from vllm_graft.errors import PatchError, SourceError
from vllm_graft.results import DONE, HunkResult, Verdict, combine

_MOST_SPLITS = 50


class FileOutcome(NamedTuple):
    """What a file patch does to one file.

    Args:
        verdict: Where it stands.
        reason: Why, where a hunk does not say so already.
        hunks: One result for each hunk.
        text: The file's text afterwards; as before where nothing changes.
    """

    verdict: Verdict
    reason: str
    hunks: tuple[HunkResult, ...]
    text: str


class CompiledFile:
    """The changes to one file, compiled once and used on many trees.

    Args:
        path: The patch file, for messages.
        file: The file patch; for a reverse patch, the reversed one.
        reverse: Post-conditions then say nothing, and guards are judged on the
            tree as it is: they speak of the patched side.

    Raises:
        PatchError: A hunk or condition is malformed.
    """

    def __init__(self, path: str, file: FilePatch, *, reverse: bool = False) -> None:
        self.file = file
        self.reverse = reverse
        try:
            self.hunks = [CompiledHunk(path, h, reverse=reverse) for h in file.hunks]
            self.checks = [Check(path, condition) for condition in file.conditions]
        except RecursionError as error:
            raise PatchError(
                "code in the patch is nested too deeply",
                where=f"{path}:{file.number}",
                hint="match less of it: `...` and $name stand for any code",
            ) from error

    def evaluate(self, source: Source) -> FileOutcome:
        """Judges the file and makes the changes in memory.

        Raises:
            SourceError: The file is not Python, or nested too deeply.
        """
        ending = _missing_newline(source)
        whole = source.with_text(source.text + ending) if ending else source
        try:
            outcome = self._split_and_evaluate(whole)
        except RecursionError as error:
            raise SourceError(
                "code is nested too deeply",
                where=source.path,
                hint="the file is not ordinary Python source",
            ) from error
        if outcome.text == whole.text:
            return outcome._replace(text=source.text)
        return outcome._replace(text=outcome.text.removesuffix(ending))

    def _split_and_evaluate(self, source: Source) -> FileOutcome:
        """Splits shared lines until no edit would tear one apart."""
        current = source
        splits = Splits()
        while True:
            try:
                outcome = self._evaluate(current, splits)
                break
            except SharedLineError as shared:
                line = current.line_number(shared.offset)
                original = splits.original(line)
                try:
                    text = explode(current, shared.offset)
                except LostError:
                    return self._cannot_split(source, original)
                if len(splits) == _MOST_SPLITS:
                    return self._cannot_split(source, original)
                added = len(split_lines(text)) - len(split_lines(current.text))
                splits.add(line, added)
                current = current.with_text(text)
        if outcome.text == current.text:
            outcome = outcome._replace(text=source.text)
        return outcome

    def _cannot_split(self, source: Source, line: int) -> FileOutcome:
        reason = f"line {line} holds several statements that cannot be told apart"
        hunks = tuple(
            HunkResult(h.hunk.scope, Verdict.CONFLICT, (line,), reason)
            for h in self.hunks
        )
        return FileOutcome(Verdict.CONFLICT, reason, hunks, source.text)

    def _evaluate(self, source: Source, splits: Splits) -> FileOutcome:
        found = [self._locate(hunk, source, splits) for hunk in self.hunks]
        found = self._guard(source, splits, found)
        edits = merge([f.edits for f in found])
        try:
            edited = Edited(source, edits)
        except SourceError as error:
            return self._refuse(source, found, f"the result is {error.message}")
        except OverlapError as overlap:
            line = splits.original(source.line_number(overlap.offset))
            reason = f"two hunks, or two places of one, change line {line}"
            return self._refuse(source, found, reason)
        broken = [] if self.reverse else self._broken(edited, splits)
        results = [
            self._result(hunk, f, broken)
            for hunk, f in zip(self.hunks, found, strict=True)
        ]
        verdict = _combine(results)
        if edits and verdict in (Verdict.APPLIES, Verdict.PARTIAL):
            problem = self._unverified(edited.tree, found) or "; ".join(broken)
            if problem:
                return self._refuse(source, found, problem)
            return FileOutcome(verdict, "", tuple(results), edited.text)
        reason = "; ".join(broken) if verdict is Verdict.CONFLICT else ""
        return FileOutcome(verdict, reason, tuple(results), source.text)

    def _locate(self, hunk: CompiledHunk, source: Source, splits: Splits) -> Found:
        try:
            return hunk.locate(source, splits)
        except LostError as lost:
            return Found(Verdict.CONFLICT, str(lost))

    def _guard(
        self, source: Source, splits: Splits, found: Sequence[Found]
    ) -> list[Found]:
        """Takes back the hunks whose guard does not hold."""
        if not any(hunk.guards for hunk in self.hunks):
            return list(found)
        edits = merge(
            [
                f.edits
                for hunk, f in zip(self.hunks, found, strict=True)
                if not hunk.guards and not self.reverse
            ]
        )
        try:
            patched = Edited(source, edits)
        except (SourceError, OverlapError):  # _evaluate meets it again, and says so
            return list(found)
        kept = []
        for hunk, f in zip(self.hunks, found, strict=True):
            failures = (
                check.failure(patched, splits) for check in hunk.guards if f.edits
            )
            failure = next(filter(None, failures), None)
            kept.append(
                Found(Verdict.ABSENT, f"guard: {failure}", f.lines) if failure else f
            )
        return kept

    def _broken(self, edited: Edited, splits: Splits) -> list[str]:
        failures = (check.failure(edited, splits) for check in self.checks)
        return [f"post-condition {failure}" for failure in failures if failure]

    def _result(
        self, hunk: CompiledHunk, found: Found, broken: Sequence[str]
    ) -> HunkResult:
        verdict, reason = found.verdict, found.reason
        optional = hunk.hunk.optional or bool(hunk.guards)
        if verdict is None and optional:
            verdict = Verdict.ABSENT
        elif verdict is None and self.checks and not broken and not self.reverse:
            verdict, reason = Verdict.SUPERSEDED, "solved another way"
        elif verdict is None:
            verdict = Verdict.CONFLICT
        elif verdict is Verdict.APPLIED and broken:
            verdict, reason = Verdict.CONFLICT, f"looks applied, but {broken[0]}"
        return HunkResult(hunk.hunk.scope, verdict, found.lines, reason, optional)

    def _unverified(self, tree: ast.Module, found: Sequence[Found]) -> str:
        """Reads the change back: every hunk with edits must now be applied."""
        for hunk, before in zip(self.hunks, found, strict=True):
            done = before.edits or before.verdict is Verdict.APPLIED
            if done and not hunk.is_applied(tree):
                scope = hunk.hunk.scope
                return f"the result on {scope} would not be recognised as applied"
        return ""

    def _refuse(
        self, source: Source, found: Sequence[Found], reason: str
    ) -> FileOutcome:
        hunks = tuple(
            HunkResult(
                hunk.hunk.scope,
                Verdict.CONFLICT if f.edits else f.verdict or Verdict.CONFLICT,
                f.lines,
                reason if f.edits else f.reason,
                hunk.hunk.optional or bool(hunk.guards),
            )
            for hunk, f in zip(self.hunks, found, strict=True)
        )
        return FileOutcome(Verdict.CONFLICT, reason, hunks, source.text)


def _combine(results: Sequence[HunkResult]) -> Verdict:
    """Optional hunks count where they have something to do, or are all there is."""
    required = [r.verdict for r in results if not r.optional]
    wanted = [
        r.verdict
        for r in results
        if r.optional and r.verdict not in (*DONE, Verdict.ABSENT)
    ]
    return combine([*required, *wanted] or [r.verdict for r in results])


def _missing_newline(source: Source) -> str:
    """The line ending that a file's last line lacks; edits are whole lines."""
    if not source.text or source.text.endswith(("\n", "\r")):
        return ""
    return source.newline_at(len(source.text))
