"""Plans the application or reversal of series: in memory, all files first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vllm_graft.evaluate import CompiledFile, FileOutcome
from vllm_graft.patchfile import FilePatch
from vllm_graft.results import (
    HunkResult,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
    combine,
)
from vllm_graft.series import Series, SeriesPatch
from vllm_graft.source import Source
from vllm_graft.tree import Tree
from vllm_graft.undo import UndoStore


@dataclass(frozen=True)
class FileChange:
    """One file's bytes before and after; None where there is no file."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True)
class Step:
    """One patch of a plan.

    Args:
        patch: The patch.
        result: Its verdict on the tree as the steps before leave it.
        changes: What it changes; empty where there is nothing to do.
        exact: Whether a reversal gives back the recorded bytes of the original
            (always true of an application).
    """

    patch: SeriesPatch
    result: PatchResult
    changes: tuple[FileChange, ...] = ()
    exact: bool = True


@dataclass(frozen=True)
class Plan:
    """What applying or reverting series would do to a tree.

    Args:
        status: The verdicts, on the way forward or back.
        steps: One for each patch, in the order of work.
        reverse: Whether it reverts.
    """

    status: TreeStatus
    steps: tuple[Step, ...]
    reverse: bool = False

    @property
    def ok(self) -> bool:
        """Whether every patch can be carried out, or has nothing to do."""
        return all(step.result.ok for step in self.steps)

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The net change of each file, in the order of first change."""
        net: dict[str, FileChange] = {}
        for change in (c for step in self.steps for c in step.changes):
            first = net.get(change.path, change)
            net[change.path] = FileChange(change.path, first.before, change.after)
        return tuple(c for c in net.values() if c.before != c.after)


@dataclass
class _Overlay:
    """A tree with planned changes on top; keeps what it read."""

    tree: Tree
    files: dict[str, bytes | None] = field(default_factory=dict)
    sources: dict[bytes, Source] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        if path not in self.files:
            self.files[path] = self.tree.read(path)
        return self.files[path]

    def source(self, path: str, data: bytes) -> Source:
        # Two patches often look at one file; parsing is most of the cost.
        if data not in self.sources:
            self.sources[data] = Source.from_bytes(path, data)
        return self.sources[data]


def make_plan(
    tree: Tree,
    series: Sequence[Series],
    *,
    reverse: bool = False,
    undo: UndoStore | None = None,
) -> Plan:
    """Judges series on a tree and works out the changes, in memory.

    Args:
        tree: The tree; it is only read.
        series: Applied in this order, each on the result of those before it;
            reverted in the opposite order.
        reverse: Whether to revert.
        undo: Where earlier applications left the exact originals.

    Raises:
        GraftError: A patch is malformed, or a target cannot be read or parsed.
    """
    overlay = _Overlay(tree)
    steps: list[Step] = []
    results: list[SeriesResult] = []
    for one in reversed(series) if reverse else series:
        patches = reversed(one.patches) if reverse else one.patches
        mine = [_step(overlay, patch, reverse, undo) for patch in patches]
        steps += mine
        ordered = reversed(mine) if reverse else mine
        results.append(SeriesResult(one.name, tuple(s.result for s in ordered)))
    if reverse:
        results.reverse()
    status = TreeStatus(tree.name, tree.version, tuple(results))
    return Plan(status, tuple(steps), reverse)


def _step(
    overlay: _Overlay, item: SeriesPatch, reverse: bool, undo: UndoStore | None
) -> Step:
    missing = [p for p in item.patch.requires if overlay.read(p) is None]
    if missing:
        result = _result(item, Verdict.ABSENT, f"this tree has no {missing[0]}", ())
        return Step(item, result)
    files = item.reversed if reverse else item.compiled
    compiled = {file.file.path: file for file in files}
    parts = [
        _recorded(overlay, item, file, undo if reverse else None)
        or _file(overlay, item, file, compiled, reverse)
        for file in item.patch.files
    ]
    hunks = tuple(hunk for part in parts for hunk in part.hunks)
    verdict = combine(part.verdict for part in parts)
    reasons = dict.fromkeys(p.reason for p in parts if p.reason)
    result = _result(item, verdict, "; ".join(reasons), hunks)
    if verdict not in (Verdict.APPLIES, Verdict.PARTIAL):
        return Step(item, result)
    changes = tuple(p.change for p in parts if p.change)
    exact = not reverse or all(part.exact for part in parts)
    overlay.files.update({change.path: change.after for change in changes})
    return Step(item, result, changes, exact)


def _result(
    item: SeriesPatch, verdict: Verdict, reason: str, hunks: tuple[HunkResult, ...]
) -> PatchResult:
    patch = item.patch
    return PatchResult(
        patch.name,
        patch.subject,
        patch.targets,
        verdict,
        reason,
        hunks,
        adds_only=item.adds_only,
    )


@dataclass(frozen=True)
class _Part:
    verdict: Verdict
    reason: str
    hunks: tuple[HunkResult, ...]
    change: FileChange | None = None
    exact: bool = False


def _recorded(
    overlay: _Overlay, item: SeriesPatch, file: FilePatch, undo: UndoStore | None
) -> _Part | None:
    """A reversal that gives back the recorded original, if there is one."""
    data = overlay.read(file.path)
    if undo is None or data is None or not file.hunks:
        return None
    original = undo.recall(item, file.path, data)
    if original is None:
        return None
    hunks = tuple(
        HunkResult(hunk.scope, Verdict.APPLIES, (), "", hunk.optional)
        for hunk in file.hunks
    )
    change = FileChange(file.path, data, original)
    return _Part(Verdict.APPLIES, "", hunks, change, exact=True)


def _file(
    overlay: _Overlay,
    item: SeriesPatch,
    file: FilePatch,
    compiled: Mapping[str, CompiledFile],
    reverse: bool,
) -> _Part:
    data = overlay.read(file.path)
    if file.old is None:
        return _new_file(overlay, file.path, data, item.contents[file.path], reverse)
    compiled_file = compiled[file.path]
    if data is None:
        reason = f"this tree has no {file.path}"
        hunks = tuple(
            HunkResult(hunk.scope, Verdict.ABSENT, (), reason, hunk.optional)
            for hunk in file.hunks
        )
        return _Part(Verdict.ABSENT, reason, hunks)
    source = overlay.source(file.path, data)
    outcome: FileOutcome = compiled_file.evaluate(source)
    change = None
    if outcome.text != source.text:
        after = source.with_text(outcome.text).to_bytes()
        change = FileChange(file.path, data, after)
    return _Part(outcome.verdict, outcome.reason, outcome.hunks, change)


def _new_file(
    overlay: _Overlay, path: str, data: bytes | None, content: bytes, reverse: bool
) -> _Part:
    top = path.split("/", 1)[0]
    there, gone = (
        (Verdict.APPLIES, Verdict.APPLIED)
        if reverse
        else (Verdict.APPLIED, Verdict.APPLIES)
    )
    change = None
    reason = ""
    if data is None and not overlay.tree.has_folder(top):
        verdict, reason = Verdict.ABSENT, f"this tree has no folder {top}/"
    elif data is None:
        verdict = gone
        change = None if reverse else FileChange(path, None, content)
    elif data == content:
        verdict = there
        change = FileChange(path, data, None) if reverse else None
    else:
        verdict = Verdict.CONFLICT
        reason = f"{path} is there already, with other content"
    return _Part(
        verdict, reason, (HunkResult(path, verdict, (), reason),), change, exact=True
    )
