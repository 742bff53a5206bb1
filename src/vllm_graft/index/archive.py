"""Unpack source distributions and wheels, trusting nothing about their members."""

from __future__ import annotations

import calendar
import posixpath
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from shutil import copyfileobj

from vllm_graft.errors import FetchError

_HINT = "Report it to whoever runs the package index; nothing was unpacked."


def unpack(archive: Path, dest: Path) -> int:
    """Unpack ``archive`` into the empty folder ``dest``.

    The one folder that a source distribution has at its top is left out. Files
    are written as 0644, or 0755 where the archive marks them executable.

    Returns:
        The newest modification time of a member, in seconds since the epoch (a
        wheel's times have no zone and are read as UTC), so that what is derived
        from it depends on the archive alone.

    Raises:
        FetchError: A member is absolute, climbs out, is a device, or is a link
            that leads out; or the archive is damaged, or the disk is full.
    """
    try:
        if zipfile.is_zipfile(archive):
            return _unpack_zip(archive, dest)
        return _unpack_tar(archive, dest)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FetchError(
            f"the archive is damaged: {error}", where=archive.name, hint=_HINT
        ) from error
    except OSError as error:
        raise FetchError(
            f"cannot unpack: {error.strerror or error}",
            where=str(error.filename or dest),
            hint="Make room there, or choose another destination.",
        ) from error


def _unpack_tar(archive: Path, dest: Path) -> int:
    newest = 0
    tops: set[str] = set()
    links: set[PurePosixPath] = set()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = _inside(member.name, archive, links, strip=1)
            tops.add(PurePosixPath(member.name).parts[0])
            if len(tops) > 1 or not (path.parts or member.isdir()):
                raise _refusal(member.name, "is outside the one top folder", archive)
            newest = max(newest, int(member.mtime))
            if path.parts:
                _unpack_member(tar, member, dest, path, archive)
            if member.issym():
                links.add(path)
    return newest


def _unpack_member(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    dest: Path,
    path: PurePosixPath,
    archive: Path,
) -> None:
    if member.issym() or member.islnk():
        _check_link(member, archive)
    elif not (member.isdir() or member.isreg()):
        raise _refusal(member.name, "is neither file, folder nor link", archive)
    if hasattr(tarfile, "data_filter"):  # a second opinion, from Python 3.10.12 on
        tarfile.data_filter(member, str(dest))
    target = dest / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        target.mkdir(exist_ok=True)
        return
    if member.issym():
        target.symlink_to(member.linkname)
        return
    # For a hard link, tarfile hands out the file that it leads to.
    with tar.extractfile(member) as source, target.open("xb") as out:  # type: ignore[union-attr]
        copyfileobj(source, out)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _unpack_zip(archive: Path, dest: Path) -> int:
    newest = 0
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            path = _inside(member.filename, archive, set(), strip=0)
            newest = max(newest, calendar.timegm((*member.date_time, 0, 0, 0)))
            target = dest / path
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(member) as source, target.open("xb") as out:
                copyfileobj(source, out)
            executable = member.external_attr >> 16 & 0o100
            target.chmod(0o755 if executable else 0o644)
    return newest


def _inside(
    name: str, archive: Path, links: set[PurePosixPath], *, strip: int
) -> PurePosixPath:
    """The path of a member below the destination, once it is known to stay there."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise _refusal(name, "leads out of the archive", archive)
    if ".git" in name.lower().split("/"):
        raise _refusal(name, "would be part of the new repository's own data", archive)
    path = PurePosixPath(*path.parts[strip:])
    if any(parent in links for parent in (path, *path.parents)):
        raise _refusal(name, "goes through a link", archive)
    return path


def _check_link(member: tarfile.TarInfo, archive: Path) -> None:
    """Refuse a link that leads out of the archive's top folder."""
    # A hard link names its target from the top, a symbolic one from beside it.
    base = posixpath.dirname(member.name) if member.issym() else ""
    end = posixpath.normpath(posixpath.join(base, member.linkname))
    top = PurePosixPath(member.name).parts[:1]
    if member.linkname.startswith("/") or PurePosixPath(end).parts[:1] != top:
        reason = f"is a link that leads out, to '{member.linkname}'"
        raise _refusal(member.name, reason, archive)


def _refusal(name: str, reason: str, archive: Path) -> FetchError:
    return FetchError(f"the member '{name}' {reason}", where=archive.name, hint=_HINT)
