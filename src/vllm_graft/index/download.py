"""A release file, whole and verified, in the cache.

What has arrived of a file is kept beside it, under a name of its own, until the
digest of the whole is right; the next try goes on from there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Protocol

import requests

from vllm_graft.atomic import cache_error, cache_path
from vllm_graft.errors import FetchError
from vllm_graft.index.session import fetch_error, retrying

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_graft.index.releases import ReleaseFile
    from vllm_graft.index.session import Session

_CHUNK = 1 << 17


class Progress(Protocol):
    """Told of every piece that arrives."""

    def __call__(self, done: int, total: int | None, /) -> None:
        """Take note of ``done`` bytes of ``total``, None while it is unknown."""


def download(
    session: Session, file: ReleaseFile, progress: Progress | None = None
) -> Path:
    """The file in the cache, verified; from the index where it is not there.

    Args:
        session: Used for the requests.
        file: What to fetch; the index must state its SHA-256.
        progress: Called as the bytes arrive; not at all if the cache has them.

    Raises:
        FetchError: The index states no digest, or the file does not match it, or
            the network or the disk fails. Whatever had arrived by then is never
            taken for the file.
    """
    if file.sha256 is None:
        raise FetchError(
            f"the package index states no SHA-256 for {file.filename}",
            hint="Set pip's index-url to an index that does; nothing unverified "
            "is used.",
        )
    target = cache_path("downloads", file.key) / file.filename
    part = target.with_name(target.name + ".part")
    try:
        with part.open("ab+") as stream:
            # Another process may be fetching the same file: wait for it.
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not _is_good(target, file.sha256):
                target.unlink(missing_ok=True)
                _receive_verified(session, file, stream, progress)
                stream.flush()
                os.replace(part, target)  # noqa: PTH105
        part.unlink(missing_ok=True)
    except OSError as error:
        raise cache_error(target, error) from error
    return target


def _is_good(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as stream:
            return _digest(stream) == sha256
    except FileNotFoundError:
        return False


def _digest(stream: IO[bytes]) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _receive_verified(
    session: Session,
    file: ReleaseFile,
    stream: IO[bytes],
    progress: Progress | None,
) -> None:
    """Fill ``stream`` with the file.

    A wrong digest discards all and begins anew, once: what an earlier run left
    may have been damaged since.
    """
    found = ""
    for _ in range(2):
        try:
            retrying(
                lambda: _receive(session, file, stream, progress),
                session.settings.retries,
            )
        except requests.RequestException as error:
            raise fetch_error(f"cannot download {file.filename}", error) from error
        found = _digest(stream)
        if found == file.sha256:
            return
        stream.truncate(0)
    raise FetchError(
        f"{file.filename} does not match the package index: its SHA-256 is "
        f"{found}, the index states {file.sha256}",
        hint="A proxy or mirror may have changed the file; try another index. "
        "Nothing was unpacked.",
    )


def _receive(
    session: Session,
    file: ReleaseFile,
    stream: IO[bytes],
    progress: Progress | None,
) -> None:
    """Append to ``stream`` what is missing of the file."""
    done = stream.seek(0, os.SEEK_END)
    if file.size is not None and done > file.size:
        done = stream.truncate(0)
    if done and done == file.size:
        return
    # Without "identity" a server may compress, and the bytes would be others.
    headers = {"Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    with session.get(file.url, headers=headers, stream=True) as response:
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            stream.truncate(0)
            raise requests.ConnectionError("the rest of the file is not there")
        response.raise_for_status()
        start = f"bytes {done}-"
        if done and not response.headers.get("Content-Range", "").startswith(start):
            done = stream.truncate(0)
        length = response.headers.get("Content-Length")
        total = done + int(length) if length is not None else file.size
        for chunk in response.iter_content(_CHUNK):
            stream.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    if total is not None and done < total:
        raise requests.ConnectionError(f"{total - done} bytes are missing")
