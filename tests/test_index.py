from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

import loopback
from vllm_graft.errors import FetchError
from vllm_graft.index import client as index_module
from vllm_graft.index.client import Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopback import Server

FILES = {"vllm/__init__.py": b"", "vllm/a.py": b"a = 1\n"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with loopback.serving() as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        yield running


def _versions(*, refresh: bool = False) -> list[str]:
    with Index(refresh=refresh) as index:
        return [release.version for release in index.releases()]


def _make_list_older(tmp_path: Path, age: timedelta) -> None:
    (stored,) = (tmp_path / "cache" / "index").iterdir()
    data = json.loads(stored.read_text())
    data["listed_at"] = (datetime.now(timezone.utc) - age).isoformat()
    stored.write_text(json.dumps(data))


@pytest.mark.parametrize("as_json", [True, False])
def test_final_releases_are_listed_by_version(server: Server, as_json: bool) -> None:
    server.as_json = as_json
    for version in ("0.9.0", "0.10.0", "0.9.0.post1", "0.11.0rc1", "0.10.0+local"):
        server.add_release(version, FILES)
    server.add("vllm-0.8.0.tar.gz", b"", yanked=True)
    server.add("vllm-0.10.1.exe", b"")
    assert _versions() == ["0.9.0", "0.9.0.post1", "0.10.0"]


def test_a_named_release_need_not_be_final(server: Server) -> None:
    server.add_release("0.11.0rc1", FILES)
    with Index() as index:
        assert index.release("v0.11rc1").version == "0.11.0rc1"


def test_an_unknown_release_names_those_near_it(server: Server) -> None:
    for version in ("0.9.0", "0.10.0", "0.12.0", "0.13.0", "0.14.0"):
        server.add_release(version, FILES)
    with Index() as index, pytest.raises(FetchError, match=r"no vLLM 0\.11") as caught:
        index.release("0.11")
    assert caught.value.hint == "Releases near it: 0.9.0, 0.10.0, 0.12.0, 0.13.0."


def test_what_is_no_version_is_said_to_be_none(server: Server) -> None:
    with Index() as index, pytest.raises(FetchError, match=r"not a version.*'main'"):
        index.release("main")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (
            [
                loopback.wheel_name("0.9.0", arch="aarch64"),
                loopback.wheel_name("0.9.0", build="-2"),
                loopback.wheel_name("0.9.0"),
            ],
            loopback.wheel_name("0.9.0"),
        ),
        (
            [loopback.wheel_name("0.9.0", "-10"), loopback.wheel_name("0.9.0", "-2")],
            loopback.wheel_name("0.9.0", "-2"),
        ),
        (
            [loopback.wheel_name("0.9.0", arch="aarch64")],
            loopback.wheel_name("0.9.0", arch="aarch64"),
        ),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_the_choice_of_a_wheel(
    server: Server, names: list[str], chosen: str, backwards: bool
) -> None:
    for name in sorted(names, reverse=backwards):
        server.add(name, b"")
    with Index() as index:
        wheel = index.release("0.9.0").wheel
    assert wheel is not None
    assert wheel.filename == chosen


def test_a_yanked_wheel_is_the_last_choice(server: Server) -> None:
    server.add(loopback.wheel_name("0.9.0"), b"", yanked=True)
    server.add(loopback.wheel_name("0.9.0", arch="aarch64"), b"")
    with Index() as index:
        wheel = index.release("0.9.0").wheel
    assert wheel is not None
    assert "aarch64" in wheel.filename


def test_a_file_name_that_is_a_path_is_no_release_file(server: Server) -> None:
    server.add("../vllm-0.9.0.tar.gz", b"")
    server.add_release("0.10.0", FILES)
    assert _versions() == ["0.10.0"]


def test_a_fresh_list_needs_no_network(server: Server) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    assert _versions() == ["0.9.0"]
    assert server.asked("vllm") == 1


@pytest.mark.parametrize("old", [True, False])
def test_an_old_list_and_a_refresh_ask_the_index(
    server: Server, tmp_path: Path, old: bool
) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    server.add_release("0.10.0", FILES)
    if old:
        _make_list_older(tmp_path, index_module.MAX_AGE + timedelta(seconds=1))
    assert _versions(refresh=not old) == ["0.9.0", "0.10.0"]


def test_a_release_newer_than_the_stored_list_is_found(server: Server) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    server.add_release("0.10.0", FILES)
    with Index() as index:
        assert index.release("0.10.0").version == "0.10.0"


def test_a_stored_list_serves_when_the_index_does_not_answer(
    server: Server, tmp_path: Path
) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    _make_list_older(tmp_path, timedelta(days=3))
    server.faults["vllm"] = [loopback.BUSY] * 9
    with Index() as index:
        assert [release.version for release in index.releases()] == ["0.9.0"]
        (note,) = index.notes
    assert "503" in note
    assert "release list of" in note


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 0}'])
def test_a_damaged_list_is_read_again(
    server: Server, tmp_path: Path, content: bytes
) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    (stored,) = (tmp_path / "cache" / "index").iterdir()
    stored.write_bytes(content)
    assert _versions() == ["0.9.0"]


def test_indexes_do_not_share_a_list(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_release("0.9.0", FILES)
    _versions()
    with loopback.serving() as other:
        other.add_release("0.10.0", FILES)
        monkeypatch.setenv("PIP_INDEX_URL", other.url)
        assert _versions() == ["0.10.0"]


def test_extra_indexes_add_releases_and_missing_folders_are_ignored(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_release("0.9.0", FILES)
    local = tmp_path / "local"
    (local / "simple" / "vllm").mkdir(parents=True)
    sdist = loopback.make_sdist("0.9.1", FILES)
    (local / "vllm-0.9.1.tar.gz").write_bytes(sdist)
    served = {"vllm-0.9.1.tar.gz": loopback.Served(sdist, None)}
    page = loopback.project_html(served, "../..")
    (local / "simple" / "vllm" / "index.html").write_bytes(page)
    extra = f"file://{tmp_path}/nowhere file://{local}/simple"
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", extra)
    with Index() as index:
        assert [r.version for r in index.releases()] == ["0.9.0", "0.9.1"]
        assert index.notes == []
        newer = index.release("0.9.1").sdist
        assert newer is not None
        with index.session.get(newer.url) as response:
            assert response.content == sdist


def test_an_extra_index_that_fails_is_noted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_release("0.9.0", FILES)
    url = f"http://127.0.0.1:{loopback.free_port()}/simple"
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", url)
    with Index() as index:
        assert [release.version for release in index.releases()] == ["0.9.0"]
        (note,) = index.notes
    assert url in note


def test_a_cache_that_cannot_be_written_is_an_error(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_release("0.9.0", FILES)
    (tmp_path / "file").touch()
    monkeypatch.setenv("VLLM_GRAFT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(FetchError, match="cache cannot be written") as caught:
        _versions()
    assert "VLLM_GRAFT_CACHE" in str(caught.value.hint)


@pytest.mark.network
def test_the_real_index_has_the_releases_of_the_series() -> None:
    with Index() as index:
        listed = {release.version: release for release in index.releases()}
    assert {"0.11.2", "0.12.0", "0.15.1", "0.23.0", "0.33.0"} <= listed.keys()
    assert listed["0.15.1"].sdist is None
    sdist = listed["0.23.0"].sdist
    assert sdist is not None
    assert str(sdist.sha256).startswith("760269db3d9611e1")
