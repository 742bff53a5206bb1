"""Finds and parses modules, each when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from vllm_graft.audit.files import SourceFile
from vllm_graft.audit.findings import Note
from vllm_graft.audit.modules import Module


class Loader:
    """The modules, parsed when they are first asked for.

    Args:
        roots: The folders that imports start from, in the order of their rank.
        notes: What cannot be read or parsed is added here.
        files: Files whose names are known already, by their paths.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        notes: list[Note],
        files: Mapping[str, SourceFile] | None = None,
    ) -> None:
        self.roots = tuple(dict.fromkeys(roots))
        self._files = files or {}
        self.notes = notes
        self._modules: dict[str, Module | None] = {}
        self._found: dict[tuple[Path | None, str], SourceFile | None] = {}
        self._tops: dict[str, list[Path]] = {}
        #: Modules that no import of their name leads to, by names of our own.
        self._scripts: dict[str, SourceFile] = {}

    def load(self, file: SourceFile, data: bytes | None = None) -> Module | None:
        """A file's module; None where it cannot be read or parsed.

        Args:
            file: The file.
            data: Its content, where it is known already.
        """
        key = str(file.path)
        if key not in self._modules:
            self._modules[key] = self._parse(file, data)
        return self._modules[key]

    def _parse(self, file: SourceFile, data: bytes | None) -> Module | None:
        where = str(file.path)
        try:
            return self._named(file, file.path.read_bytes() if data is None else data)
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
        except SyntaxError as error:
            where = f"{where}:{error.lineno}" if error.lineno else where
            message = f"cannot be parsed: {error.msg}"
        except (RecursionError, MemoryError):
            message = "cannot be parsed: nested too deeply"
        except ValueError as error:  # a null byte
            message = f"cannot be parsed: {error}"
        self.notes.append(Note(where, message))
        return None

    def _named(self, file: SourceFile, data: bytes) -> Module:
        module = Module(file, data)
        found = self._find(file.name, None)
        if found is None or found.path != file.path:
            # It cannot be imported, or something else has its name.
            stem = file.path.stem.replace(".", "_")
            module.name = f"{stem}@{len(self._scripts)}"
            self._scripts[module.name] = file
        return module

    def module(self, dotted: str, near: Path | None = None) -> Module | None:
        """The module of a dotted name; None where it is not at hand.

        Args:
            dotted: The name.
            near: A folder to look in before the roots.
        """
        file = self._find(dotted, near)
        return self.load(file) if file else None

    def _find(self, dotted: str, near: Path | None) -> SourceFile | None:
        if "@" in dotted:
            return self._scripts.get(dotted)
        near = None if near in self.roots else near
        key = (near, dotted)
        if key not in self._found:
            top, _, _ = dotted.partition(".")
            if top not in self._tops:
                self._tops[top] = [r for r in self.roots if _has(r, top)]
            roots = self._tops[top]
            if near is not None and _has(near, top):
                roots = [near, *roots]
            self._found[key] = next(
                filter(None, (self._at(r, dotted) for r in roots)), None
            )
        return self._found[key]

    def _at(self, root: Path, dotted: str) -> SourceFile | None:
        base = os.path.join(root, *dotted.split("."))  # noqa: PTH118
        for path in (f"{base}{os.sep}__init__.py", f"{base}.py"):
            if os.path.isfile(path):  # noqa: PTH113
                return self._files.get(path) or SourceFile(Path(path), root, dotted)
        return None


def _has(root: Path, top: str) -> bool:
    base = os.path.join(root, top)  # noqa: PTH118
    return os.path.isdir(base) or os.path.isfile(f"{base}.py")  # noqa: PTH112, PTH113
