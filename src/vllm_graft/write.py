"""Writes planned changes: all files or none, also across a crash.

Before the first file changes, the originals and a manifest stand in a journal folder
in the tree. New contents are staged beside their targets (a full disk is met there),
then renamed over them, then read back. The journal goes last; whoever finds one
restores the originals from it.

Files are replaced, never written in place: an installed package may share its files
with the installer's cache by hard links.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from vllm_graft.errors import TreeError
from vllm_graft.plan import FileChange
from vllm_graft.tree import DirTree

JOURNAL: Final = ".vllm-graft-journal"
_STAGED: Final = ".vllm-graft-new"


def write_changes(tree: DirTree, changes: Sequence[FileChange]) -> None:
    """Makes the changes on disk, or none of them.

    Raises:
        TreeError: A file is not as it was when the changes were planned, cannot
            be written, or did not read back as written; the tree is as before.
    """
    check_recovered(tree)
    _check(tree, changes)
    try:
        _journal(tree, changes)
        _stage(tree, changes)
        _replace(tree, changes)
        _read_back(tree, changes)
    except BaseException as error:
        recover(tree)
        if isinstance(error, OSError):
            raise TreeError(
                f"cannot be written: {error.strerror}; nothing was changed",
                where=str(error.filename or tree.root),
                hint="make room and make the folder writable, then run it again",
            ) from error
        raise
    _forget(tree)
    _prune_folders(tree, [c.path for c in changes if c.after is None])


def interrupted(tree: DirTree) -> bool:
    """Whether an earlier run was killed while it wrote."""
    return (tree.root / JOURNAL).is_dir()


def check_recovered(tree: DirTree) -> None:
    """Raises:
    TreeError: An earlier run was killed while it wrote.
    """
    if interrupted(tree):
        raise TreeError(
            "an earlier run was interrupted while it wrote; the originals are safe",
            where=str(tree.root / JOURNAL),
            hint="run 'vllm-graft recover' on the tree to restore them",
        )


def recover(tree: DirTree) -> list[str]:
    """Puts the originals back that a journal holds.

    Returns:
        The paths whose content was restored; empty where there was no journal.
    """
    journal = tree.root / JOURNAL
    manifest = journal / "manifest.json"
    restored: list[str] = []
    if manifest.is_file():  # else the run ended before it changed anything
        for index, entry in enumerate(json.loads(manifest.read_text())):
            path = Path(entry["path"])
            _staged(path).unlink(missing_ok=True)
            original = journal / str(index)
            if entry["existed"] and _bytes(path) != original.read_bytes():
                shutil.copy2(original, _staged(path))
                _staged(path).replace(path)
                restored.append(str(path))
            elif not entry["existed"] and path.exists():
                path.unlink()
                restored.append(str(path))
            for folder in reversed(entry["folders"]):
                with contextlib.suppress(OSError):  # not empty: not ours alone
                    Path(folder).rmdir()
    _forget(tree)
    return restored


def _check(tree: DirTree, changes: Sequence[FileChange]) -> None:
    for change in changes:
        path = tree.locate(change.path)
        now = tree.read(change.path)
        if now != change.before:
            what = "vanished" if now is None else "was changed"
            raise TreeError(
                f"{what} while the changes were being planned; nothing was written",
                where=str(path),
                hint="run the command again",
            )
        writable = change.before is None or path.stat().st_mode & 0o222
        if not writable or not os.access(_existing(path), os.W_OK):
            raise TreeError(
                "is read-only; nothing was written",
                where=str(path),
                hint="make it writable (chmod u+w), or run as its owner",
            )


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _journal(tree: DirTree, changes: Sequence[FileChange]) -> None:
    journal = tree.root / JOURNAL
    journal.mkdir()
    entries = []
    for index, change in enumerate(changes):
        path = tree.locate(change.path)
        if change.before is not None:
            shutil.copy2(path, journal / str(index))
        folders = [str(p) for p in path.parents if not p.exists()][::-1]
        existed = change.before is not None
        entries.append({"path": str(path), "existed": existed, "folders": folders})
    # The manifest appears whole: only with it does the journal mean anything.
    draft = journal / "manifest.new"
    _write(draft, json.dumps(entries, indent=1).encode())
    draft.replace(journal / "manifest.json")


def _stage(tree: DirTree, changes: Sequence[FileChange]) -> None:
    for change in changes:
        if change.after is None:
            continue
        path = tree.locate(change.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(_staged(path), change.after)
        if change.before is not None:
            shutil.copymode(path, _staged(path))
            status = path.stat()
            with contextlib.suppress(PermissionError):
                os.chown(_staged(path), status.st_uid, status.st_gid)


def _replace(tree: DirTree, changes: Sequence[FileChange]) -> None:
    for change in changes:
        path = tree.locate(change.path)
        if change.after is None:
            path.unlink()
        else:
            _staged(path).replace(path)


def _prune_folders(tree: DirTree, removed: Sequence[str]) -> None:
    """Removes folders that a removed file leaves empty, as git does."""
    for path in removed:
        for folder in Path(path).parents:
            try:
                (tree.root / folder).rmdir()
            except OSError:  # not empty
                break


def _read_back(tree: DirTree, changes: Sequence[FileChange]) -> None:
    for change in changes:
        if tree.read(change.path) != change.after:
            raise TreeError(
                "did not read back as it was written; the originals are restored",
                where=change.path,
                hint="look for another program that writes to the tree, or a bad disk",
            )


def _forget(tree: DirTree) -> None:
    journal = tree.root / JOURNAL
    (journal / "manifest.json").unlink(missing_ok=True)  # from here on it is over
    shutil.rmtree(journal, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _staged(path: Path) -> Path:
    return path.with_name(f".{path.name}{_STAGED}")


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
