"""Files that appear complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from vllm_graft.cache import cache_dir
from vllm_graft.errors import FetchError


def cache_path(*parts: str) -> Path:
    """The cache folder, as `cache.cache_dir` makes it.

    Raises:
        FetchError: It cannot be made.
    """
    try:
        return cache_dir(*parts)
    except OSError as error:
        raise cache_error(Path(error.filename or "cache"), error) from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``path`` so that a reader sees the old content or all of the new.

    Raises:
        FetchError: The disk is full, or the folder cannot be written.
    """
    import tempfile  # noqa: PLC0415 - slow, and `run` seldom writes

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, path)  # noqa: PTH105 - `name` is a string
        except BaseException:
            os.unlink(name)  # noqa: PTH108
            raise
    except OSError as error:
        raise cache_error(path, error) from error


def cache_error(path: Path, error: OSError) -> FetchError:
    """The FetchError for a cache that cannot be written."""
    return FetchError(
        f"the cache cannot be written: {error.strerror or error}",
        where=str(path),
        hint="Make room there, or set VLLM_GRAFT_CACHE to another folder.",
    )
