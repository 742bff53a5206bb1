from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

import loopback
from vllm_graft.errors import FetchError
from vllm_graft.index.client import Index
from vllm_graft.index.wheel import read_wheel_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loopback import Server

#: Incompressible, and larger than what is read of a wheel at first.
BALLAST = random.Random(0).randbytes(900_000)
FILES = {
    "vllm/a.py": b"a = 1\n" * 1000,
    "vllm/b.py": b"b = '\xe9'\r\n",
    "vllm/_C.abi3.so": BALLAST,
}
WHEEL = loopback.wheel_name("0.9.0")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with loopback.serving() as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        running.add(WHEEL, loopback.make_wheel(FILES))
        yield running


def _read(
    paths: Sequence[str] = ("vllm/a.py", "vllm/b.py"), notes: list[str] | None = None
) -> dict[str, bytes | None]:
    with Index() as index:
        found = read_wheel_files(index, index.release("0.9.0"), paths)
        if notes is not None:
            notes += index.notes
        return found


EXPECTED = {path: FILES[path] for path in ("vllm/a.py", "vllm/b.py")}


def test_members_are_read_by_ranges_alone(server: Server) -> None:
    assert _read() == EXPECTED
    assert all(asked for _, name, asked in server.log if name == WHEEL)


def test_a_member_that_is_not_there_is_none(server: Server) -> None:
    assert _read(["vllm/c.py", "vllm/b.py"]) == {
        "vllm/c.py": None,
        "vllm/b.py": FILES["vllm/b.py"],
    }


def test_what_was_read_is_not_asked_for_again(server: Server) -> None:
    paths = ["vllm/a.py", "vllm/c.py"]
    first = _read(paths)
    server.log.clear()
    assert _read(paths) == first
    assert server.log == []


def test_only_what_is_new_is_asked_for(server: Server) -> None:
    _read(["vllm/a.py"])
    server.log.clear()
    assert _read() == EXPECTED
    assert server.asked(WHEEL) == 2  # the directory, and b.py


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "manifest"])
def test_a_damaged_cache_is_read_again(
    server: Server, tmp_path: Path, damage: str
) -> None:
    _read()
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    stored = json.loads(manifest.read_text())["members"]["vllm/a.py"]
    content = manifest.with_name(stored["sha256"])
    if damage == "flipped":
        content.write_bytes(b"A" + content.read_bytes()[1:])
    elif damage == "cut":
        content.write_bytes(content.read_bytes()[:-1])
    elif damage == "gone":
        content.unlink()
    else:
        manifest.write_text('{"schema": 1, "wheel": 3}')
    server.log.clear()
    assert _read() == EXPECTED
    assert server.asked(WHEEL) >= 2
    server.log.clear()
    assert _read() == EXPECTED
    assert server.asked(WHEEL) == 0


def test_another_wheel_of_the_same_version_has_a_cache_of_its_own(
    server: Server, tmp_path: Path
) -> None:
    _read(["vllm/b.py"])
    server.add(WHEEL, loopback.make_wheel({"vllm/b.py": b"b = 2\n"}))
    (stored,) = (tmp_path / "cache" / "index").iterdir()
    stored.unlink()
    assert _read(["vllm/b.py"]) == {"vllm/b.py": b"b = 2\n"}


def test_a_server_without_suffix_ranges_is_asked_by_position(server: Server) -> None:
    server.suffix_ranges = False
    notes: list[str] = []
    assert _read(notes=notes) == EXPECTED
    assert notes == []


def test_without_ranges_the_whole_wheel_is_read_verified_and_not_kept(
    server: Server, tmp_path: Path
) -> None:
    server.ranges = False
    notes: list[str] = []
    assert _read(notes=notes) == EXPECTED
    (note,) = notes
    assert WHEEL in note
    assert not list((tmp_path / "cache").rglob("*.whl*"))


def test_without_ranges_a_wrong_wheel_is_refused(server: Server) -> None:
    server.ranges = False
    server.add(WHEEL, loopback.make_wheel(FILES), claim="ab" * 32)
    with pytest.raises(FetchError, match="does not match the package index"):
        _read()


@pytest.mark.parametrize("fault", [loopback.BUSY, loopback.HALF])
@pytest.mark.parametrize("first", [0, 1])
def test_a_passing_failure_is_survived(server: Server, fault: str, first: int) -> None:
    server.faults[WHEEL] = [*[""] * first, fault]
    assert _read() == EXPECTED


def test_a_member_that_fails_its_crc_is_refused(server: Server) -> None:
    wheel = bytearray(loopback.make_wheel({"vllm/a.py": b"", "vllm/b.py": BALLAST}))
    wheel[450_000] ^= 1
    server.add(WHEEL, bytes(wheel))
    with pytest.raises(FetchError, match=f"cannot read {WHEEL}"):
        _read(["vllm/b.py"])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (loopback.MISSING, "404 Not Found"),
        (loopback.FORBIDDEN, "403 Forbidden"),
        (loopback.BUSY, "503 Service Unavailable"),
        (loopback.HALF, "connection to the index failed or broke off"),
    ],
)
def test_a_failure_names_the_wheel_and_the_reason(
    server: Server, fault: str, message: str
) -> None:
    server.faults[WHEEL] = [fault] * 9
    with pytest.raises(FetchError, match=f"cannot read {WHEEL}: .*{message}"):
        _read()


def test_what_is_no_wheel_is_an_error(server: Server) -> None:
    server.add(WHEEL, b"not a zip file" * 99)
    with pytest.raises(FetchError, match=f"cannot read {WHEEL}: BadZipFile"):
        _read()


def test_a_release_without_a_wheel_is_an_error(server: Server) -> None:
    server.add("vllm-0.8.0.tar.gz", b"")
    with Index() as index, pytest.raises(FetchError, match=r"0\.8\.0 has no wheel"):
        read_wheel_files(index, index.release("0.8.0"), ["vllm/a.py"])


def test_a_wheel_without_a_digest_is_cached_by_its_address(server: Server) -> None:
    server.add(WHEEL, loopback.make_wheel(FILES), claim=None)
    assert _read() == EXPECTED
    server.log.clear()
    assert _read() == EXPECTED
    assert server.asked(WHEEL) == 0


def test_a_local_index_is_read_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = loopback.make_wheel(FILES)
    (tmp_path / "simple" / "vllm").mkdir(parents=True)
    (tmp_path / "simple" / "vllm" / WHEEL).write_bytes(wheel)
    page = loopback.project_html({WHEEL: loopback.Served(wheel, None)}, ".")
    (tmp_path / "simple" / "vllm" / "index.html").write_bytes(page)
    url = (tmp_path / "simple").as_uri()
    loopback.only_this_index(monkeypatch, url, tmp_path / "cache")
    notes: list[str] = []
    assert _read(notes=notes) == EXPECTED
    assert notes == []
