"""Changes to the miniature tree as the writer gets them."""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGKILL

import pytest

from faults import killed_in_child
from miniature import AFTER, BEFORE, World
from vllm_graft import FileChange, write
from vllm_graft.write import write_changes

REMOVED = "vllm/old.py"


def make_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(folder, monkeypatch)
    world.write({REMOVED: b"gone soon\n"})
    (world.root / "vllm/number.py").chmod(0o640)
    (world.root / "vllm/sub/word.py").chmod(0o755)
    return world


def changes() -> list[FileChange]:
    """Two files change, one comes with its folder, one goes."""
    paths = [path for path in AFTER if BEFORE.get(path) != AFTER[path]]
    made = [FileChange(path, BEFORE.get(path), AFTER[path]) for path in paths]
    return [*made, FileChange(REMOVED, b"gone soon\n", None)]


def finished(world: World) -> bool:
    names = {path.relative_to(world.root).as_posix() for path in litter(world)}
    return {k: v for k, v in world.files().items() if k not in names} == AFTER


def litter(world: World) -> list[Path]:
    """What the tool left in the tree."""
    return [p for p in world.root.rglob("*") if "vllm-graft" in str(p)]


def crash(world: World) -> None:
    """Kills a write that has replaced all files."""

    def work() -> None:
        write._read_back = lambda *_: os.kill(os.getpid(), SIGKILL)
        write_changes(world.tree, changes())

    assert killed_in_child(world.root, 0, work)
    assert AFTER.items() <= world.files().items()
