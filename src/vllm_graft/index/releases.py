"""A release of vLLM and its files, as a package index lists them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from vllm_graft.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypi_simple import DistributionPackage


@dataclass(frozen=True)
class ReleaseFile:
    """One file of a release.

    Attributes:
        version: The release's version as the file name states it.
        filename: Its name on the index.
        kind: ``sdist`` or ``wheel``.
        url: Where it is, without credentials.
        size: In bytes, where the index states it.
        sha256: Where the index states it, in lower-case hex.
        yanked: Whether the index advises against it.
    """

    version: str
    filename: str
    kind: str
    url: str
    size: int | None
    sha256: str | None
    yanked: bool

    @property
    def key(self) -> str:
        """Names the file in the cache: a different file has a different key."""
        return (self.sha256 or hashlib.sha256(self.url.encode()).hexdigest())[:16]


@dataclass(frozen=True)
class Release:
    """A version of vLLM and its files.

    Attributes:
        version: In canonical form.
        files: Those that the index lists, yanked ones too.
    """

    version: str
    files: tuple[ReleaseFile, ...]

    @property
    def is_final(self) -> bool:
        """Neither a pre-release nor a local build, and not yanked."""
        version = Version(self.version)
        return not (
            version.is_prerelease
            or version.local
            or all(file.yanked for file in self.files)
        )

    @property
    def sdist(self) -> ReleaseFile | None:
        """The source distribution."""
        return min(
            (file for file in self.files if file.kind == "sdist"),
            key=lambda file: (file.yanked, file.filename),
            default=None,
        )

    @property
    def wheel(self) -> ReleaseFile | None:
        """The wheel to read.

        All wheels of a release hold the same Python files. The choice is only
        made to be the same everywhere: x86-64 before others, a plain build
        before a numbered one, the first name.
        """
        return min(
            (file for file in self.files if file.kind == "wheel"),
            key=_wheel_order,
            default=None,
        )


def parse_version(text: str) -> Version:
    """The version that ``text`` spells.

    Raises:
        FetchError: It spells none.
    """
    try:
        return Version(text)
    except InvalidVersion as error:
        raise FetchError(
            f"not a version of vLLM: {text!r}", hint="Write it as in 0.23.0."
        ) from error


def release_file(package: DistributionPackage) -> ReleaseFile | None:
    """What is worth knowing of a file; None if it is no release file."""
    kind = package.package_type
    if kind not in {"sdist", "wheel"} or package.version is None:
        return None
    if package.filename != PurePosixPath(package.filename).name:
        return None  # it names a file in the cache
    try:
        Version(package.version)
    except InvalidVersion:
        return None
    sha256 = package.digests.get("sha256")
    return ReleaseFile(
        version=package.version,
        filename=package.filename,
        kind=kind,
        url=package.url,
        size=package.size,
        sha256=sha256.lower() if sha256 else None,
        yanked=package.is_yanked,
    )


def group_releases(files: Iterable[ReleaseFile]) -> list[Release]:
    """The releases that the files belong to, oldest first."""
    by_version: dict[Version, list[ReleaseFile]] = defaultdict(list)
    for file in files:
        by_version[Version(file.version)].append(file)
    return [
        Release(str(version), tuple(by_version[version]))
        for version in sorted(by_version)
    ]


def _wheel_order(file: ReleaseFile) -> tuple[bool, bool, tuple[int, str], str]:
    try:
        build = parse_wheel_filename(file.filename)[2]
    except InvalidWheelFilename:
        build = ()
    return (
        file.yanked,
        "x86_64" not in file.filename,
        build or (-1, ""),
        file.filename,
    )
