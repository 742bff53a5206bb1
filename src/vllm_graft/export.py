"""A plan as a diff, or as mail for ``git am``; the tree is not touched.

Both are git's own work, in a scratch repository that holds the touched files alone.
The blob ids in the mail are those of the real files, so ``git am -3`` works.
"""

from __future__ import annotations

import contextlib
from binascii import b2a_qp
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from vllm_graft import git
from vllm_graft.commit import author_options
from vllm_graft.errors import TreeError
from vllm_graft.overlay import OverlayTree
from vllm_graft.planner import FileChange, Plan, Step, make_plan
from vllm_graft.series import Series
from vllm_graft.tree import DirTree
from vllm_graft.undo import UndoStore


def diff(tree: DirTree, plan: Plan) -> bytes:
    """The plan's net changes as one unified diff in git's format."""
    with _history(tree, plan.steps, "nobody <nobody>") as history:
        return history.git("diff", "--full-index", history.base, "HEAD")


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
    with _history(tree, plan.steps, git.identity(tree.root)) as history:
        mail = history.folder / ".git" / "mail"
        options = ["-q", "--zero-commit", "--no-signature", "--full-index", "-N"]
        options += ["--signoff"] if signoff else []
        history.git("format-patch", *options, "-o", str(mail), history.base)
        contents = {
            file.name: _mailable(file.read_bytes())
            for file in sorted(mail.glob("*.patch"))
        }
    _write(out, contents)
    return [out / name for name in contents]


def forward_plan(tree: DirTree, series: Sequence[Series]) -> Plan:
    """The plan to export: on a tree that has the series, from before it had them.

    Its steps are not ``exact`` where the bytes from before had to be guessed.
    """
    planned = make_plan(tree, series)
    if planned.changes or not planned.ok:
        return planned
    back = make_plan(tree, series, reverse=True, undo=UndoStore())
    if not back.ok or not back.changes:
        return planned
    planned = make_plan(OverlayTree(tree, back.changes), series)
    guessed = {step.patch for step in back.steps if not step.exact}
    steps = (step._replace(exact=step.patch not in guessed) for step in planned.steps)
    return planned._replace(steps=tuple(steps))


def notes(plan: Plan, out: Path, files: Sequence[Path]) -> list[str]:
    """What a person should know about an export although nothing is wrong."""
    guessed = [s.result.file for s in plan.steps if s.changes and not s.exact]
    others = sorted({p.name for p in out.glob("*.patch")} - {p.name for p in files})
    said = [
        f"{name}: the tree has it already, and there is no record of the code before "
        "it; if the mail does not apply to the base, export from the base"
        for name in guessed
    ]
    if files and others:
        said.append(f"{out} holds other mail, too: {', '.join(others)}")
    return said


class _History(NamedTuple):
    """A scratch repository with a commit a step.

    Args:
        folder: Where it is.
        env: Variables for git.
        base: The commit before the first step.
    """

    folder: Path
    env: Mapping[str, str]
    base: str = ""

    def git(self, *args: str, message: str = "") -> bytes:
        return git.run_bytes(
            *git.PRIVATE, *args, cwd=self.folder, env=self.env, input=message.encode()
        )

    def commit(
        self,
        tree: DirTree,
        changes: Sequence[FileChange],
        message: str,
        options: Sequence[str] = (),
    ) -> None:
        for change in changes:
            # Where a link stands in the tree, its target is what changes.
            real = tree.real(change.path)
            path = self.folder / real
            path.parent.mkdir(parents=True, exist_ok=True)
            if change.after is None:
                path.unlink(missing_ok=True)
                continue
            path.write_bytes(change.after)
            original = tree.root / real
            if original.exists() and original.stat().st_mode & 0o100:
                path.chmod(0o755)
        self.git("add", "-A", "-f")
        always = ["-q", "--allow-empty", "--cleanup=whitespace", "-F", "-"]
        self.git("commit", *always, *options, message=message)


@contextmanager
def _history(tree: DirTree, steps: Sequence[Step], author: str) -> Iterator[_History]:
    steps = [step for step in steps if step.changes]
    name, _, mail = author[:-1].partition(" <")
    env = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", mail))
    }
    with git.scratch_repository() as (folder, isolated):
        history = _History(folder, {**isolated, **env})
        first = {c.path: c for step in reversed(steps) for c in reversed(step.changes)}
        base = [FileChange(c.path, None, c.before) for c in first.values()]
        history.commit(tree, base, "base\n")
        start = history.git("rev-parse", "HEAD").decode().strip()
        for step in steps:
            patch = step.patch.patch
            message = f"{patch.subject}\n\n{patch.body}"
            history.commit(tree, step.changes, message, author_options(step))
        yield history._replace(base=start)


def _mailable(mail: bytes) -> bytes:
    """Mail whose carriage returns outlive ``git am``, which strips bare ones."""
    if b"\r" not in mail:
        return mail
    head, _, body = mail.partition(b"\n\n")
    fields = [
        line
        for line in head.split(b"\n")
        if not line.lower().startswith(
            (b"mime-version:", b"content-type:", b"content-transfer-encoding:")
        )
    ]
    fields += [
        b"MIME-Version: 1.0",
        b"Content-Type: text/plain; charset=UTF-8",
        b"Content-Transfer-Encoding: quoted-printable",
    ]
    encoded = (b2a_qp(line, istext=False) for line in body.split(b"\n"))
    return b"\n".join([*fields, b"", b"\n".join(encoded)])


def _write(out: Path, contents: Mapping[str, bytes]) -> None:
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            written.append(out / name)
            (out / name).write_bytes(data)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise TreeError(
            f"cannot be written: {error.strerror}",
            where=str(error.filename or out),
            hint="name another folder with -o",
        ) from error
