"""A plan as a diff, or as mail for ``git am``; the tree is not touched.

Both are git's own work, in a scratch repository that holds the touched files alone.
The blob ids in the mail are those of the real files, so ``git am -3`` works.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_graft import git
from vllm_graft.errors import TreeError
from vllm_graft.plan import FileChange, Plan, Step, make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_graft.series import Series
    from vllm_graft.tree import DirTree


def diff(tree: DirTree, plan: Plan) -> bytes:
    """The plan's net changes as one unified diff in git's format."""
    with _history(tree, plan.steps, "nobody <nobody>") as (folder, base):
        options = ["--no-color", "--no-ext-diff", "--full-index"]
        return git.run_bytes("diff", *options, base, "HEAD", cwd=folder)


def export(
    tree: DirTree, plan: Plan, out: Path, *, signoff: bool = False
) -> list[Path]:
    """Writes one mail for each patch that changes something.

    Args:
        tree: The tree that was planned on; gives the author's name.
        plan: The plan.
        out: The folder for the mail, made on demand. Files of the same names are
            replaced.
        signoff: Add a ``Signed-off-by`` trailer to each.

    Returns:
        The mail files, in order.

    Raises:
        GitError: git does not know the author's name.
        TreeError: The folder cannot be written.
    """
    with _history(tree, plan.steps, git.identity(tree.root)) as (folder, base):
        mail = folder / ".git" / "mail"
        options = ["-q", "--zero-commit", "--no-signature", "--full-index", "-N"]
        options += ["--signoff"] if signoff else []
        git.run("format-patch", *options, "-o", str(mail), base, cwd=folder)
        files = sorted(mail.glob("*.patch"))
        try:
            out.mkdir(parents=True, exist_ok=True)
            for file in files:
                (out / file.name).write_bytes(file.read_bytes())
        except OSError as error:
            raise TreeError(
                f"cannot be written: {error.strerror}",
                where=str(error.filename or out),
                hint="name another folder with -o",
            ) from error
    return [out / file.name for file in files]


def forward_plan(tree: DirTree, series: Sequence[Series]) -> Plan:
    """The plan to export: on a tree that has the series, from before it had them."""
    planned = make_plan(tree, series)
    if planned.changes or not planned.ok:
        return planned
    back = make_plan(tree, series, reverse=True)
    if not back.ok or not back.changes:
        return planned
    before = _Reverted(tree, {c.path: c.after for c in back.changes})
    return make_plan(before, series)


class _Reverted:
    """A tree with some files replaced in memory."""

    def __init__(self, tree: DirTree, files: dict[str, bytes | None]) -> None:
        self._tree = tree
        self._files = files
        self.name = tree.name
        self.version = tree.version

    def read(self, path: str) -> bytes | None:
        if path in self._files:
            return self._files[path]
        return self._tree.read(path)

    def has_folder(self, path: str) -> bool:
        return self._tree.has_folder(path)


@contextmanager
def _history(
    tree: DirTree, steps: Iterable[Step], author: str
) -> Iterator[tuple[Path, str]]:
    """A scratch repository with a commit a step; gives its folder and its base."""
    steps = [step for step in steps if step.changes]
    name, _, mail = author[:-1].partition(" <")
    env = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", mail))
    }
    with git.scratch_repository() as folder:
        first = {c.path: c for step in reversed(steps) for c in step.changes}
        base = [FileChange(c.path, None, c.before) for c in first.values()]
        start = _commit(folder, base, "base", env, tree)
        for step in steps:
            patch = step.patch.patch
            message = f"{patch.subject}\n\n{patch.body}".rstrip() + "\n"
            sender = patch.header("From")
            extra = [f"--author={sender}"] if sender else []
            _commit(folder, step.changes, message, env, tree, extra)
        yield folder, start


def _commit(
    folder: Path,
    changes: Iterable[FileChange],
    message: str,
    env: dict[str, str],
    tree: DirTree,
    extra: Sequence[str] = (),
) -> str:
    for change in changes:
        path = folder / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.after is None:
            path.unlink(missing_ok=True)
            continue
        path.write_bytes(change.after)
        if os.access(tree.root / change.path, os.X_OK):
            path.chmod(0o755)
    git.run(*git.PRIVATE, "add", "-A", "-f", cwd=folder, env=env)
    options = ["-q", "--allow-empty", "--no-verify", "-F", "-", *extra]
    git.run(
        *git.PRIVATE, "commit", *options, cwd=folder, env=env, input=message.encode()
    )
    return git.run("rev-parse", "HEAD", cwd=folder)
