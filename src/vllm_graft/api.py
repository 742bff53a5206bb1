"""The typed Python API, for programs that carry vLLM patches themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vllm_graft import write
from vllm_graft.errors import TreeError
from vllm_graft.planner import Plan, make_plan
from vllm_graft.results import TreeStatus
from vllm_graft.series import Series
from vllm_graft.tree import DirTree, Tree
from vllm_graft.undo import UndoStore
from vllm_graft.write import recover

__all__ = [
    "DoesNotApplyError",
    "Outcome",
    "apply",
    "carry_out",
    "check",
    "plan",
    "recover",
    "revert",
    "status",
]


class Outcome(NamedTuple):
    """What was done to a tree.

    Args:
        status: The verdicts before it was done.
        changed: The paths that changed, relative to the tree's root.
        commits: The ids of the commits made, oldest first.
        inexact: Patches that were reverted without a record of the original: the
            code is the original's, its layout and comments may not be.
    """

    status: TreeStatus
    changed: tuple[str, ...]
    commits: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()


class DoesNotApplyError(TreeError):
    """A patch cannot be applied or reverted; nothing was changed.

    Args:
        plan: The plan; its status has the reasons.
    """

    def __init__(self, plan: Plan) -> None:
        bad = [s.result for s in plan.steps if not s.result.ok]
        names = ", ".join(f"{r.file} ({r.verdict})" for r in bad)
        what = "cannot be reverted" if plan.reverse else "cannot be applied"
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
        GraftError: A patch is malformed, or a target cannot be read or parsed, or
            an earlier run was interrupted while it wrote to the tree.
    """
    if isinstance(tree, DirTree):
        write.check_recovered(tree)
    return make_plan(tree, series).status


def plan(tree: Tree, series: Sequence[Series], *, reverse: bool = False) -> Plan:
    """What applying (or reverting) the series would change, without doing it.

    Args:
        tree: A :class:`DirTree` or :class:`MemoryTree`.
        series: The series, in the order of their application.
        reverse: Whether to revert them, the last one first.

    Raises:
        GraftError: See :func:`status`.
    """
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


def check(tree: DirTree, planned: Plan, *, commit: bool = False) -> None:
    """Makes sure, as far as can be told beforehand, that a plan can be carried out.

    Args:
        tree: The tree.
        planned: The plan.
        commit: Whether it is to be committed.

    Raises:
        DoesNotApplyError: Some patch does not apply.
        GraftError: The tree cannot be written or committed to.
    """
    if not planned.ok:
        raise DoesNotApplyError(planned)
    write.check_writable(tree, planned.changes)
    if commit and planned.changes:
        from vllm_graft.commit import check_commit  # noqa: PLC0415

        check_commit(tree, planned)


def carry_out(
    tree: DirTree, planned: Plan, *, commit: bool = False, signoff: bool = False
) -> Outcome:
    """Carries a plan out; see :func:`apply`."""
    if not planned.ok:
        raise DoesNotApplyError(planned)
    commits: tuple[str, ...] = ()
    if commit and planned.changes:
        from vllm_graft.commit import commit_plan  # noqa: PLC0415 - starts git

        commits = commit_plan(tree, planned, signoff=signoff)
    else:
        write.write_changes(tree, planned.changes)
    if not planned.reverse:
        store = UndoStore()
        for step in planned.steps:
            store.remember(step.patch, step.changes)
    changed = tuple(change.path for change in planned.changes)
    inexact = tuple(s.result.file for s in planned.steps if not s.exact and s.changes)
    return Outcome(planned.status, changed, commits, inexact)
