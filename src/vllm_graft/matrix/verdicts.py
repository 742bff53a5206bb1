"""Verdicts on releases, kept for as long as nothing that they depend on changes.

A verdict is a function of the release's files, the series, and this package. All
three are part of the key, down to the last byte, so that what is found in the
cache is what would be found again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from vllm_graft.api import status
from vllm_graft.atomic import cache_path, write_atomic
from vllm_graft.cache import code_digest
from vllm_graft.results import (
    HunkResult,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
)
from vllm_graft.tree import MemoryTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from vllm_graft.index.releases import Release
    from vllm_graft.series import Series


def release_status(
    release: Release, files: Mapping[str, bytes | None], series: Sequence[Series]
) -> TreeStatus:
    """Where the series stand on a release; see `vllm_graft.status`.

    Args:
        release: The release, with a wheel.
        files: The content of every path of the series, None where it has none.
        series: The series.

    Raises:
        GraftError: A target cannot be parsed, or the cache cannot be written.
    """
    there = {path: data for path, data in files.items() if data is not None}
    tree = MemoryTree(there, release.version, f"vLLM {release.version}")
    wheel = release.wheel
    if wheel is None:
        return status(tree, series)
    # One file for each choice of series: a new key replaces the old.
    names = hashlib.sha256(" ".join(one.name for one in series).encode()).hexdigest()
    store = cache_path("releases", release.version, wheel.key) / f"status-{names[:8]}"
    key = _key(there, series)
    known = _load(store, key)
    if known is not None:
        return TreeStatus(tree.name, tree.version, known)
    found = status(tree, series)
    _save(store, key, found.series)
    return found


def _key(files: Mapping[str, bytes], series: Iterable[Series]) -> str:
    """A digest of all that the verdicts depend on."""
    parts = [code_digest("engine", "index", "matrix").encode()]
    for path, data in sorted(files.items()):
        parts += [path.encode(), data]
    for one in series:
        parts.append(one.name.encode())
        for item in one.patches:
            parts += [item.patch.path.encode(), str(item.patch).encode()]
            for path, data in sorted(item.contents.items()):
                parts += [path.encode(), data]
    # Digests have one length: where one part ends is never in doubt.
    return _sha256(b"".join(hashlib.sha256(part).digest() for part in parts))


def _load(store: Path, key: str) -> tuple[SeriesResult, ...] | None:
    """What is stored under ``key``; None if nothing usable is."""
    try:
        head, _, body = store.read_bytes().partition(b"\n")
        if head.decode() != f"{key} {_sha256(body)}":
            return None
        return tuple(_series(data) for data in json.loads(body))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _save(store: Path, key: str, series: Iterable[SeriesResult]) -> None:
    body = json.dumps([_plain(one) for one in series], separators=(",", ":")).encode()
    write_atomic(store, f"{key} {_sha256(body)}\n".encode() + body)


def _plain(series: SeriesResult) -> dict[str, Any]:
    patches = [
        {**patch._asdict(), "hunks": [hunk._asdict() for hunk in patch.hunks]}
        for patch in series.patches
    ]
    return {"name": series.name, "patches": patches}


def _series(data: dict[str, Any]) -> SeriesResult:
    return SeriesResult(data["name"], tuple(_patch(item) for item in data["patches"]))


def _patch(data: dict[str, Any]) -> PatchResult:
    hunks = tuple(
        HunkResult(
            **{
                **hunk,
                "verdict": Verdict(hunk["verdict"]),
                "lines": tuple(hunk["lines"]),
            }
        )
        for hunk in data["hunks"]
    )
    read = {
        "verdict": Verdict(data["verdict"]),
        "targets": tuple(data["targets"]),
        "hunks": hunks,
    }
    return PatchResult(**{**data, **read})


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
