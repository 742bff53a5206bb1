"""The only place that starts git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from vllm_graft.errors import GitError

#: For repositories of our own: the user's hooks, keys and line-ending settings
#: must not change what is in them.
PRIVATE: Final = (
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.safecrlf=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "gc.auto=0",
)


def run_bytes(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002 - as in subprocess.run
) -> bytes:
    """Runs git and returns what it printed.

    Args:
        args: git's arguments.
        cwd: The folder to run in.
        env: Variables to set besides the environment's own.
        input: What it reads on standard input.

    Raises:
        GitError: git is not installed, or says no; with git's own words.
    """
    try:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            input=input if input is not None else b"",
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError(
            "git is not installed", hint="install git, and put it on PATH"
        ) from error
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        command = next((a for a in args if not a.startswith(("-", "core.", "com"))), "")
        raise GitError(
            f"git {command} failed (exit {done.returncode}): {words}", where=str(cwd)
        )
    return done.stdout


def run(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002
) -> str:
    """As :func:`run_bytes`, as text without the final newline."""
    out = run_bytes(*args, cwd=cwd, env=env, input=input)
    return out.decode(errors="replace").rstrip("\n")


def succeeds(*args: str, cwd: Path) -> bool:
    """Whether git says yes."""
    try:
        run_bytes(*args, cwd=cwd)
    except GitError:
        return False
    return True


def require_clean(tree: Path, paths: Sequence[str]) -> str:
    """Makes sure that commits on ``paths`` will hold nothing else.

    Returns:
        The commit that HEAD is at.

    Raises:
        GitError: No repository, no commit yet, staged changes, or changes in one
            of ``paths``.
    """
    if not succeeds("rev-parse", "--git-dir", cwd=tree):
        raise GitError(
            "not a git repository",
            where=str(tree),
            hint="apply without --commit, or run 'git init' and commit the tree first",
        )
    try:
        head = run("rev-parse", "--verify", "HEAD", cwd=tree)
    except GitError as error:
        raise GitError(
            "the repository has no commit yet",
            where=str(tree),
            hint="commit the tree first",
        ) from error
    staged = run("diff", "--cached", "--name-only", cwd=tree)
    if staged:
        raise GitError(
            f"the index holds changes already: {_few(staged.splitlines())}",
            where=str(tree),
            hint="commit them, or take them out with 'git restore --staged .'",
        )
    dirty = run("status", "--porcelain", "-unormal", "--", *paths, cwd=tree)
    if dirty:
        names = [line[3:] for line in dirty.splitlines()]
        raise GitError(
            f"uncommitted changes in files to patch: {_few(names)}",
            where=str(tree),
            hint="commit or stash them first",
        )
    return head


def commit(
    tree: Path, paths: Sequence[str], message: str, *, signoff: bool, author: str | None
) -> str:
    """Commits ``paths`` as they are in the working tree; the user's hooks run.

    Returns:
        The new commit's id.
    """
    run("add", "-f", "--", *paths, cwd=tree)
    options = ["--signoff"] if signoff else []
    options += [f"--author={author}"] if author else []
    run("commit", "-q", "-F", "-", *options, cwd=tree, input=message.encode())
    return run("rev-parse", "HEAD", cwd=tree)


def reset(tree: Path, head: str) -> None:
    """Moves HEAD and the index back; the working tree is the caller's matter."""
    run("reset", "-q", head, cwd=tree)


def identity(tree: Path) -> str:
    """The user's name and mail address, as git would sign with.

    Raises:
        GitError: git does not know them.
    """
    try:
        words = run("var", "GIT_AUTHOR_IDENT", cwd=tree)
    except GitError as error:
        raise GitError(
            "git does not know your name and mail address",
            hint="run: git config --global user.name NAME; "
            "git config --global user.email ADDRESS",
        ) from error
    return words[: words.rindex(">") + 1]


@contextmanager
def scratch_repository() -> Iterator[Path]:
    """An empty repository that is gone afterwards."""
    with TemporaryDirectory(prefix="vllm-graft-") as folder:
        path = Path(folder)
        run("init", "-q", cwd=path)
        yield path


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
