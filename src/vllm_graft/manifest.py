"""The manifest of a journal: what a write is about to change.

A line of text for each file (the checksums of its contents before and after, and its
path), then one for each folder that the write makes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from vllm_graft.errors import TreeError

#: Where there is no file, and so no checksum.
NONE: Final = "-"
_TITLE: Final = "vllm-graft journal 1"


class Entry(NamedTuple):
    """One file.

    Args:
        before: The original's checksum, or :data:`NONE` where there was no file.
        after: The new content's checksum, or :data:`NONE` where the file is to go.
        path: Relative to the tree's root, symbolic links resolved.
    """

    before: str
    after: str
    path: str


class Manifest(NamedTuple):
    """What a write is about to change.

    Args:
        entries: The files; the original of each has its index as its name.
        folders: The folders to be made, outer ones first.
    """

    entries: Sequence[Entry]
    folders: Sequence[str]

    def to_bytes(self) -> bytes:
        """The manifest as a file's content."""
        lines = [_TITLE, *map(" ".join, self.entries)]
        lines += [f"folder {folder}" for folder in self.folders]
        return os.fsencode("".join(f"{line}\n" for line in lines))


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest.

    Raises:
        TreeError: It is missing or damaged.
    """
    title, *lines = os.fsdecode(content(path) or b"").split("\n")
    if title != _TITLE or lines.pop() != "":
        raise damaged(path, "not a manifest that this version wrote")
    entries, folders = [], []
    for line in lines:
        first, _, rest = line.partition(" ")
        after, _, name = rest.partition(" ")
        if first == "folder":
            folders.append(rest)
        elif name:
            entries.append(Entry(first, after, name))
        else:
            raise damaged(path, f"cannot read the line {line!r}")
    return Manifest(entries, folders)


def damaged(where: Path, what: str) -> TreeError:
    """The error for a journal that cannot be relied on."""
    return TreeError(
        f"the journal is damaged: {what}",
        where=str(where),
        hint="restore the tree from its source (git, pip), then delete the journal",
    )


def checksum(data: bytes | None) -> str:
    """What tells one content from another. It need not withstand malice."""
    return NONE if data is None else f"{zlib.crc32(data):08x}{len(data):x}"


def content(path: Path) -> bytes | None:
    """A file's bytes, or None where there is no such file."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
