"""Finds mistakes in patch files before a tree is at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from vllm_graft.catalog import series_folder, series_names
from vllm_graft.engine.evaluate import CompiledFile
from vllm_graft.engine.patchfile import FilePatch, Patch
from vllm_graft.errors import PatchError
from vllm_graft.series import (
    Entry,
    SeriesPatch,
    list_series,
    load_patch,
    read_patch,
)

_SUBJECT_WIDTH: Final = 72
_AUTHOR = re.compile(r"[^<>]*[^<>\s] <[^<>\s]+>")


class Problem(NamedTuple):
    """One finding: place, cause and the next step."""

    where: str
    message: str
    hint: str

    def to_json(self) -> dict[str, str]:
        """The documented JSON form."""
        return {"where": self.where, "message": self.message, "hint": self.hint}


def lint(names: Sequence[str]) -> list[Problem]:
    """The problems in patch files and series; all of them, not just the first.

    Args:
        names: Patch files, or series by name or folder; none for the series that
            come with the tool.
    """
    problems: list[Problem] = []
    for name in names or series_names():
        problems += _file(Path(name)) if Path(name).is_file() else _series(name)
    return problems


def _series(name: str) -> Iterator[Problem]:
    try:
        folder = series_folder(name)
        entries = list_series(folder)
    except PatchError as error:
        yield _problem(error, name)
        return
    yield from _audit_rules(folder)
    items = [_load(folder, entry) for entry in entries]
    for item in items:
        if isinstance(item, Problem):
            yield item
        else:
            yield from _patch(item.patch)
    listed = {entry.name for entry in entries}
    for stray in sorted(folder.glob("*.spatch")):
        if stray.name not in listed:
            yield Problem(
                str(stray),
                "is not listed in the file 'series'",
                "add its name there, or delete it",
            )
    loaded = [item for item in items if isinstance(item, SeriesPatch)]
    if len(loaded) == len(items):  # else it is not known what is in use
        used = {path for item in loaded for path in item.contents}
        yield from _unused(folder / "files", used)


def _audit_rules(folder: Path) -> Iterator[Problem]:
    from vllm_graft.audit.rules import series_rules  # noqa: PLC0415 - for this alone

    try:
        series_rules(folder)
    except PatchError as error:
        yield _problem(error, str(folder))


def _load(folder: Path, entry: Entry) -> SeriesPatch | Problem:
    try:
        return load_patch(folder, entry)
    except PatchError as error:
        return _problem(error, str(folder / entry.name))


def _unused(files: Path, contents: set[str]) -> Iterator[Problem]:
    for path in sorted(files.rglob("*")):
        name = path.relative_to(files).as_posix()
        if path.is_file() and name not in contents and "__pycache__" not in path.parts:
            yield Problem(
                str(path),
                "no patch adds this file",
                f"add '--- /dev/null' and '+++ b/{name}' to a patch, or delete it",
            )


def _file(path: Path) -> Iterator[Problem]:
    try:
        patch = read_patch(path)
    except PatchError as error:
        yield _problem(error, str(path))
    else:
        yield from _patch(patch)


def _patch(patch: Patch) -> Iterator[Problem]:
    if len(patch.subject) > _SUBJECT_WIDTH:
        yield Problem(
            _field(patch, "Subject"),
            f"the subject has {len(patch.subject)} characters",
            f"keep it within {_SUBJECT_WIDTH}",
        )
    author = patch.header("From")
    if author is not None and not _AUTHOR.fullmatch(author):
        yield Problem(
            _field(patch, "From"),
            f"not an author that git takes: {author!r}",
            "write 'From: NAME <ADDRESS>'",
        )
    seen: set[str] = set()
    for file, back in zip(patch.files, patch.reversed().files, strict=True):
        if file.path in seen:
            yield Problem(
                f"{patch.path}:{file.number}",
                f"changes {file.path} a second time",
                "put all hunks for a file below one '---', '+++' pair",
            )
        seen.add(file.path)
        yield from _changes(patch, file, back)


def _field(patch: Patch, name: str) -> str:
    names = [field for field, _ in patch.headers]
    return f"{patch.path}:{names.index(name) + 1}"


def _changes(patch: Patch, file: FilePatch, back: FilePatch) -> Iterator[Problem]:
    try:
        forward = CompiledFile(patch.path, file)
    except PatchError as error:
        yield _problem(error, patch.path)
        return
    one_way = [
        Problem(
            f"{patch.path}:{hunk.hunk.alternatives[index].number}",
            f"cannot be reversed: {change.one_way}",
            "give the metavariable a 'where', or name the code",
        )
        for hunk in forward.hunks
        for index, change in enumerate(hunk.changes)
        if change.one_way
    ]
    yield from one_way or _reverse(patch, back)
    if file.hunks and not file.conditions:
        yield Problem(
            f"{patch.path}:{file.number}",
            f"no post-condition on {file.path}: 'superseded' cannot be told "
            "from 'conflict'",
            "add 'ensure SCOPE has [no] PATTERN' below the +++ line",
        )


def _reverse(patch: Patch, back: FilePatch) -> Iterator[Problem]:
    try:
        CompiledFile(patch.path, back, reverse=True)
    except PatchError as error:
        yield _problem(error, patch.path)


def _problem(error: PatchError, path: str) -> Problem:
    return Problem(error.where or path, error.message, error.hint or "")
