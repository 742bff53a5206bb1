"""The journal: what it takes to undo a write after a crash.

Before the first file of a tree changes, a folder in the tree holds the originals and
a manifest of what is about to change. The folder gets its name last and loses it
first, so under its name it is complete, and a tree without one is consistent. It is
locked while its writer lives: a lock that is free tells a crash from a run that is
still at work.

Originals are kept as hard links, so putting one back gives the very file, with its
mode, owner and times. Paths are relative: a tree can be moved with its journal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from errno import EXDEV
from pathlib import Path
from typing import Final

from vllm_graft.errors import TreeError
from vllm_graft.locks import is_locked, lock
from vllm_graft.manifest import (
    NONE,
    Entry,
    Manifest,
    checksum,
    content,
    damaged,
    read_manifest,
)
from vllm_graft.planner import FileChange
from vllm_graft.tree import DirTree

JOURNAL: Final = ".vllm-graft-journal"
_STAGED: Final = ".vllm-graft-new"


@contextmanager
def open_journal(tree: DirTree, changes: Sequence[FileChange]) -> Iterator[set[str]]:
    """Keeps a journal while files of a tree are being replaced.

    When the block ends, the journal goes. When it fails, the originals are put back
    first.

    Returns:
        A set, to which the block adds each file's real path just before it puts the
        new content in place.

    Raises:
        TreeError: Another run is at work or was interrupted here, or a file is no
            longer as the changes want it.
        OSError: The tree cannot be written.
    """
    draft = _unnamed(tree)
    replaced: set[str] = set()
    # From before the draft is there, which is not locked at once: another writer
    # would sweep it away.
    with _alone(tree), contextlib.ExitStack() as locks:
        _sweep(tree)
        draft.mkdir()
        try:
            locks.enter_context(lock(draft))
            _fill(draft, tree, changes)
            _name(draft, tree)
            yield replaced
            _forget(tree)
        except BaseException:
            if not draft.exists():  # it has its name: files may have changed
                _roll_back(tree, replaced)
            raise
        finally:
            _remove(draft)


def check_recovered(tree: DirTree) -> None:
    """Makes sure that no journal stands in a tree.

    Raises:
        TreeError: An earlier run was killed while it wrote, or one is writing now.
    """
    journal = tree.root / JOURNAL
    if not journal.is_dir():
        return
    if is_locked(journal):
        raise _busy(tree)
    raise TreeError(
        "an earlier run was interrupted while it wrote; the originals are safe",
        where=str(journal),
        hint=f"run 'vllm-graft recover {tree.root}' to put them back",
    )


def recover(tree: DirTree) -> list[str]:
    """Puts the originals back that an interrupted run left in its journal.

    Returns:
        The paths, relative to the tree's root, whose content was restored; empty
        where there was no journal.

    Raises:
        TreeError: A run is still at work; or a file was changed by something else
            since, and is left alone; or the journal is damaged. It then stays.
    """
    try:
        with _alone(tree):
            if not (tree.root / JOURNAL).is_dir():
                _sweep(tree)
                return []
            return _restore(tree)
    except OSError as error:
        raise TreeError(
            f"cannot be written: {error.strerror}; the journal stays",
            where=str(error.filename or tree.root),
            hint="make room and make the folder writable, then run it again",
        ) from error


@contextmanager
def _alone(tree: DirTree) -> Iterator[None]:
    """Keeps other writers out of a tree."""
    with lock(tree.root) as free:
        if not free:
            raise _busy(tree)
        yield


def _busy(tree: DirTree) -> TreeError:
    return TreeError(
        "another run is writing to this tree",
        where=str(tree.root),
        hint="wait until it has ended, then run the command again",
    )


def staged(path: Path) -> Path:
    """Where the new content of a file waits for its turn."""
    return path.with_name(f".{path.name}{_STAGED}")


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file so that it outlives a power cut."""
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _unnamed(tree: DirTree) -> Path:
    return tree.root / f"{JOURNAL}.{os.getpid()}"


def _name(draft: Path, tree: DirTree) -> None:
    try:
        draft.rename(tree.root / JOURNAL)
    except OSError:
        check_recovered(tree)  # most likely there is one already
        raise


def _fill(draft: Path, tree: DirTree, changes: Sequence[FileChange]) -> None:
    root = os.path.realpath(tree.root)
    entries = []
    folders: dict[str, None] = {}
    for index, change in enumerate(changes):
        path = tree.locate(change.path)
        if change.before is None:
            missing = [p for p in path.parents if not p.exists()]
            folders.update({os.path.relpath(p, root): None for p in reversed(missing)})
        else:
            _save(path, draft / str(index), change.before)
        name = os.path.relpath(path, root)
        entries.append(Entry(checksum(change.before), checksum(change.after), name))
    manifest = Manifest(entries, list(folders))
    write_durably(draft / "manifest", manifest.to_bytes())


def _save(path: Path, saved: Path, expected: bytes) -> None:
    try:
        _link(path, saved)
        same = saved.read_bytes() == expected
    except FileNotFoundError:
        same = False
    if not same:
        raise changed(path)


def changed(path: Path) -> TreeError:
    """The error for a file that is not as it was when the changes were planned."""
    what = "was changed" if path.exists() else "vanished"
    return TreeError(
        f"{what} while the changes were being planned; nothing was written",
        where=str(path),
        hint="run the command again",
    )


def _roll_back(tree: DirTree, replaced: Collection[str]) -> None:
    try:
        _restore(tree, replaced)
    except OSError as error:
        raise TreeError(
            f"an original could not be put back: {error.strerror}",
            where=str(error.filename or tree.root),
            hint=f"cure that, then run 'vllm-graft recover {tree.root}'",
        ) from error


def _restore(tree: DirTree, ours: Collection[str] | None = None) -> list[str]:
    """Puts originals back and ends the journal.

    Args:
        tree: The tree.
        ours: The paths that hold our content, whatever it looks like, and none but
            they; None after a crash, when the content has to tell.
    """
    entries, folders = read_manifest(tree.root / JOURNAL / "manifest")
    restored, foreign = [], []
    for index, entry in enumerate(entries):
        path = tree.locate(entry.path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            staged(path).unlink()
        now = checksum(content(path))
        if now == entry.before if ours is None else entry.path not in ours:
            continue
        if ours is None and now not in (entry.after, NONE):
            foreign.append(path)
            continue
        if entry.before == NONE:
            path.unlink(missing_ok=True)
        else:
            _put_back(tree.root / JOURNAL / str(index), path, entry.before)
        restored.append(entry.path)
    for folder in reversed(folders):
        with contextlib.suppress(OSError):  # not empty: not ours alone
            tree.locate(folder).rmdir()
    if foreign:
        raise TreeError(
            "was changed by something else since, and is left alone",
            where=", ".join(map(str, foreign)),
            hint=f"the originals are in {tree.root / JOURNAL}; delete that folder "
            "once you have what you need",
        )
    _forget(tree)
    return restored


def _put_back(saved: Path, path: Path, expected: str) -> None:
    if checksum(content(saved)) != expected:
        raise damaged(saved, "the original is missing or changed")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        saved.replace(path)  # takes no room on a full disk
    except OSError as error:
        if error.errno != EXDEV:  # the tree holds a mounted file system
            raise
        _link(saved, staged(path))
        staged(path).replace(path)


def _forget(tree: DirTree) -> None:
    gone = _unnamed(tree)
    (tree.root / JOURNAL).rename(gone)  # from here on the write is over
    _remove(gone)


def _sweep(tree: DirTree) -> None:
    """Removes what a killed run left of a journal before or after its time."""
    for litter in tree.root.glob(f"{JOURNAL}.*"):
        if not is_locked(litter):
            _remove(litter)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # no hard links here, or not for us
        from shutil import copy2  # noqa: PLC0415 - rarely needed

        copy2(source, target)
