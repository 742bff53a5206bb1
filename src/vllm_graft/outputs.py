"""Files that the user asked for: reports, pages, baselines."""

from __future__ import annotations

import os
from pathlib import Path

from vllm_graft.errors import GraftError


def write(path: Path, text: str) -> None:
    """Writes a file.

    Raises:
        GraftError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error.strerror) from error


def check_writable(path: Path | None) -> None:
    """Finds out now, not after minutes, whether a file can be written.

    Raises:
        GraftError: It cannot.
    """
    if path is None:
        return
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise _unwritable(path, "no such folder, or not yours")


def _unwritable(path: Path, why: str | None) -> GraftError:
    return GraftError(
        f"cannot be written: {why}",
        where=str(path),
        hint="name a file in a folder that exists and can be written",
    )
