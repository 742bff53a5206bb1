"""A plan as git commits, one a patch: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vllm_graft import git, write
from vllm_graft.errors import GitError, TreeError
from vllm_graft.planner import FileChange, Plan, Step
from vllm_graft.tree import DirTree


def check_commit(tree: DirTree, plan: Plan) -> str:
    """Makes sure that a plan can be committed, and that nothing else gets in.

    Returns:
        The commit that HEAD is at.

    Raises:
        GitError: No repository, no commit yet, a merge that is not finished, staged
            changes, files to patch that have changes or that git does not track,
            or an author that git does not know.
    """
    root = tree.root
    head = _head(root)
    if git.succeeds("rev-parse", "-q", "--verify", "MERGE_HEAD", cwd=root):
        raise GitError(
            "a merge is not finished",
            where=str(root),
            hint="commit it, or run 'git merge --abort'",
        )
    held = git.run("diff", "--cached", "--name-only", cwd=root)
    if held:
        raise GitError(
            f"the index holds changes already: {_few(held.splitlines())}",
            where=str(root),
            hint="commit them, or take them out with 'git restore --staged .'",
        )
    dirty = _dirty(root, _paths(tree, plan))
    if dirty:
        raise GitError(
            f"uncommitted changes in files to patch: {_few(dirty)}",
            where=str(root),
            hint="commit or stash them first",
        )
    unknown = _untracked(root, _paths(tree, plan))
    if unknown:
        raise GitError(
            f"git does not track these files to patch: {_few(unknown)}",
            where=str(root),
            hint="add and commit them first, or apply without --commit",
        )
    git.identity(root)
    return head


def commit_plan(tree: DirTree, plan: Plan, *, signoff: bool = False) -> tuple[str, ...]:
    """Writes and commits a plan step by step; the user's hooks run.

    If a step fails, HEAD, the index and the files are put back.

    Returns:
        The commits' ids, oldest first.

    Raises:
        GitError: See :func:`check_commit`; or a hook or the signing program
            refuses, or a hook changes what is committed.
        TreeError: A file cannot be written.
    """
    head = check_commit(tree, plan)
    write.check_writable(tree, plan.changes)
    commits = []
    try:
        for step in plan.steps:
            if step.changes:
                write.write_changes(tree, step.changes)
                commits.append(_commit(tree, step, plan.reverse, signoff=signoff))
    except BaseException:
        _put_back(tree, plan, head)
        raise
    return tuple(commits)


def _commit(tree: DirTree, step: Step, reverse: bool, *, signoff: bool) -> str:
    patch = step.patch.patch
    subject, body = patch.subject, patch.body
    if reverse:
        subject, body = f'Revert "{subject}"', f"This takes {patch.name} out again.\n"
    paths = [tree.real(change.path) for change in step.changes]
    options = ["--signoff"] if signoff else []
    options += author_options(step) if not reverse else []
    git.run("add", "-f", "--", *paths, cwd=tree.root)
    git.run(
        *("-c", "i18n.commitEncoding=UTF-8", "commit", "-q"),
        *("--cleanup=whitespace", "-F", "-", *options),
        cwd=tree.root,
        input=f"{subject}\n\n{body}".encode(),
    )
    _verify(tree, step.changes, paths)
    return git.run("rev-parse", "HEAD", cwd=tree.root)


def author_options(step: Step) -> list[str]:
    """Options of ``git commit`` for the author and date that a patch names."""
    fields = ((name, step.patch.patch.header(name)) for name in ("From", "Date"))
    options = {"From": "--author", "Date": "--date"}
    return [f"{options[name]}={value}" for name, value in fields if value]


def _verify(tree: DirTree, changes: Sequence[FileChange], paths: Sequence[str]) -> None:
    """Makes sure that the commit holds the patch's own bytes."""
    altered = [c.path for c in changes if tree.read(c.path) != c.after]
    altered = altered or _dirty(tree.root, paths)
    if altered:
        raise GitError(
            f"a git hook changed what the patch wrote: {_few(altered)}; "
            "nothing was changed",
            where=str(tree.root),
            hint="apply without --commit and commit by hand, or let the hook be",
        )


def _put_back(tree: DirTree, plan: Plan, head: str) -> None:
    before = {c.path: c.before for s in reversed(plan.steps) for c in s.changes}
    try:
        changes = [FileChange(p, tree.read(p), data) for p, data in before.items()]
        write.write_changes(tree, [c for c in changes if c.before != c.after])
    except TreeError as error:
        raise TreeError(
            f"the commits failed, and a file could not be put back: {error.message}",
            where=error.where,
            hint=f"run 'git reset --hard {head}' once you have what you need",
        ) from error
    finally:
        git.run("reset", "-q", head, cwd=tree.root)  # HEAD and the index


def _head(tree: Path) -> str:
    done = git.start(["rev-parse", "--is-inside-work-tree"], tree)
    words = git.words(done)
    if done.returncode and "not a git repository" not in words:
        raise GitError(words, where=str(tree), hint="apply without --commit")
    if done.returncode or done.stdout.strip() != b"true":
        raise GitError(
            "not a git repository",
            where=str(tree),
            hint="apply without --commit, or run 'git init' and commit the tree first",
        )
    try:
        return git.run("rev-parse", "--verify", "HEAD", cwd=tree)
    except GitError as error:
        raise GitError(
            "the repository has no commit yet",
            where=str(tree),
            hint="commit the tree first",
        ) from error


def _paths(tree: DirTree, plan: Plan) -> list[str]:
    paths = {tree.real(c.path): None for step in plan.steps for c in step.changes}
    return list(paths)


def _dirty(tree: Path, paths: Sequence[str]) -> list[str]:
    """Those of ``paths`` that are not as the last commit has them."""
    if not paths:
        return []
    # NUL-separated "XY path" records.
    options = ["--porcelain", "-z", "--no-renames", "-unormal"]
    status = git.run("status", *options, "--", *_literal(paths), cwd=tree)
    return [record[3:] for record in status.split("\0") if record]


def _untracked(tree: Path, paths: Sequence[str]) -> list[str]:
    """Those of ``paths`` that exist and that git does not know."""
    there = [path for path in paths if (tree / path).exists()]
    if not there:
        return []
    known = git.run("ls-files", "-z", "--", *_literal(there), cwd=tree).split("\0")
    return sorted(set(there) - set(known))


def _literal(paths: Sequence[str]) -> list[str]:
    return [f":(literal){path}" for path in paths]


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
