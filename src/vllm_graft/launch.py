"""Which tree a command would import vLLM from, and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vllm_graft.errors import GraftError, TreeError
from vllm_graft.tree import DirTree, find_tree

# Python's options that keep its start-up from what the environment says.
_DEAF = frozenset("IES")
# With a safe path, no first entry is the folder of the script.
_ASK = """
import json, sys
print(json.dumps(sys.path[not getattr(sys.flags, "safe_path", False):]))
"""


def command_tree(command: Sequence[str]) -> DirTree:
    """The tree that a command would import vLLM from.

    It is asked of the Python that the command starts, found by its name or by the
    ``#!`` line of its script; else it is the tree that :func:`find_tree` finds.

    Args:
        command: The program and its arguments.

    Raises:
        TreeError: That Python has no vLLM.
    """
    python, words = _interpreter(command)
    if python is None:
        return find_tree()
    path = _search_path(python)
    if path is None:
        return find_tree()
    options, script = _split(words)
    safe = "P" in options or os.environ.get("PYTHONSAFEPATH")
    for folder in path if safe else [str(_folder(script)), *path]:
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
        GraftError: There is no such command, or it is a Python that is told not to
            heed its environment.
    """
    python, words = _interpreter(command)
    deaf = _DEAF & _split(words)[0] if python else None
    if deaf:
        raise GraftError(
            f"would not be grafted with -{min(deaf)}",
            where=command[0],
            hint="leave out Python's options -I, -E and -S",
        )
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), dict(env))  # noqa: S606 - its purpose
    except (OSError, ValueError) as error:  # the latter for an empty name
        raise GraftError(
            f"cannot start it: {getattr(error, 'strerror', None) or error}",
            where=command[0],
            hint="write the command as in a shell, after --",
        ) from error


def _interpreter(command: Sequence[str]) -> tuple[str | None, list[str]]:
    """The Python that runs a command, and the arguments that it gets."""
    path = _which(command[0])
    if path is None:
        return None, []
    if Path(path).name.startswith("python"):
        return path, list(command[1:])
    try:
        with Path(path).open("rb") as stream:
            first = stream.readline(300)
    except OSError:  # it may be run, and not read
        return None, []
    words = first[2:].decode(errors="replace").split() if first[:2] == b"#!" else []
    if words and Path(words[0]).name == "env":
        words = words[1:]
    if words and Path(words[0]).name.startswith("python"):
        return _which(words[0]), [*words[1:], path]
    return None, []


def _which(name: str) -> str | None:
    """Where a command is; `shutil` alone would take longer than a start."""
    folders = [""] if os.sep in name else os.get_exec_path()
    for path in (Path(folder, name) for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def _split(words: Sequence[str]) -> tuple[set[str], str | None]:
    """The letters of Python's options among its arguments, and its script.

    It has none where code, a module or standard input is run.
    """
    options: set[str] = set()
    rest = iter(words)
    for word in rest:
        if word == "--check-hash-based-pycs":
            next(rest, None)
        elif not word.startswith("-"):
            return options, word
        elif word == "-":
            break
        elif not word.startswith("--"):
            letters, found, value = _cluster(word[1:])
            options |= letters
            if found in ("c", "m"):
                break
            if found and not value:
                next(rest, None)
    return options, None


def _cluster(word: str) -> tuple[set[str], str, str]:
    """Options without a value, the one that takes one, and what stands behind it."""
    for number, letter in enumerate(word):
        if letter in "cmWX":
            return set(word[:number]), letter, word[number + 1 :]
    return set(word), "", ""


def _folder(script: str | None) -> Path:
    """The first folder of ``sys.path``."""
    if script is None:
        return Path.cwd()
    return Path(script) if Path(script).is_dir() else Path(script).resolve().parent


def _search_path(python: str) -> list[str] | None:
    """What else a Python imports from; None where it does not say."""
    if _is_this(python):
        return sys.path[not getattr(sys.flags, "safe_path", False) :]
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
