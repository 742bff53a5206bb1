"""Releases of any project on the package index, unpacked in the cache."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from vllm_graft.cache import cache_dir
from vllm_graft.index.archive import unpack
from vllm_graft.index.client import Index
from vllm_graft.index.download import download
from vllm_graft.index.releases import ReleaseFile, release_file


def released(index: Index, project: str, filename: str, sha256: str) -> Path | None:
    """A distribution, unpacked; None where the index does not have it.

    Args:
        index: The package index.
        project: Its name there.
        filename: The distribution.
        sha256: Its digest, or the beginning of it.

    Raises:
        FetchError: It cannot be read, or does not match what the index states.
        ValueError: The index states another digest.
    """
    file = _file(index, project, filename)
    if file is None:
        return None
    if not str(file.sha256).startswith(sha256):
        raise ValueError(f"{filename} is another file than expected: {file.sha256}")
    folder = cache_dir("audit") / file.key
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch, "tree")
            made.mkdir()
            unpack(download(index.session, file), made)
            with suppress(OSError):  # another process was faster
                made.rename(folder)
    return folder


def _file(index: Index, project: str, filename: str) -> ReleaseFile | None:
    from pypi_simple import (  # noqa: PLC0415 - slow
        PYPI_SIMPLE_ENDPOINT,
        NoSuchProjectError,
        PyPISimple,
    )

    for url in index.settings.urls or ("",):
        client = PyPISimple(url or PYPI_SIMPLE_ENDPOINT, session=index.session)
        try:
            page = client.get_project_page(project)
        except NoSuchProjectError:
            continue
        for package in page.packages:
            file = release_file(package)
            if file is not None and file.filename == filename:
                return file
    return None
