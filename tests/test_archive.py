from __future__ import annotations

import io
import os
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

import loopback
from vllm_graft.errors import FetchError
from vllm_graft.index.archive import unpack

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"setup.py": b"x = 1\r\n", "vllm/a.py": b"", "tools/run.sh": b"#!/bin/sh\n"}


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = link
    return member


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    folder = tmp_path / "dest"
    folder.mkdir()
    return folder


def _unpack(tmp_path: Path, content: bytes, dest: Path) -> int:
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    return unpack(archive, dest)


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_source_distribution_loses_its_top_folder(tmp_path: Path, dest: Path) -> None:
    newest = _unpack(tmp_path, loopback.make_sdist("1", FILES), dest)
    assert _tree(dest) == FILES
    assert newest == loopback.NEWEST


def test_a_wheel_keeps_its_layout(tmp_path: Path, dest: Path) -> None:
    newest = _unpack(tmp_path, loopback.make_wheel(FILES), dest)
    assert _tree(dest) == FILES
    assert newest == loopback.NEWEST


def test_modes_are_the_plain_ones(tmp_path: Path, dest: Path) -> None:
    _unpack(tmp_path, loopback.make_sdist("1", FILES), dest)
    modes = {name: (dest / name).stat().st_mode & 0o777 for name in FILES}
    assert modes == {"setup.py": 0o644, "vllm/a.py": 0o644, "tools/run.sh": 0o755}


def test_links_inside_are_kept(tmp_path: Path, dest: Path) -> None:
    links = [
        _member("vllm-1/docs/setup.py", tarfile.SYMTYPE, "../setup.py"),
        _member("vllm-1/copy.py", tarfile.LNKTYPE, "vllm-1/setup.py"),
    ]
    _unpack(tmp_path, loopback.make_sdist("1", FILES, links), dest)
    assert (dest / "docs" / "setup.py").readlink().as_posix() == "../setup.py"
    assert (dest / "copy.py").read_bytes() == FILES["setup.py"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([_member("/etc/evil")], "leads out"),
        ([_member("vllm-1/../../evil")], "leads out"),
        ([_member("../evil")], "leads out"),
        ([_member("vllm-1/..\\evil")], "leads out"),
        ([_member("other/evil")], "outside the one top folder"),
        ([_member("evil")], "outside the one top folder"),
        ([_member("vllm-1/.git/hooks/post-commit")], "repository's own data"),
        ([_member("vllm-1/.GIT/config")], "repository's own data"),
        ([_member("vllm-1/l", tarfile.SYMTYPE, "../evil")], "link that leads out"),
        ([_member("vllm-1/l", tarfile.SYMTYPE, "/etc/passwd")], "link that leads out"),
        ([_member("vllm-1/l", tarfile.SYMTYPE, "a/../../evil")], "link that leads out"),
        ([_member("vllm-1/l", tarfile.LNKTYPE, "evil")], "link that leads out"),
        (
            [
                _member("vllm-1/l", tarfile.SYMTYPE, "vllm"),
                _member("vllm-1/l/evil"),
            ],
            "goes through a link",
        ),
        (
            [
                _member("vllm-1/l", tarfile.SYMTYPE, "vllm"),
                _member("vllm-1/l"),
            ],
            "goes through a link",
        ),
        ([_member("vllm-1/d", tarfile.CHRTYPE)], "neither file, folder nor link"),
        ([_member("vllm-1/p", tarfile.FIFOTYPE)], "neither file, folder nor link"),
    ],
)
def test_members_that_are_refused(
    tmp_path: Path, dest: Path, members: list[tarfile.TarInfo], message: str
) -> None:
    with pytest.raises(FetchError, match=message) as caught:
        _unpack(tmp_path, loopback.make_sdist("1", FILES, members), dest)
    assert members[-1].name in caught.value.message
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "dest"}


@pytest.mark.parametrize("name", ["/evil", "../evil", "vllm/../../evil", ".git/config"])
def test_members_of_wheels_that_are_refused(
    tmp_path: Path, dest: Path, name: str
) -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(FetchError, match=name):
        _unpack(tmp_path, raw.getvalue(), dest)
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "dest"}


@pytest.mark.parametrize("keep", [10, 100, 1500])
def test_a_damaged_archive_is_an_error(tmp_path: Path, dest: Path, keep: int) -> None:
    sdist = loopback.make_sdist("1", {"a.py": os.urandom(2000)})
    with pytest.raises(FetchError, match="damaged"):
        _unpack(tmp_path, sdist[:keep], dest)


def test_what_cannot_be_written_is_an_error(tmp_path: Path, dest: Path) -> None:
    (dest / "vllm").touch()
    with pytest.raises(FetchError, match="cannot unpack") as caught:
        _unpack(tmp_path, loopback.make_sdist("1", FILES), dest)
    assert caught.value.where == str(dest / "vllm")
