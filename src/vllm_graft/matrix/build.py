"""Where every patch stands on every release of vLLM.

Only the files that the series concern are read, out of the releases' wheels.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from packaging.version import Version

from vllm_graft.errors import GraftError
from vllm_graft.index.client import Index
from vllm_graft.index.releases import parse_version
from vllm_graft.index.session import JOBS
from vllm_graft.index.wheel import read_wheel_files
from vllm_graft.matrix.verdicts import release_status
from vllm_graft.results import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future

    from vllm_graft.index.releases import Release
    from vllm_graft.results import PatchResult, SeriesResult, TreeStatus
    from vllm_graft.series import Series

#: The release before the first one with Model Runner V2.
OLDEST = "0.11.2"

_SCHEMA = 1


class OnProgress(Protocol):
    """Told of every release that is done."""

    def __call__(self, done: int, total: int, version: str, /) -> None:
        """Take note that ``version`` is the ``done``-th of ``total``."""


@dataclass(frozen=True)
class Row:
    """One release.

    Attributes:
        version: The release.
        source: The name of the wheel that was read; empty if none could be.
        status: Where the series stand on it, or None if it could not be read.
        error: Why it could not be.
    """

    version: str
    source: str
    status: TreeStatus | None
    error: GraftError | None = None

    @property
    def patches(self) -> tuple[PatchResult, ...]:
        """The patches of all series, in order; empty if it could not be read."""
        series = self.status.series if self.status is not None else ()
        return tuple(patch for one in series for patch in one.patches)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on all patches but those that only add files."""
        return tuple(patch.verdict for patch in self.patches if not patch.adds_only)

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        error = self.error
        return {
            "version": self.version,
            "source": self.source,
            "series": self.status.to_json()["series"] if self.status else [],
            "error": {"message": error.message, "hint": error.hint} if error else None,
        }


@dataclass(frozen=True)
class Run:
    """Releases in a row on which a series has the same verdict.

    Attributes:
        verdict: The verdict, None where the releases could not be read.
        versions: The releases, oldest first.
    """

    verdict: Verdict | None
    versions: tuple[str, ...]

    def __str__(self) -> str:
        first, last = self.versions[0], self.versions[-1]
        return first if first == last else f"{first} to {last}"


@dataclass(frozen=True)
class Matrix:
    """The verdict on every patch for every release, oldest release first.

    Attributes:
        rows: One for each release, those that could not be read too.
        made: When, in UTC.
        urls: The package indexes that were asked.
        listed_at: When the list of releases was read from them.
        notes: What the user should know about how it was made.
    """

    rows: tuple[Row, ...]
    made: datetime
    urls: tuple[str, ...] = ()
    listed_at: datetime | None = None
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Row, ...]:
        """The releases that could not be read."""
        return tuple(row for row in self.rows if row.error is not None)

    @property
    def series(self) -> tuple[SeriesResult, ...]:
        """The series and their patches, as in the last release that was read."""
        for row in reversed(self.rows):
            if row.status is not None:
                return row.status.series
        return ()

    def counts(self) -> Counter[Verdict]:
        """How often each verdict occurs, but for patches that only add files."""
        return Counter(verdict for row in self.rows for verdict in row.verdicts)

    def runs(self, name: str) -> list[Run]:
        """The history of the series ``name``, as runs of one verdict."""
        verdicts = [(_series_verdict(row, name), row.version) for row in self.rows]
        return [
            Run(verdict, tuple(version for _, version in group))
            for verdict, group in groupby(verdicts, key=lambda pair: pair[0])
        ]

    def to_json(self) -> dict[str, Any]:
        """The stable JSON form.

        ``schema`` is 1. ``made`` and ``index.listed_at`` are in ISO 8601, UTC.
        Each of ``releases`` has ``version``, ``source`` (the wheel read),
        ``series`` (as in the JSON form of a tree's status, empty on failure) and
        ``error`` (null, or ``message`` and ``hint``).
        """
        listed_at = self.listed_at.isoformat() if self.listed_at else None
        return {
            "schema": _SCHEMA,
            "made": self.made.isoformat(),
            "index": {"urls": list(self.urls), "listed_at": listed_at},
            "notes": list(self.notes),
            "releases": [row.to_json() for row in self.rows],
        }


def run_matrix(
    series: Sequence[Series],
    versions: Sequence[str] | None = None,
    *,
    index: Index | None = None,
    jobs: int = JOBS,
    on_progress: OnProgress | None = None,
) -> Matrix:
    """Evaluate series on releases of vLLM.

    A release that cannot be read becomes a row that says why; the others are
    evaluated all the same.

    Args:
        series: The series.
        versions: The releases; by default all final ones from 0.11.2 on.
        index: The package index; by default the one that pip uses.
        jobs: Releases to read at the same time.
        on_progress: Called after each release.

    Raises:
        FetchError: The list of releases cannot be read, or one of ``versions`` is
            not a version.
    """
    if index is None:
        with Index() as opened:
            return run_matrix(
                series, versions, index=opened, jobs=jobs, on_progress=on_progress
            )
    releases, rows = _select(index, versions)
    total = len(releases) + len(rows)
    for row in _evaluate(index, series, releases, jobs):
        rows.append(row)
        if on_progress is not None:
            on_progress(len(rows), total, row.version)
    return Matrix(
        rows=tuple(sorted(rows, key=lambda row: Version(row.version))),
        made=datetime.now(timezone.utc).replace(microsecond=0),
        urls=index.urls,
        listed_at=index.listed_at,
        notes=tuple(index.notes),
    )


def _select(
    index: Index, versions: Sequence[str] | None
) -> tuple[list[Release], list[Row]]:
    """The releases to read, and rows for those that do not exist."""
    if versions is None:
        oldest = Version(OLDEST)
        return [r for r in index.releases() if Version(r.version) >= oldest], []
    index.all_releases()  # fails once, not once for each version
    releases, rows = [], []
    for version in sorted({parse_version(version) for version in versions}):
        try:
            releases.append(index.release(str(version)))
        except GraftError as error:  # noqa: PERF203 - the others are still to be read
            rows.append(Row(str(version), "", None, error))
    return releases, rows


def _evaluate(
    index: Index, series: Sequence[Series], releases: Sequence[Release], jobs: int
) -> Iterable[Row]:
    """The rows, as the releases arrive: some are read while others are judged."""
    paths = tuple(dict.fromkeys(path for one in series for path in one.paths()))
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="matrix")
    try:
        reading = {
            pool.submit(read_wheel_files, index, release, paths): release
            for release in releases
        }
        for done in as_completed(reading):
            yield _row(reading[done], series, done)
    finally:
        pool.shutdown(cancel_futures=True)


def _row(
    release: Release,
    series: Sequence[Series],
    files: Future[dict[str, bytes | None]],
) -> Row:
    source = release.wheel.filename if release.wheel is not None else ""
    try:
        found = release_status(release, files.result(), series)
    except GraftError as error:
        return Row(release.version, source, None, error)
    return Row(release.version, source, found)


def _series_verdict(row: Row, name: str) -> Verdict | None:
    for series in row.status.series if row.status is not None else ():
        if series.name == name:
            return series.verdict
    return None
