"""Writes planned changes: all files or none, also across a crash.

New contents are staged beside their targets (a full disk is met there), then renamed
over them, then read back; :mod:`vllm_graft.journal` keeps the originals meanwhile.

Files are replaced, never written in place: an installed package may share its files
with the installer's cache by hard links.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vllm_graft.errors import TreeError
from vllm_graft.journal import (
    changed,
    check_recovered,
    open_journal,
    recover,
    staged,
    write_durably,
)
from vllm_graft.planner import FileChange
from vllm_graft.tree import DirTree

__all__ = ["check_recovered", "check_writable", "recover", "write_changes"]


def write_changes(tree: DirTree, changes: Sequence[FileChange]) -> None:
    """Makes the changes on disk, or none of them.

    Raises:
        TreeError: A file is not as it was when the changes were planned, cannot
            be written, or did not read back as written; the tree is as before.
    """
    if not changes:
        return
    with _as_tree_error(tree):
        check_writable(tree, changes)
        with open_journal(tree, changes) as replaced:
            for change in changes:
                _stage(tree, change)
            for change in changes:
                _replace(tree, change, replaced)
            for change in changes:
                _read_back(tree, change)
        _prune_folders(tree, [c.path for c in changes if c.after is None])


def check_writable(tree: DirTree, changes: Sequence[FileChange]) -> None:
    """Makes sure, as far as can be told beforehand, that changes can be written.

    Raises:
        TreeError: A file is not as it was when the changes were planned, or is
            read-only, or an earlier run has to be recovered from first.
    """
    check_recovered(tree)
    for change in changes:
        path = tree.locate(change.path)
        if tree.read(change.path) != change.before:
            raise changed(path)
        # Root may write to anything; a mode without "w" still means hands off.
        locked = change.before is not None and not path.stat().st_mode & 0o222
        if locked or not os.access(_existing(path), os.W_OK):
            raise TreeError(
                "is read-only; nothing was written",
                where=str(path),
                hint="make it writable (chmod u+w), or run as its owner",
            )


@contextmanager
def _as_tree_error(tree: DirTree) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TreeError(
            f"cannot be written: {error.strerror or error}; nothing was changed",
            where=str(error.filename or tree.root),
            hint="make room and make the folder writable, then run it again",
        ) from error


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _stage(tree: DirTree, change: FileChange) -> None:
    if change.after is None:
        return
    path = tree.locate(change.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.before is None:
        write_durably(staged(path), change.after)
    elif tree.read(change.path) != change.before:
        raise changed(path)
    else:
        write_durably(staged(path), change.after)
        now = path.stat()
        with contextlib.suppress(PermissionError):
            os.chown(staged(path), now.st_uid, now.st_gid)
        staged(path).chmod(stat.S_IMODE(now.st_mode))


def _replace(tree: DirTree, change: FileChange, replaced: set[str]) -> None:
    path = tree.locate(change.path)
    if tree.read(change.path) != change.before:  # the last moment to notice
        raise changed(path)
    replaced.add(tree.real(change.path))
    if change.after is None:
        path.unlink()
    else:
        staged(path).replace(path)


def _read_back(tree: DirTree, change: FileChange) -> None:
    if tree.read(change.path) != change.after:
        raise TreeError(
            "did not read back as it was written; the originals are restored",
            where=change.path,
            hint="look for another program that writes to the tree, or a bad disk",
        )


def _prune_folders(tree: DirTree, removed: Sequence[str]) -> None:
    """Removes folders that a removed file leaves empty, as git does."""
    for path in removed:
        for folder in Path(path).parents:
            if any((tree.root / folder).iterdir()):
                break
            (tree.root / folder).rmdir()
