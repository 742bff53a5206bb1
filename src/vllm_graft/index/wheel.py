"""Single files out of a release's wheel, without downloading the wheel.

A wheel is a zip file: its directory stands at the end, and each member can be
read on its own by HTTP range requests, some hundred kilobytes out of hundreds of
megabytes. What was read is kept, and checked whenever it is used again.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
import zlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from remotezip import RemoteZip  # type: ignore[import-untyped]

from vllm_graft.atomic import cache_path, write_atomic
from vllm_graft.errors import FetchError
from vllm_graft.index.download import download
from vllm_graft.index.session import fetch_error, retrying, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import requests

    from vllm_graft.index.client import Index
    from vllm_graft.index.releases import Release, ReleaseFile

_SCHEMA = 1

#: Bytes to read from the end at first: the directory of most wheels of vLLM
#: (370 KB for 0.23.0), so that it takes a single request.
_TAIL = 1 << 19

#: Servers that know ranges but not ``bytes=-N`` answer one of these to it.
_NO_SUFFIX_RANGE = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        HTTPStatus.NOT_IMPLEMENTED,
    }
)

# A whole wheel has half a gigabyte: never several of them at once.
_one_whole_wheel = threading.Lock()


def read_wheel_files(
    index: Index, release: Release, paths: Iterable[str]
) -> dict[str, bytes | None]:
    """The named files of a release.

    Reads them from the cache; asks the index only for those it does not know.
    Threads may call this at the same time for different releases.

    Args:
        index: Where the release is from.
        release: The release.
        paths: Paths inside the wheel, such as ``vllm/v1/outputs.py``.

    Returns:
        The content of each, None for one that the wheel does not have.

    Raises:
        FetchError: The release has no wheel, or it cannot be read.
    """
    wheel = release.wheel
    if wheel is None:
        raise FetchError(
            f"vLLM {release.version} has no wheel on the package index",
            hint=f"Use `vllm-graft fetch {release.version}` and `status` instead.",
        )
    members = _Members(wheel)
    found, missing = members.read(dict.fromkeys(paths))
    if missing:
        fresh = _fetch(index, wheel, missing)
        members.store(fresh)
        found |= fresh
    return found


class _Members:
    """What the cache holds of one wheel: a manifest, and a file for each member.

    The manifest states the SHA-256, CRC-32 and size of each member, null for a
    path that the wheel does not have. Members are stored under their SHA-256, so
    no path of a wheel ever becomes a path on disk.
    """

    def __init__(self, wheel: ReleaseFile) -> None:
        self._wheel = wheel
        self._folder = cache_path("releases", wheel.version, wheel.key)
        self._known: dict[str, dict[str, Any] | None] = self._load()

    @property
    def _manifest(self) -> Any:
        return self._folder / "manifest.json"

    def _load(self) -> dict[str, dict[str, Any] | None]:
        try:
            data = json.loads(self._manifest.read_bytes())
            same = data["schema"] == _SCHEMA and data["wheel"] == self._wheel.filename
            return dict(data["members"]) if same else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def read(self, paths: Iterable[str]) -> tuple[dict[str, bytes | None], list[str]]:
        """What is known of ``paths``, and those of which nothing usable is."""
        found: dict[str, bytes | None] = {}
        missing = []
        for path in paths:
            if path not in self._known:
                missing.append(path)
            elif (entry := self._known[path]) is None:
                found[path] = None
            elif (content := self._content(entry)) is not None:
                found[path] = content
            else:
                missing.append(path)
        return found, missing

    def _content(self, entry: dict[str, Any]) -> bytes | None:
        """The stored member; None if it is gone or damaged."""
        try:
            content = (self._folder / entry["sha256"]).read_bytes()
            whole = (
                len(content) == entry["size"] and zlib.crc32(content) == entry["crc32"]
            )
        except (OSError, KeyError, TypeError):
            return None
        good = whole and hashlib.sha256(content).hexdigest() == entry["sha256"]
        return content if good else None

    def store(self, fresh: dict[str, bytes | None]) -> None:
        """Keep what was read; the manifest last, as only it makes them known."""
        for path, content in fresh.items():
            if content is None:
                self._known[path] = None
                continue
            sha256 = hashlib.sha256(content).hexdigest()
            write_atomic(self._folder / sha256, content)
            self._known[path] = {
                "sha256": sha256,
                # zipfile has compared it with the directory of the wheel.
                "crc32": zlib.crc32(content),
                "size": len(content),
            }
        manifest = {
            "schema": _SCHEMA,
            "wheel": self._wheel.filename,
            "sha256": self._wheel.sha256,
            "members": self._known,
        }
        write_atomic(self._manifest, json.dumps(manifest, indent=1).encode())


def _fetch(
    index: Index, wheel: ReleaseFile, paths: Iterable[str]
) -> dict[str, bytes | None]:
    try:
        return retrying(
            lambda: _read_ranges(index, wheel, paths), index.settings.retries
        )
    except _NoRangesError:
        return _read_whole(index, wheel, paths)
    except FetchError:
        raise
    except Exception as error:
        raise fetch_error(f"cannot read {wheel.filename}", error) from error


def _read_ranges(
    index: Index, wheel: ReleaseFile, paths: Iterable[str]
) -> dict[str, bytes | None]:
    session = _RangesOnly(index.session)
    try:
        with RemoteZip(
            wheel.url, session=session, initial_buffer_size=_TAIL
        ) as archive:
            return _read_members(archive, paths)
    except Exception as error:
        if status_of(error) not in _NO_SUFFIX_RANGE:
            raise
    with RemoteZip(
        wheel.url,
        session=session,
        initial_buffer_size=_TAIL,
        support_suffix_range=False,
    ) as archive:
        return _read_members(archive, paths)


def _read_whole(
    index: Index, wheel: ReleaseFile, paths: Iterable[str]
) -> dict[str, bytes | None]:
    with _one_whole_wheel:
        index.notes.append(
            f"the index serves no parts of files: all of {wheel.filename} was read"
        )
        path = download(index.session, wheel)
        try:
            with zipfile.ZipFile(path) as archive:
                return _read_members(archive, paths)
        except zipfile.BadZipFile as error:
            raise fetch_error(f"cannot read {wheel.filename}", error) from error
        finally:
            path.unlink(missing_ok=True)


def _read_members(
    archive: zipfile.ZipFile, paths: Iterable[str]
) -> dict[str, bytes | None]:
    names = set(archive.namelist())
    return {path: archive.read(path) if path in names else None for path in paths}


class _NoRangesError(Exception):
    """The server sends whole files only."""


class _RangesOnly:
    """The part of a session that remotezip uses, closing what it cannot use.

    remotezip itself would leave the connection of a refused request open, with
    the whole wheel under way on it.
    """

    def __init__(self, session: requests.Session) -> None:
        self._session = session

    def get(self, url: str, **options: Any) -> requests.Response:
        response = self._session.get(url, **options)
        if response.status_code != HTTPStatus.PARTIAL_CONTENT:
            response.close()
            response.raise_for_status()
            raise _NoRangesError
        return response

    def head(self, url: str, **options: Any) -> requests.Response:
        options.setdefault("allow_redirects", True)
        return self._session.head(url, **options)
