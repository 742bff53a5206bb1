"""Which tree a command would import vLLM from, and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vllm_graft.errors import GraftError, TreeError
from vllm_graft.tree import DirTree, find_tree

# Python's options that take a word of their own.
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_ASK = "import json, sys; print(json.dumps(sys.path[1:]))"


def command_tree(command: Sequence[str]) -> DirTree:
    """The tree that a command would import vLLM from.

    It is asked of the Python that the command starts, found by its name or by the
    ``#!`` line of its script; else it is the tree that :func:`find_tree` finds.

    Args:
        command: The program and its arguments.

    Raises:
        TreeError: That Python has no vLLM.
    """
    python, script = _interpreter(command)
    if python is None:
        return find_tree()
    path = _search_path(python)
    if path is None:
        return find_tree()
    for folder in [str(script), *path]:
        if (Path(folder) / "vllm" / "__init__.py").is_file():
            return DirTree(Path(folder))
    raise TreeError(
        "has no vLLM",
        where=python,
        hint="install vLLM there, or name a tree with --tree",
    )


def start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Replaces this process by the command.

    Args:
        command: The program, looked up on PATH, and its arguments.
        env: Its environment.

    Raises:
        GraftError: There is no such command.
    """
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), dict(env))  # noqa: S606 - its purpose
    except OSError as error:
        raise GraftError(
            f"cannot start it: {error.strerror}",
            where=command[0],
            hint="write the command as in a shell, after --",
        ) from error


def _interpreter(command: Sequence[str]) -> tuple[str | None, Path]:
    """The Python that runs a command, and the first folder it imports from."""
    from shutil import which  # noqa: PLC0415 - not where a tree is named

    path = which(command[0])
    if path is None:
        return None, Path()
    if Path(path).name.startswith("python"):
        return path, _script_folder(command[1:])
    with Path(path).open("rb") as stream:
        first = stream.readline(300)
    words = first[2:].decode(errors="replace").split() if first[:2] == b"#!" else []
    if words and Path(words[0]).name == "env":
        words = words[1:]
    if words and Path(words[0]).name.startswith("python"):
        return which(words[0]), Path(path).resolve().parent
    return None, Path()


def _script_folder(words: Sequence[str]) -> Path:
    """The first folder of ``sys.path`` by the arguments that Python is given."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            script = Path(word)
            return script if script.is_dir() else script.resolve().parent
        elif not word.startswith("--") and {"c", "m"} & set(word[1:]):
            break
    return Path.cwd()


def _search_path(python: str) -> list[str] | None:
    """What else a Python imports from; None where it does not say."""
    if _is_this(python):
        return sys.path[1:]
    import json  # noqa: PLC0415 - starts a process, which takes far longer
    import subprocess  # noqa: PLC0415

    try:
        done = subprocess.run(
            [python, "-c", _ASK], capture_output=True, check=True, timeout=60
        )
        found: list[str] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return found


def _is_this(python: str) -> bool:
    """Whether it is the interpreter that runs here, with the same environment."""
    asked = Path(python).absolute()
    mine = Path(sys.executable)
    same = asked.parent == mine.parent and asked.resolve() == mine.resolve()
    # With these options the first entry, or the environment's, would be missing.
    flags = sys.flags
    return same and not (flags.isolated or flags.ignore_environment or flags.no_site)
