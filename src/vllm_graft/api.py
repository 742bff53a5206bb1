"""The typed Python API, for programs that carry vLLM patches themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vllm_graft import git, write
from vllm_graft.errors import TreeError
from vllm_graft.plan import FileChange, Plan, Step, make_plan
from vllm_graft.results import TreeStatus
from vllm_graft.series import Series
from vllm_graft.tree import DirTree, Tree
from vllm_graft.undo import UndoStore


@dataclass(frozen=True)
class Outcome:
    """What was done to a tree.

    Args:
        status: The verdicts before it was done.
        changed: The paths that changed.
        commits: The ids of the commits made, oldest first.
        inexact: Patches whose reversal may differ from the original in layout,
            for want of a record.
    """

    status: TreeStatus
    changed: tuple[str, ...]
    commits: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()


class DoesNotApplyError(TreeError):
    """A patch does not apply; nothing was changed. ``plan`` says which and why."""

    def __init__(self, plan: Plan) -> None:
        bad = [s.result for s in plan.steps if not s.result.ok]
        names = ", ".join(f"{r.file} ({r.verdict})" for r in bad)
        what = "cannot be reverted" if plan.reverse else "does not apply"
        super().__init__(
            f"{what}: {names}; nothing was changed",
            where=plan.status.tree,
            hint="see the reasons with 'vllm-graft status'",
        )
        self.plan = plan


def status(tree: Tree, series: Sequence[Series]) -> TreeStatus:
    """Where each patch of the series stands in a tree.

    Args:
        tree: A :class:`DirTree` or :class:`MemoryTree`.
        series: The series, each judged on the result of those before it.

    Raises:
        GraftError: A patch is malformed, or a target cannot be parsed.
    """
    if isinstance(tree, DirTree):
        write.check_recovered(tree)
    return make_plan(tree, series).status


def plan(tree: Tree, series: Sequence[Series], *, reverse: bool = False) -> Plan:
    """What applying (or reverting) the series would change, without doing it."""
    if isinstance(tree, DirTree):
        write.check_recovered(tree)
    return make_plan(tree, series, reverse=reverse, undo=UndoStore())


def apply(
    tree: DirTree,
    series: Sequence[Series],
    *,
    commit: bool = False,
    signoff: bool = False,
) -> Outcome:
    """Applies series to a tree on disk: every patch, or nothing.

    Args:
        tree: The tree.
        series: The series.
        commit: Make one git commit for each patch.
        signoff: Add a ``Signed-off-by`` trailer to each.

    Raises:
        DoesNotApplyError: Some patch does not apply.
        GraftError: The tree cannot be read, written or committed to.
    """
    planned = plan(tree, series)
    return carry_out(tree, planned, commit=commit, signoff=signoff)


def revert(
    tree: DirTree,
    series: Sequence[Series],
    *,
    commit: bool = False,
    signoff: bool = False,
) -> Outcome:
    """Reverts series; the arguments and errors are those of :func:`apply`."""
    planned = plan(tree, series, reverse=True)
    return carry_out(tree, planned, commit=commit, signoff=signoff)


def carry_out(
    tree: DirTree, planned: Plan, *, commit: bool = False, signoff: bool = False
) -> Outcome:
    """Carries a plan out; see :func:`apply`."""
    if not planned.ok:
        raise DoesNotApplyError(planned)
    inexact = tuple(s.result.file for s in planned.steps if not s.exact and s.changes)
    changed = tuple(change.path for change in planned.changes)
    commits: tuple[str, ...] = ()
    if commit and changed:
        commits = _commit_steps(tree, planned, signoff=signoff)
    else:
        write.write_changes(tree, planned.changes)
    if not planned.reverse:
        store = UndoStore()
        for step in planned.steps:
            store.remember(step.patch, step.changes)
    return Outcome(planned.status, changed, commits, inexact)


def _commit_steps(tree: DirTree, planned: Plan, *, signoff: bool) -> tuple[str, ...]:
    paths = [change.path for change in planned.changes]
    head = git.require_clean(tree.root, paths)
    commits: list[str] = []
    done: list[FileChange] = []
    try:
        for step in filter(lambda s: s.changes, planned.steps):
            write.write_changes(tree, step.changes)
            done += step.changes
            commits.append(_commit(tree, step, planned.reverse, signoff=signoff))
    except BaseException:
        git.reset(tree.root, head)
        undone = [FileChange(c.path, c.after, c.before) for c in reversed(done)]
        for change in undone:
            write.write_changes(tree, [change])
        raise
    return tuple(commits)


def _commit(tree: DirTree, step: Step, reverse: bool, *, signoff: bool) -> str:
    patch = step.patch.patch
    subject, body = patch.subject, patch.body
    if reverse:
        subject, body = f'Revert "{subject}"', ""
    return git.commit(
        tree.root,
        [change.path for change in step.changes],
        f"{subject}\n\n{body}".rstrip() + "\n",
        signoff=signoff,
        author=patch.header("From"),
    )
