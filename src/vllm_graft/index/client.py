"""The releases of vLLM on the user's package index.

The list of releases is kept for an hour, so that work on cached releases needs
no network, and longer for the case that the index does not answer.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from vllm_graft.atomic import cache_path, write_atomic
from vllm_graft.errors import FetchError
from vllm_graft.index.pipconfig import IndexSettings, read_settings
from vllm_graft.index.releases import (
    Release,
    ReleaseFile,
    group_releases,
    parse_version,
    release_file,
)
from vllm_graft.index.session import Session, fetch_error, retrying

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from typing_extensions import Self

PROJECT = "vllm"

#: How long a stored list of releases is used without asking the index.
MAX_AGE = timedelta(hours=1)

_SCHEMA = 1


class Index:
    """The package index, as far as vLLM is concerned.

    Args:
        settings: How to reach it; by default what pip is configured to use.
        refresh: Ask the index even if a recent list of releases is stored.

    Attributes:
        notes: What the user should know about the answers, such as that an old
            list of releases had to serve.
        urls: The base URLs that the list of releases in use was read from,
            without credentials; empty until there is one.
        listed_at: When it was read from them.
    """

    def __init__(
        self, settings: IndexSettings | None = None, *, refresh: bool = False
    ) -> None:
        self.settings = read_settings() if settings is None else settings
        self.session = Session(self.settings)
        self.notes: list[str] = []
        self.urls: tuple[str, ...] = ()
        self.listed_at: datetime | None = None
        self._refresh = refresh
        self._stored = False
        self._releases: list[Release] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def all_releases(self) -> list[Release]:
        """Every release that the index lists, oldest first.

        Raises:
            FetchError: The index does not answer and no list is stored.
        """
        with self._lock:
            if self._releases is None:
                self._releases = group_releases(self._list())
            return self._releases

    def releases(self) -> list[Release]:
        """The final releases that are not yanked, oldest first.

        Raises:
            FetchError: The index does not answer and no list is stored.
        """
        return [release for release in self.all_releases() if release.is_final]

    def release(self, version: str) -> Release:
        """The named release, be it final or not.

        Raises:
            FetchError: There is none, or ``version`` is not a version, or the
                index does not answer and no list is stored.
        """
        wanted = parse_version(version)
        if (found := self._find(wanted)) is not None:
            return found
        if self._stored and not self._refresh:
            # It may have been released since the list was stored.
            self._refresh, self._releases = True, None
            if (found := self._find(wanted)) is not None:
                return found
        # Nearest by number, not by spelling: 0.23.1 is close to 0.23.0.
        final = [release.version for release in self.releases()]
        below = [v for v in final if Version(v) < wanted][-2:]
        above = [v for v in final if Version(v) > wanted][:2]
        near = ", ".join([*below, *above])
        raise FetchError(
            f"the package index has no vLLM {version}",
            hint=f"Releases near it: {near}." if near else "Check pip's index-url.",
        )

    def _find(self, wanted: Version) -> Release | None:
        for release in self.all_releases():
            if Version(release.version) == wanted:
                return release
        return None

    def _list(self) -> list[ReleaseFile]:
        store = self._store()
        stored = _load(store)
        if stored is not None:
            age = datetime.now(timezone.utc) - stored.listed_at
            if not self._refresh and timedelta(0) <= age < MAX_AGE:
                self._stored = True
                return self._use(stored)
        try:
            # With an old list at hand, there is no point in long insistence.
            retries = self.settings.retries if stored is None else 1
            fresh = self._ask(min(retries, self.settings.retries))
        except FetchError as error:
            if stored is None:
                raise
            when = stored.listed_at.strftime("%Y-%m-%d %H:%M UTC")
            self.notes.append(f"{error.message}; the release list of {when} is used")
            return self._use(stored)
        _save(store, fresh)
        return self._use(fresh)

    def _use(self, listed: _Listed) -> list[ReleaseFile]:
        self.urls, self.listed_at = listed.urls, listed.listed_at
        return listed.files

    def _ask(self, retries: int) -> _Listed:
        """The files on all configured indexes; the first one wins on a name."""
        # Takes half a second to import; a stored list does without.
        from pypi_simple import (  # noqa: PLC0415
            PYPI_SIMPLE_ENDPOINT,
            NoSuchProjectError,
            PyPISimple,
        )

        urls = tuple(url or PYPI_SIMPLE_ENDPOINT for url in self.settings.urls or ("",))
        files: dict[str, ReleaseFile] = {}
        failures: list[FetchError] = []
        for url in urls:
            client = PyPISimple(endpoint=url, session=self.session)
            try:
                page = retrying(partial(client.get_project_page, PROJECT), retries)
            except NoSuchProjectError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever a client raises
                doing = f"cannot list the releases of vLLM on {url}"
                failures.append(fetch_error(doing, error))
                continue
            for package in page.packages:
                if (file := release_file(package)) is not None:
                    files.setdefault(file.filename, file)
        if files:
            self.notes += [failure.message for failure in failures]
            now = datetime.now(timezone.utc).replace(microsecond=0)
            return _Listed(now, urls, list(files.values()))
        if failures:
            raise failures[0]
        raise FetchError(
            f"no vLLM on the package index {' '.join(urls)}",
            hint="Set pip's index-url (PIP_INDEX_URL) to an index that has it.",
        )

    def _store(self) -> Path:
        asked = "\n".join(self.settings.urls)
        key = hashlib.sha256(asked.encode()).hexdigest()[:16]
        return cache_path("index") / f"{PROJECT}-{key}.json"


@dataclass(frozen=True)
class _Listed:
    """The answer of the indexes, as it is stored."""

    listed_at: datetime
    urls: tuple[str, ...]
    files: list[ReleaseFile]


def _load(path: Path) -> _Listed | None:
    """The stored list; None if there is none that can be used."""
    try:
        data: Mapping[str, Any] = json.loads(path.read_bytes())
        if data["schema"] != _SCHEMA:
            return None
        return _Listed(
            datetime.fromisoformat(data["listed_at"]),
            tuple(data["urls"]),
            [ReleaseFile(**file) for file in data["files"]],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _save(path: Path, listed: _Listed) -> None:
    data = {
        "schema": _SCHEMA,
        "listed_at": listed.listed_at.isoformat(),
        "urls": listed.urls,
        "files": [asdict(file) for file in listed.files],
    }
    write_atomic(path, json.dumps(data, indent=1).encode())
