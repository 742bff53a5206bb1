from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import loopback
from vllm_graft.errors import FetchError, GitError
from vllm_graft.index import fetch as fetch_module
from vllm_graft.index.fetch import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopback import Server

FILES = {
    ".gitattributes": b"* text=auto\n*.bin filter=lfs\n",
    ".gitignore": b"*.log\nbuild/\n",
    "build/kept.txt": b"ignored upstream\n",
    "crlf.py": b"x = 1\r\n",
    "data.bin": b"\x00\xff\r\n",
    "tools/run.sh": b"#!/bin/sh\n",
    "vllm/__init__.py": b"",
}
SDIST = "vllm-0.9.0.tar.gz"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with loopback.serving() as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        running.add_release("0.9.0", FILES)
        yield running


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "work" / "vllm"


def _git(repository: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=repository, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _nothing_at(dest: Path) -> bool:
    """Neither the destination nor anything half made beside it."""
    return not dest.parent.exists() or not list(dest.parent.iterdir())


def test_a_release_becomes_a_repository_with_one_commit(
    server: Server, dest: Path
) -> None:
    fetched = fetch("0.9.0", dest)
    assert (fetched.path, fetched.kind, fetched.notes) == (dest, "sdist", ())
    assert _git(dest, "rev-list", "--all") == fetched.commit
    assert _git(dest, "symbolic-ref", "--short", "HEAD") == "main"
    assert _git(dest, "describe", "--tags") == "v0.9.0"
    assert _git(dest, "status", "--porcelain", "--ignored") == ""


def test_every_byte_of_every_file_is_committed(server: Server, dest: Path) -> None:
    fetch("0.9.0", dest)
    assert set(_git(dest, "ls-files").splitlines()) == set(FILES)
    for name, content in FILES.items():
        shown = subprocess.run(
            ["git", "show", f"HEAD:{name}"], cwd=dest, check=True, capture_output=True
        )
        assert shown.stdout == content, name
    assert _git(dest, "ls-files", "--stage", "tools/run.sh").startswith("100755")


def test_the_commit_is_the_same_whatever_the_machine_is_set_up_for(
    server: Server, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch("0.9.0", dest)
    plain = _git(dest, "config", "--local", "--list")
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    (home / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (home / "hooks" / "pre-commit").chmod(0o755)
    (home / ".gitignore").write_text("*.py\n")
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath={home}/hooks\nautocrlf=true\nexcludesFile={home}/.gitignore\n"
        "[commit]\ngpgSign=true\n[tag]\ngpgSign=true\n[user]\nname=Somebody\n"
        '[init]\ndefaultBranch=trunk\n[filter "lfs"]\nclean=false\nrequired=true\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.autocrlf'='true'")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    previous = os.umask(0o077)
    try:
        second = fetch("0.9.0", dest.with_name("again"))
    finally:
        os.umask(previous)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert second.commit == first.commit
    assert (second.path / "crlf.py").read_bytes() == FILES["crlf.py"]
    assert _git(second.path, "config", "--local", "--list") == plain
    author = _git(second.path, "log", "-1", "--format=%an %ae %cn %at %ct")
    newest = loopback.NEWEST
    assert author == (f"vllm-graft vllm-graft@localhost vllm-graft {newest} {newest}")


def test_a_second_fetch_needs_no_network(server: Server, dest: Path) -> None:
    first = fetch("0.9.0", dest)
    server.log.clear()
    second = fetch("0.9.0", dest.with_name("again"))
    assert server.log == []
    assert second.commit == first.commit


def test_the_default_destination_is_named_after_the_version(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fetched = fetch("0.9.0")
    assert fetched.path == tmp_path / "vllm-0.9.0"
    assert Path(fetched, "crlf.py").is_file()


def test_a_release_without_source_distribution_is_made_from_its_wheel(
    server: Server, dest: Path
) -> None:
    files = {"vllm/a.py": b"a = 1\n", "vllm/_C.abi3.so": b"\x7fELF"}
    server.add(loopback.wheel_name("0.8.0"), loopback.make_wheel(files))
    fetched = fetch("0.8.0", dest)
    assert fetched.kind == "wheel"
    (note,) = fetched.notes
    assert "no source distribution" in note
    assert _git(dest, "ls-files") == "vllm/a.py"
    assert (dest / "vllm" / "_C.abi3.so").read_bytes() == b"\x7fELF"
    assert _git(dest, "status", "--porcelain") == ""


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_destination_in_use_is_refused_before_anything_is_done(
    server: Server, dest: Path, kind: str
) -> None:
    dest.parent.mkdir()
    if kind == "file":
        dest.write_text("mine")
    elif kind == "folder":
        dest.mkdir()
        (dest / "mine").touch()
    else:
        dest.symlink_to("nowhere")
    with pytest.raises(FetchError, match="not an empty folder") as caught:
        fetch("0.9.0", dest)
    assert (caught.value.where, server.log) == (str(dest), [])


def test_an_empty_folder_will_do(server: Server, dest: Path) -> None:
    dest.mkdir(parents=True)
    fetch("0.9.0", dest)
    assert (dest / "crlf.py").is_file()


def test_an_archive_that_would_escape_leaves_nothing(
    server: Server, dest: Path
) -> None:
    evil = tarfile.TarInfo("vllm-0.9.0/../../evil")
    server.add(SDIST, loopback.make_sdist("0.9.0", FILES, [evil]))
    with pytest.raises(FetchError, match="leads out"):
        fetch("0.9.0", dest)
    assert _nothing_at(dest)


def test_git_that_fails_leaves_nothing(
    server: Server, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: str, **_: object) -> str:
        raise GitError("no git here")

    monkeypatch.setattr("vllm_graft.git.run", fail)
    with pytest.raises(GitError, match="no git here"):
        fetch("0.9.0", dest)
    assert _nothing_at(dest)


def test_an_interruption_leaves_nothing(
    server: Server, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_module, "unpack", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch("0.9.0", dest)
    assert _nothing_at(dest)


def test_a_release_with_neither_file_is_explained(server: Server, dest: Path) -> None:
    with pytest.raises(FetchError, match=r"no vLLM 9\.9"):
        fetch("9.9", dest)
    assert _nothing_at(dest)


def test_a_yanked_release_can_be_named_and_is_noted(server: Server, dest: Path) -> None:
    sdist = loopback.make_sdist("0.7.0", FILES)
    server.add("vllm-0.7.0.tar.gz", sdist, yanked=True)
    (note,) = fetch("0.7.0", dest).notes
    assert "yanked" in note


def test_a_destination_that_cannot_be_made_is_explained(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FetchError, match="cannot make the folder"):
        fetch("0.9.0", tmp_path / "file" / "vllm")
