"""The Python files below a path, and the names under which they are imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vllm_graft.audit.findings import Note
from vllm_graft.errors import TreeError


class SourceFile(NamedTuple):
    """A Python file.

    Args:
        path: The file.
        root: The folder that its imports start from.
        name: Its dotted name from there.
    """

    path: Path
    root: Path
    name: str

    @property
    def is_package(self) -> bool:
        """Whether relative imports start from the module itself."""
        return self.path.name == "__init__.py"

    @property
    def home(self) -> str:
        """The path from the import root on."""
        return self.path.relative_to(self.root).as_posix()


def describe(path: Path) -> SourceFile:
    """A file, with the name that its place gives it."""
    root, package = home(path.parent)
    return SourceFile(path, root, _name(package, path.name))


def home(folder: Path) -> tuple[Path, str]:
    """Where imports start for the code in a folder, and its package's dotted name."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links keep their names
    parts: list[str] = []
    if not _is_package(folder) and _is_package(folder.parent):
        parts.insert(0, folder.name)
        folder = folder.parent
    while _is_package(folder):
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def python_files(path: Path, notes: list[Note]) -> Iterator[SourceFile]:
    """Every Python file below a path, each folder once, in the order of their names.

    Hidden folders, bytecode and virtual environments are left out.

    Args:
        path: A folder, or one file of any name.
        notes: What cannot be read is added here.

    Raises:
        TreeError: There is nothing at the path.
    """
    if path.is_file():
        yield describe(Path(os.path.abspath(path)))  # noqa: PTH100
        return
    if not path.is_dir():
        raise TreeError(
            "no such file or folder",
            where=str(path),
            hint="name a checkout, a package's folder, or a Python file",
        )
    root, package = home(path)
    start = root / package.replace(".", "/") if package else root
    yield from _Walk(notes).folder(start, root, package, ())


class _Walk:
    def __init__(self, notes: list[Note]) -> None:
        self.notes = notes
        self.seen: set[tuple[int, int]] = set()

    def folder(
        self, folder: Path, root: Path, package: str, above: tuple[tuple[int, int], ...]
    ) -> Iterator[SourceFile]:
        try:
            status = folder.stat()
            key = (status.st_dev, status.st_ino)
            if key in above:
                self._note(folder, "a link that leads back to a folder above it")
            if key in self.seen:
                return
            self.seen.add(key)
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._note(folder, f"cannot be read: {error.strerror}")
            return
        for entry in entries:
            path = folder / entry.name
            if entry.name.endswith(".py"):
                if self._is(entry, folder=False):
                    yield SourceFile(path, root, _name(package, entry.name))
            elif self._skipped(entry):
                continue
            elif self._is(entry, folder=True):
                here = (*above, key)
                if package or _is_package(path):
                    below = f"{package}.{entry.name}" if package else entry.name
                    yield from self.folder(path, root, below, here)
                elif not (path / "pyvenv.cfg").exists():
                    yield from self.folder(path, path, "", here)

    def _skipped(self, entry: os.DirEntry[str]) -> bool:
        name = entry.name
        plain = "." in name and not entry.is_symlink() and entry.is_file()
        return name.startswith(".") or name == "__pycache__" or plain

    def _is(self, entry: os.DirEntry[str], *, folder: bool) -> bool:
        try:
            if entry.is_symlink():
                os.stat(entry.path)  # noqa: PTH116 - raises where the link is broken
            return entry.is_dir() if folder else entry.is_file()
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError):
                return False  # a broken link that may have been anything
            self._note(Path(entry.path), f"cannot be read: {error.strerror}")
            return False

    def _note(self, path: Path, message: str) -> None:
        self.notes.append(Note(str(path), message))


def _is_package(folder: Path) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))  # noqa: PTH113, PTH118


def _name(package: str, filename: str) -> str:
    stem = filename.removesuffix(".py")
    if stem == "__init__":
        return package or stem
    return f"{package}.{stem}" if package else stem
