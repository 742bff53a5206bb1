"""Series: folders of semantic patches with an order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vllm_graft.errors import PatchError
from vllm_graft.evaluate import CompiledFile
from vllm_graft.parser import parse_patch
from vllm_graft.patchfile import Patch


@dataclass(frozen=True)
class SeriesPatch:
    """A patch of a series, compiled when it is first used.

    Args:
        patch: The patch.
        contents: The content of each file that it adds, by path.
    """

    patch: Patch
    contents: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def compiled(self) -> tuple[CompiledFile, ...]:
        """The changes to existing files."""
        return self._compile(self.patch)

    @cached_property
    def reversed(self) -> tuple[CompiledFile, ...]:
        """The changes that undo them."""
        return self._compile(self.patch.reversed())

    @staticmethod
    def _compile(patch: Patch) -> tuple[CompiledFile, ...]:
        return tuple(
            CompiledFile(patch.path, file, reverse=patch.reverse)
            for file in patch.files
            if file.hunks
        )

    @property
    def adds_only(self) -> bool:
        """Whether it does nothing but add new files."""
        return all(file.old is None for file in self.patch.files)


@dataclass(frozen=True)
class Series:
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


def patches_folder() -> Path:
    """The folder of the series that come with the tool.

    It is part of the installed package; in a checkout it stands at the top.
    """
    package = Path(__file__).parent
    inside = package / "patches"
    return inside if inside.is_dir() else package.parents[1] / "patches"


def series_names() -> list[str]:
    """The names of the series that come with the tool."""
    return sorted(path.parent.name for path in patches_folder().glob("*/series"))


def load_series(name: str | Path) -> Series:
    """Reads a series.

    Args:
        name: The name of one that comes with the tool, or a folder.

    Raises:
        PatchError: There is no such series, or a patch of it is malformed.
    """
    folder = Path(name)
    if not (folder / "series").is_file():
        folder = patches_folder() / name
    if not (folder / "series").is_file():
        raise PatchError(
            f"no series {str(name)!r}",
            hint=f"known series: {', '.join(series_names()) or 'none'}; or name a "
            "folder with a file 'series' in it",
        )
    files = tuple(_load(folder, line, n) for line, n in _listed(folder))
    return Series(folder.resolve().name, folder, files)


def _listed(folder: Path) -> Iterator[tuple[str, int]]:
    lines = _text(folder / "series").splitlines()
    for number, line in enumerate(lines, 1):
        name = line.split("#", 1)[0].strip()
        if name:
            yield name, number


def _load(folder: Path, name: str, number: int) -> SeriesPatch:
    path = folder / name
    if not path.is_file():
        raise PatchError(
            f"lists {name}, which does not exist",
            where=f"{folder / 'series'}:{number}",
            hint="correct the name, or delete the line",
        )
    patch = parse_patch(str(path), _text(path))
    contents = {}
    for file in patch.files:
        if file.old is not None:
            continue
        content = folder / "files" / file.path
        if not content.is_file():
            raise PatchError(
                f"adds {file.path}, whose content is missing",
                where=f"{path}:{file.number}",
                hint=f"put the content into {content}",
            )
        contents[file.path] = content.read_bytes()
    return SeriesPatch(patch, contents)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise PatchError(
            f"not UTF-8: byte {error.object[error.start]:#04x} at {error.start}",
            where=str(path),
            hint="save the file as UTF-8",
        ) from error
