"""Plans the application or reversal of series: in memory, all files first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vllm_graft.engine.patchfile import FilePatch
from vllm_graft.engine.source import Source
from vllm_graft.results import (
    HunkResult,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
    combine,
)
from vllm_graft.series import Series, SeriesPatch
from vllm_graft.tree import Tree
from vllm_graft.undo import UndoStore


class FileChange(NamedTuple):
    """One file's bytes before and after; None where there is no file."""

    path: str
    before: bytes | None
    after: bytes | None


class Step(NamedTuple):
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


class Plan(NamedTuple):
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


class _Overlay:
    """A tree with planned changes on top; keeps what it read."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.files: dict[str, bytes | None] = {}
        self.sources: dict[tuple[str, bytes], Source] = {}

    def read(self, path: str) -> bytes | None:
        if path not in self.files:
            self.files[path] = self.tree.read(path)
        return self.files[path]

    def source(self, path: str, data: bytes) -> Source:
        # Two patches often look at one file; parsing is most of the cost.
        key = (path, data)
        if key not in self.sources:
            self.sources[key] = Source.from_bytes(path, data)
        return self.sources[key]


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
    parts = [_part(overlay, item, file, reverse, undo) for file in item.patch.files]
    hunks = tuple(hunk for part in parts for hunk in part.hunks)
    verdict = combine(part.verdict for part in parts)
    reasons = dict.fromkeys(p.reason for p in parts if p.reason)
    result = _result(item, verdict, "; ".join(reasons), hunks)
    if verdict not in (Verdict.APPLIES, Verdict.PARTIAL):
        return Step(item, result)
    changes = tuple(part.change for part in parts if part.change)
    exact = not reverse or all(part.exact for part in parts if part.change)
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


class _Part(NamedTuple):
    verdict: Verdict
    reason: str
    hunks: tuple[HunkResult, ...]
    change: FileChange | None = None
    exact: bool = False


def _part(
    overlay: _Overlay,
    item: SeriesPatch,
    file: FilePatch,
    reverse: bool,
    undo: UndoStore | None,
) -> _Part:
    if not file.hunks:
        return _whole_file(overlay, item, file, reverse)
    data = overlay.read(file.path)
    if data is None:
        reason = f"this tree has no {file.path}"
        return _Part(Verdict.ABSENT, reason, _hunks(file, Verdict.ABSENT, reason))
    original = undo.recall(item, file.path, data) if reverse and undo else None
    if original is not None:
        hunks = _hunks(file, Verdict.APPLIES)
        back = FileChange(file.path, data, original)
        return _Part(Verdict.APPLIES, "", hunks, back, exact=True)
    compiled = (item.reversed if reverse else item.compiled)[file.path]
    source = overlay.source(file.path, data)
    outcome = compiled.evaluate(source)
    changes = outcome.text != source.text
    after = source.with_text(outcome.text).to_bytes() if changes else data
    change = FileChange(file.path, data, after) if changes else None
    return _Part(outcome.verdict, outcome.reason, outcome.hunks, change)


def _hunks(
    file: FilePatch, verdict: Verdict, reason: str = ""
) -> tuple[HunkResult, ...]:
    return tuple(
        HunkResult(hunk.scope, verdict, (), reason, hunk.optional)
        for hunk in file.hunks
    )


def _whole_file(
    overlay: _Overlay, item: SeriesPatch, file: FilePatch, reverse: bool
) -> _Part:
    """A file that comes or goes."""
    path, content = file.path, item.contents[file.path]
    data = overlay.read(path)
    comes = (file.old is None) != reverse
    change, reason = None, ""
    if data is None and not _has_place(overlay, path):
        verdict, reason = Verdict.ABSENT, f"this tree has no folder {_top(path)}/"
    elif data is None:
        verdict = Verdict.APPLIES if comes else Verdict.APPLIED
        change = FileChange(path, None, content) if comes else None
    elif not _same(data, content):
        verdict = Verdict.CONFLICT
        reason = f"{path} is there with other content than the patch knows"
    else:
        verdict = Verdict.APPLIED if comes else Verdict.APPLIES
        change = None if comes else FileChange(path, data, None)
    hunk = HunkResult(path, verdict, (), reason)
    return _Part(verdict, reason, (hunk,), change, exact=True)


def _top(path: str) -> str:
    return path.split("/", 1)[0]


def _has_place(overlay: _Overlay, path: str) -> bool:
    """Whether the tree has the top folder that a new file belongs in."""
    return "/" not in path or overlay.tree.has_folder(_top(path))


def _same(data: bytes, content: bytes) -> bool:
    """Whether two contents differ in nothing but line endings, which git may set."""
    return data.replace(b"\r\n", b"\n") == content.replace(b"\r\n", b"\n")
