"""``vllm-graft run``: starts a command whose imports are grafted.

The plan is kept in the cache as a bundle, keyed by everything it depends on, so that
a later start costs some hashing and neither parses nor matches anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final

from vllm_graft.cache import cache_dir
from vllm_graft.errors import GraftError, TreeError
from vllm_graft.hook import VARIABLE
from vllm_graft.tree import DirTree, find_tree

if TYPE_CHECKING:
    from vllm_graft.planner import Plan

_FORMAT: Final = "1"  # changes when the bundle's layout or the engine's output does
SITE: Final = Path(__file__).parent / "_site"


class NotRunnableError(TreeError):
    """A series does not apply to the tree; ``plan`` says which and why."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("the series do not apply", where=plan.status.tree)
        self.plan = plan


def bundle(tree: DirTree, series: Sequence[str], without: Sequence[str]) -> Path | None:
    """The folder with the planned changes, or None where there is nothing to do.

    Args:
        tree: The tree that the command will import vLLM from.
        series: Series to apply.
        without: Series to take out, before ``series`` are applied.

    Raises:
        NotRunnableError: Some patch does not apply, or cannot be taken out.
        GraftError: A patch is malformed, or a target cannot be read or parsed.
    """
    root = str(tree.root.resolve())
    request = _digest([_FORMAT, root, *_texts(series), "without", *_texts(without)])
    store = cache_dir("run")
    known = store / f"{request}.json"
    key = _key(tree, known)
    if key is None or not (store / key / "manifest.json").is_file():
        key = _plan(tree, series, without, known)
    folder = store / key
    manifest = json.loads((folder / "manifest.json").read_text())
    return folder if manifest["files"] else None


def environment(
    base: Mapping[str, str], folder: Path | None, tree: Path | None
) -> dict[str, str]:
    """The environment in which a command, and all it starts, is grafted.

    Args:
        base: The environment to build on; not changed.
        folder: The bundle, or None for no graft.
        tree: A tree to import vLLM from, or None for the one that is installed.
    """
    first = [str(SITE)]
    if tree is not None:
        first.append(str(tree.resolve()))
    old = [p for p in base.get("PYTHONPATH", "").split(os.pathsep) if p]
    path = os.pathsep.join([*first, *(p for p in old if p not in first)])
    env = {**base, "PYTHONPATH": path}
    env.pop(VARIABLE, None)
    if folder is not None:
        env[VARIABLE] = str(folder)
    return env


def command_tree(command: Sequence[str]) -> DirTree:
    """The tree that a command would import vLLM from.

    It is asked of the Python that the command starts, found by its name or by the
    ``#!`` line of its script; else it is the tree that :func:`find_tree` finds.
    """
    python = _interpreter(command[0])
    if python is None:
        return find_tree()
    code = "import json, os, sys; print(json.dumps([os.getcwd(), *sys.path[1:]]))"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, check=True, timeout=60
        )
        folders = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return find_tree()
    for folder in folders:
        if (Path(folder) / "vllm" / "__init__.py").is_file():
            return DirTree(Path(folder))
    raise TreeError(
        "has no vLLM",
        where=python,
        hint="install vLLM there, or name a tree with --tree",
    )


def start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Replaces this process by the command.

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


def _interpreter(name: str) -> str | None:
    path = which(name)
    if path is None:
        return None
    if Path(path).name.startswith("python"):
        return path
    with Path(path).open("rb") as stream:
        first = stream.readline(300)
    words = first[2:].decode(errors="replace").split() if first[:2] == b"#!" else []
    if words and Path(words[0]).name == "env":
        words = words[1:]
    if words and Path(words[0]).name.startswith("python"):
        return which(words[0])
    return None


def _texts(series: Iterable[str]) -> list[str]:
    """All that a series is made of, as digests."""
    from vllm_graft.series import patches_folder  # noqa: PLC0415

    parts = []
    for name in series:
        folder = Path(name) if (Path(name) / "series").is_file() else None
        folder = folder or patches_folder() / name
        files = [folder / "series", *sorted(folder.glob("*.spatch"))]
        parts.append(name)
        parts += [_digest([f.name, f.read_text()]) for f in files if f.is_file()]
    return parts


def _key(tree: DirTree, known: Path) -> str | None:
    """The bundle for the tree's files as they are, or None before a first plan."""
    try:
        record = json.loads(known.read_text())
    except (OSError, ValueError):
        return None
    return _digest([known.stem, *_states(tree, record["paths"])])


def _states(tree: DirTree, paths: Iterable[str]) -> list[str]:
    states = []
    for path in paths:
        data = tree.read(path)
        states.append("absent" if data is None else sha256(data).hexdigest())
    return states


def _plan(
    tree: DirTree, series: Sequence[str], without: Sequence[str], known: Path
) -> str:
    from vllm_graft.overlay import OverlayTree  # noqa: PLC0415
    from vllm_graft.planner import make_plan  # noqa: PLC0415
    from vllm_graft.series import load_series  # noqa: PLC0415
    from vllm_graft.write import check_recovered  # noqa: PLC0415

    check_recovered(tree)
    forward = [load_series(name) for name in series]
    backward = [load_series(name) for name in without]
    plans = [make_plan(tree, backward, reverse=True)]
    plans.append(make_plan(OverlayTree(tree, plans[0].changes), forward))
    for plan in plans:
        if not plan.ok:
            raise NotRunnableError(plan)
    net = {c.path: c for plan in reversed(plans) for c in plan.changes}
    last = {c.path: c.after for plan in plans for c in plan.changes}
    paths = sorted({p for one in (*forward, *backward) for p in one.paths()})
    key = _digest([known.stem, *_states(tree, paths)])
    files = {}
    folder = cache_dir("run", key)
    for path, change in net.items():
        after = last[path]
        if change.before is None or after is None or change.before == after:
            continue  # new files are tests; nothing imports them
        digest = sha256(after).hexdigest()
        _write(folder / digest, after)
        before = sha256(change.before).hexdigest()
        files[_module(path)] = {"path": path, "before": before, "after": digest}
    manifest = {"root": str(tree.root.resolve()), "files": files}
    _write(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    _write(known, json.dumps({"paths": paths}).encode())
    return key


def _module(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _digest(parts: Iterable[str]) -> str:
    return sha256(json.dumps(list(parts)).encode()).hexdigest()


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)
