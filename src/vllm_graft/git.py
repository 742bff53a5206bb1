"""The only place that starts git."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vllm_graft.errors import GitError

if TYPE_CHECKING:
    from subprocess import CompletedProcess

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
#: Not handed to git. Inside a git hook most of these point at the hook's repository,
#: whatever folder git is started in.
_LOCAL: Final = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES",
        "COMMON_DIR",
        "DIFF_OPTS",
        "DIR",
        "EXTERNAL_DIFF",
        "IMPLICIT_WORK_TREE",
        "INDEX_FILE",
        "NAMESPACE",
        "OBJECT_DIRECTORY",
        "PREFIX",
        "WORK_TREE",
    )
)


def run_bytes(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002 - as in subprocess.run
) -> bytes:
    """Runs git on the repository that a folder is in, and returns what it printed.

    Args:
        args: git's arguments.
        cwd: The folder to run in.
        env: Variables to set besides the environment's own.
        input: What it reads on standard input.

    Raises:
        GitError: git is not installed, or says no; with git's own words.
    """
    done = start(args, cwd, env, input)
    if done.returncode:
        raise GitError(
            f"git {_command(args)} failed (exit {done.returncode}): {words(done)}",
            where=str(cwd),
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
    """Whether git says yes.

    Raises:
        GitError: git is not installed.
    """
    return not start(args, cwd).returncode


def identity(tree: Path) -> str:
    """The user's name and mail address, as git would sign with.

    Raises:
        GitError: git does not know them.
    """
    try:
        run("var", "GIT_AUTHOR_IDENT", cwd=tree)
        ident = run("var", "GIT_COMMITTER_IDENT", cwd=tree)
    except GitError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise
        raise GitError(
            "git does not know your name and mail address",
            hint="run: git config --global user.name NAME; "
            "git config --global user.email ADDRESS",
        ) from error
    return ident[: ident.rindex(">") + 1]


@contextmanager
def scratch_repository() -> Iterator[tuple[Path, Mapping[str, str]]]:
    """An empty repository that is gone afterwards.

    Returns:
        Its folder, and the variables that keep the user's configuration out of it:
        prefixes, external diff programs, attributes and hooks would change a diff.
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - slow to import

    with TemporaryDirectory(prefix="vllm-graft-") as folder:
        env = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "0",
            "GIT_CONFIG_PARAMETERS": "",
            # git before 2.32 knows no GIT_CONFIG_GLOBAL
            "HOME": folder,
            "XDG_CONFIG_HOME": folder,
        }
        work = Path(folder, "work")
        work.mkdir()
        run("init", "-q", "--template=", cwd=work, env=env)
        yield work, env


def start(
    args: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
) -> CompletedProcess[bytes]:
    """Runs git; for callers that look at the exit code themselves.

    Raises:
        GitError: git is not installed.
    """
    import subprocess  # noqa: PLC0415 - slow to import, and most runs need no git

    inherited = {k: v for k, v in os.environ.items() if k not in _LOCAL}
    # git's words are quoted in messages; LANGUAGE leaves the encoding alone.
    inherited["LANGUAGE"] = "C"
    try:
        return subprocess.run(
            ["git", *args],
            cwd=cwd,
            env={**inherited, **(env or {})},
            input=data or b"",
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError(
            "git is not installed", hint="install git, and put it on PATH"
        ) from error


def _command(args: Sequence[str]) -> str:
    """The subcommand among git's arguments: the first that is no ``-c`` option."""
    rest = iter(args)
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def words(done: CompletedProcess[bytes]) -> str:
    """What git said."""
    return (done.stderr or done.stdout).decode(errors="replace").strip()
