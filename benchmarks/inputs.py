"""What the benchmarks work on: releases of vLLM, and the series under test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from packaging.version import Version

from vllm_graft.cache import cache_dir
from vllm_graft.index.client import Index
from vllm_graft.index.fetch import fetch
from vllm_graft.index.wheel import read_wheel_files
from vllm_graft.series import Series, load_series

SERIES: Final = "mrv2-async-output"
VERSION: Final = "0.23.0"
FIRST: Final = "0.12.0"

#: The files that the refactor changes.
PATHS: Final = (
    "vllm/v1/executor/uniproc_executor.py",
    "vllm/v1/executor/multiproc_executor.py",
    "vllm/v1/worker/gpu/model_runner.py",
)

#: SHA-256 of each on 0.23.0 once it is refactored.
DIGESTS: Mapping[str, str] = {
    PATHS[0]: "4625c8e59aef1482600b02204701d348d7f716427581d3cf23b06bff9b056abe",
    PATHS[1]: "58dc3fc4fef7d4ae2235ad7a9b1c3f2960da6e4cdf5de806a9a19916250ef429",
    PATHS[2]: "3d25c39d4a177ee47e78c36987ed507eff90d7806e52e905d4b4d94b24b40f46",
}

#: Keeps the settings of this machine's user out of git.
GIT_ENV: Final = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Benchmark"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "bench@localhost"),
    **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
}

Files = Mapping[str, bytes]


def source_series() -> Series:
    """The series without the patches that only add tests."""
    series = load_series(SERIES)
    patches = tuple(item for item in series.patches if not item.adds_only)
    return Series(series.name, series.folder, patches)


def checkout() -> Path:
    """The release as a git repository, fetched once. Not to be changed."""
    folder = cache_dir("benchmarks") / f"vllm-{VERSION}"
    if not (folder / ".git").is_dir():
        fetch(VERSION, folder)
    return folder


def releases() -> dict[str, Files]:
    """The files of every release that has Model Runner V2 before the refactor."""
    with Index() as index:
        found = {}
        for release in index.releases():
            if Version(FIRST) <= Version(release.version) <= Version(VERSION):
                read = read_wheel_files(index, release, PATHS)
                found[release.version] = _complete(release.version, read)
        return found


@cache
def release() -> Files:
    """The files of the release."""
    with Index() as index:
        read = read_wheel_files(index, index.release(VERSION), PATHS)
    return _complete(VERSION, read)


def _complete(version: str, read: Mapping[str, bytes | None]) -> Files:
    missing = [path for path, data in read.items() if data is None]
    if missing:
        raise ValueError(f"vLLM {version} has no {', '.join(missing)}")
    return {path: data for path, data in read.items() if data is not None}


def check_digests(files: Files) -> None:
    """Makes sure that these are the refactored files of the release.

    Raises:
        ValueError: They are not.
    """
    for path, digest in DIGESTS.items():
        if sha256(files[path]).hexdigest() != digest:
            raise ValueError(f"{path} is not what it should be after the refactor")
