"""Finds mistakes in patch files before a tree is at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vllm_graft.errors import PatchError
from vllm_graft.evaluate import CompiledFile
from vllm_graft.parser import parse_patch
from vllm_graft.patchfile import Patch
from vllm_graft.series import load_series, patches_folder, series_names

_SUBJECT_WIDTH = 72


@dataclass(frozen=True)
class Problem:
    """One finding: place, cause and the next step."""

    where: str
    message: str
    hint: str

    def to_json(self) -> dict[str, str]:
        """The documented JSON form."""
        return {"where": self.where, "message": self.message, "hint": self.hint}


def lint(paths: Sequence[Path]) -> list[Problem]:
    """The problems in patch files and series.

    Args:
        paths: Patch files, or series by name or folder; none for the series that
            come with the tool.
    """
    chosen = list(paths) or [patches_folder() / name for name in series_names()]
    problems: list[Problem] = []
    for path in chosen:
        problems += _file(path) if path.is_file() else _series(path)
    return problems


def _series(path: Path) -> Iterator[Problem]:
    try:
        series = load_series(path)
    except PatchError as error:
        yield _problem(error, path)
        return
    names = {item.patch.name for item in series.patches}
    for item in series.patches:
        yield from _patch(item.patch)
    for stray in sorted(series.folder.glob("*.spatch")):
        if stray.name not in names:
            yield Problem(
                str(stray),
                "is not listed in the file 'series'",
                "add its name there, or delete it",
            )
    used = {Path(name) for item in series.patches for name in item.contents}
    files = series.folder / "files"
    for content in sorted(path for path in files.rglob("*") if path.is_file()):
        if content.relative_to(files) not in used and "__pycache__" not in str(content):
            yield Problem(
                str(content),
                "no patch adds this file",
                "add a '--- /dev/null', '+++ b/PATH' pair to a patch",
            )


def _file(path: Path) -> Iterator[Problem]:
    try:
        text = path.read_text(encoding="utf-8")
        yield from _patch(parse_patch(str(path), text))
    except PatchError as error:
        yield _problem(error, path)
    except UnicodeDecodeError:
        yield Problem(str(path), "not UTF-8", "save the file as UTF-8")


def _patch(patch: Patch) -> Iterator[Problem]:
    if len(patch.subject) > _SUBJECT_WIDTH:
        yield Problem(
            f"{patch.path}:1",
            f"the subject has {len(patch.subject)} characters",
            f"keep it within {_SUBJECT_WIDTH}",
        )
    for file, back in zip(patch.files, patch.reversed().files, strict=True):
        try:
            forward = CompiledFile(patch.path, file)
            CompiledFile(patch.path, back, reverse=True)
        except PatchError as error:
            yield _problem(error, Path(patch.path))
            continue
        for hunk in forward.hunks:
            why = hunk.changes[0].one_way
            if why:
                yield Problem(
                    f"{patch.path}:{hunk.hunk.number}",
                    f"cannot be reversed: {why}",
                    "give the metavariable a 'where', or name the code",
                )
        if file.hunks and not file.conditions:
            yield Problem(
                f"{patch.path}:{file.number}",
                f"no post-condition on {file.path}: 'superseded' cannot be told "
                "from 'conflict'",
                "add 'ensure SCOPE has [no] PATTERN' below the +++ line",
            )


def _problem(error: PatchError, path: Path) -> Problem:
    return Problem(error.where or str(path), error.message, error.hint or "")
