"""Series: folders of semantic patches with an order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from vllm_graft.catalog import patches_folder, series_folder, series_names
from vllm_graft.engine.evaluate import CompiledFile
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.patchfile import Patch
from vllm_graft.errors import PatchError

__all__ = [
    "Series",
    "SeriesPatch",
    "load_series",
    "patches_folder",
    "series_names",
]


class SeriesPatch:
    """A patch of a series, compiled when it is first used.

    Args:
        patch: The patch.
        contents: The content of each file that it adds or removes, by path.
    """

    def __init__(
        self, patch: Patch, contents: Mapping[str, bytes] | None = None
    ) -> None:
        self.patch = patch
        self.contents = contents or {}

    def __repr__(self) -> str:
        return f"SeriesPatch({self.patch.name!r})"

    @cached_property
    def compiled(self) -> Mapping[str, CompiledFile]:
        """The changes to existing files, by path."""
        return self._compile(self.patch)

    @cached_property
    def reversed(self) -> Mapping[str, CompiledFile]:
        """The changes that undo them, by path."""
        return self._compile(self.patch.reversed())

    @staticmethod
    def _compile(patch: Patch) -> Mapping[str, CompiledFile]:
        return {
            file.path: CompiledFile(patch.path, file, reverse=patch.reverse)
            for file in patch.files
            if file.hunks
        }

    @property
    def adds_only(self) -> bool:
        """Whether it does nothing but add new files."""
        return all(file.old is None for file in self.patch.files)


class Series(NamedTuple):
    """Semantic patches that belong together, in order.

    Args:
        name: The folder's name.
        folder: The folder.
        patches: In the order of the file ``series``.
    """

    name: str
    folder: Path
    patches: tuple[SeriesPatch, ...]

    def paths(self) -> tuple[str, ...]:
        """Every path that a verdict depends on, each once."""
        paths: dict[str, None] = {}
        for item in self.patches:
            paths.update(dict.fromkeys(item.patch.requires))
            paths.update(dict.fromkeys(item.patch.targets))
        return tuple(paths)


def load_series(name: str | Path) -> Series:
    """Reads a series.

    Args:
        name: The name of one that comes with the tool, or a folder.

    Raises:
        PatchError: There is no such series, it lists a patch twice or none, or a
            patch of it is malformed or incomplete.
    """
    folder = series_folder(name)
    patches = tuple(load_patch(folder, entry) for entry in list_series(folder))
    return Series(folder.resolve().name, folder, patches)


class Entry(NamedTuple):
    """A line of the file ``series``: a patch file's name, and the line's place."""

    name: str
    where: str


def list_series(folder: Path) -> list[Entry]:
    """The entries of a series, in order.

    Raises:
        PatchError: An entry is no plain file name or stands there twice, or there
            is none.
    """
    path = folder / "series"
    entries: dict[str, Entry] = {}
    for name, number in _names(_text(path)):
        where = f"{path}:{number}"
        if name in entries:
            raise PatchError(
                f"lists {name} twice", where=where, hint="delete one of the lines"
            )
        if name in (".", "..") or "/" in name or "\\" in name:
            raise PatchError(
                f"not a plain file name: {name!r}",
                where=where,
                hint="put the patch into the series' own folder",
            )
        entries[name] = Entry(name, where)
    if not entries:
        raise PatchError(
            "lists no patch",
            where=str(path),
            hint="add the patch files' names, one a line",
        )
    return list(entries.values())


def _names(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.splitlines(), 1):
        name = line.split("#", 1)[0].strip()
        if name:
            yield name, number


def load_patch(folder: Path, entry: Entry) -> SeriesPatch:
    """Reads one patch of a series, with the files that it adds or removes.

    Raises:
        PatchError: It does not exist, is malformed, or lacks a file's content.
    """
    path = folder / entry.name
    if not path.is_file():
        raise PatchError(
            f"lists {entry.name}, which does not exist",
            where=entry.where,
            hint="correct the name, or delete the line",
        )
    patch = read_patch(path)
    contents = {}
    for file in patch.files:
        if file.hunks:
            continue
        content = folder / "files" / file.path
        if not content.is_file():
            verb = "adds" if file.old is None else "removes"
            raise PatchError(
                f"{verb} {file.path}, whose content is missing",
                where=f"{path}:{file.number}",
                hint=f"put the content into {content}",
            )
        contents[file.path] = _bytes(content)
    return SeriesPatch(patch, contents)


def read_patch(path: Path) -> Patch:
    """Reads one patch file.

    Raises:
        PatchError: It cannot be read, is not UTF-8, or is malformed.
    """
    return parse_patch(str(path), _text(path))


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise PatchError(
            f"not UTF-8: byte {error.object[error.start]:#04x}",
            where=f"{path}:{line}",
            hint="save the file as UTF-8",
        ) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            hint="make it a readable file",
        ) from error
