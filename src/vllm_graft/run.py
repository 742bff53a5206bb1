"""``vllm-graft run``: what is grafted onto the imports of a command.

The plan is kept in the cache as a bundle, keyed by everything it depends on, so that
a later start costs some hashing and neither parses nor matches anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vllm_graft.atomic import cache_path, write_atomic
from vllm_graft.cache import code_digest
from vllm_graft.catalog import series_folder
from vllm_graft.errors import TreeError
from vllm_graft.hook import VARIABLE
from vllm_graft.tree import DirTree

if TYPE_CHECKING:
    from vllm_graft.planner import Plan

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
        GraftError: A patch is malformed, a target cannot be read or parsed, or the
            cache cannot be written.
    """
    root = str(tree.root.resolve())
    texts = [*_texts(series), "without", *_texts(without)]
    request = _digest([code_digest("engine"), root, *texts])
    store = cache_path("run")
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

    Raises:
        TreeError: The tree's path cannot be part of PYTHONPATH.
    """
    first = [str(SITE)]
    if tree is not None:
        first.append(str(tree.resolve()))
        if os.pathsep in first[-1]:
            raise TreeError(
                f"its path holds {os.pathsep!r}, which PYTHONPATH cannot",
                where=first[-1],
                hint="move the tree, or name it by another path",
            )
    # An empty entry is the current folder; an empty variable is none.
    old = base["PYTHONPATH"].split(os.pathsep) if base.get("PYTHONPATH") else []
    path = os.pathsep.join([*first, *(p for p in old if p not in first)])
    env = {**base, "PYTHONPATH": path}
    env.pop(VARIABLE, None)
    if folder is not None:
        env[VARIABLE] = str(folder.absolute())
    return env


def _texts(series: Iterable[str]) -> list[str]:
    """All that a series is made of, as digests."""
    parts = []
    for name in series:
        folder = series_folder(name)
        parts.append(name)
        for file in [folder / "series", *sorted(folder.glob("*.spatch"))]:
            parts += [file.name, sha256(file.read_bytes()).hexdigest()]
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
    folder = cache_path("run", key)
    for path, change in net.items():
        after = last[path]
        if change.before is None or after is None or change.before == after:
            continue  # new files are tests; nothing imports them
        digest = sha256(after).hexdigest()
        write_atomic(folder / digest, after)
        before = sha256(change.before).hexdigest()
        files[_module(path)] = {"path": path, "before": before, "after": digest}
    manifest = {"root": str(tree.root.resolve()), "files": files}
    write_atomic(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    write_atomic(known, json.dumps({"paths": paths}).encode())
    return key


def _module(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _digest(parts: Iterable[str]) -> str:
    return sha256(json.dumps(list(parts)).encode()).hexdigest()
