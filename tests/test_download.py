"""Downloads that fail, seen through `fetch`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import loopback
from vllm_graft.errors import FetchError
from vllm_graft.index.client import Index
from vllm_graft.index.fetch import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopback import Server

#: Incompressible, so that it arrives in many pieces.
FILES = {"vllm/data.bin": random.Random(0).randbytes(3_000_000)}
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


def _downloads(tmp_path: Path) -> list[Path]:
    return [p for p in (tmp_path / "cache" / "downloads").rglob("*") if p.is_file()]


def _nothing_at(dest: Path) -> bool:
    """Neither the destination nor anything half made beside it."""
    return not dest.parent.exists() or not list(dest.parent.iterdir())


def test_progress_is_told_of_every_byte(server: Server, dest: Path) -> None:
    told: list[tuple[int, int | None]] = []
    fetch("0.9.0", dest, progress=lambda done, total: told.append((done, total)))
    size = len(server.files[SDIST].content)
    assert told[-1] == (size, size)
    assert len(told) > 10
    assert told == sorted(told)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_network_that_fails_half_way_is_resumed_or_begun_anew(
    server: Server, dest: Path, ranges: bool
) -> None:
    server.ranges = ranges
    server.faults[SDIST] = [loopback.HALF, loopback.HALF]
    fetch("0.9.0", dest)
    assert (dest / "vllm" / "data.bin").read_bytes() == FILES["vllm/data.bin"]
    asked = [range_ for _, name, range_ in server.log if name == SDIST]
    assert asked[0] == ""
    assert all(range_.startswith("bytes=") for range_ in asked[1:])


def test_a_network_that_stays_away_leaves_nothing_and_the_next_try_goes_on(
    server: Server, dest: Path, tmp_path: Path
) -> None:
    server.faults[SDIST] = [loopback.HALF] + [loopback.BUSY] * 9
    with pytest.raises(FetchError, match=rf"cannot download {SDIST}: .*503"):
        fetch("0.9.0", dest)
    assert _nothing_at(dest)
    (partial,) = _downloads(tmp_path)
    assert partial.name == SDIST + ".part"
    kept = partial.stat().st_size
    assert 0 < kept <= len(server.files[SDIST].content) // 2
    server.faults.clear()
    server.log.clear()
    fetch("0.9.0", dest)
    ((_, _, asked),) = server.log
    assert asked == f"bytes={kept}-"
    assert [path.name for path in _downloads(tmp_path)] == [SDIST]


def test_a_silent_network_is_given_up(
    server: Server, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index() as index:
        index.releases()  # stored: what follows hangs on the file alone
    monkeypatch.setenv("PIP_TIMEOUT", "0.2")
    monkeypatch.setenv("PIP_RETRIES", "1")
    server.faults[SDIST] = [loopback.HANG] * 9
    with pytest.raises(FetchError, match="stopped answering"):
        fetch("0.9.0", dest)
    assert server.asked(SDIST) <= 2
    assert _nothing_at(dest)


def test_a_file_that_does_not_match_the_index_is_refused(
    server: Server, dest: Path, tmp_path: Path
) -> None:
    right = server.files[SDIST].sha256
    server.add(SDIST, server.files[SDIST].content, claim="ab" * 32)
    with pytest.raises(FetchError, match="does not match") as caught:
        fetch("0.9.0", dest)
    assert str(right) in caught.value.message
    assert "ab" * 32 in caught.value.message
    assert _nothing_at(dest)
    assert all(path.stat().st_size == 0 for path in _downloads(tmp_path))


def test_a_file_without_a_digest_is_refused(server: Server, dest: Path) -> None:
    server.add(SDIST, server.files[SDIST].content, claim=None)
    with pytest.raises(FetchError, match="states no SHA-256"):
        fetch("0.9.0", dest)
    assert server.asked(SDIST) == 0
    assert _nothing_at(dest)


@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_download_in_the_cache_is_fetched_again(
    server: Server, dest: Path, tmp_path: Path, cut: bool
) -> None:
    first = fetch("0.9.0", dest)
    (stored,) = _downloads(tmp_path)
    content = stored.read_bytes()
    stored.write_bytes(content[:-9] if cut else b"X" + content[1:])
    assert fetch("0.9.0", dest.with_name("again")).commit == first.commit
    assert server.asked(SDIST) == 2
    assert stored.read_bytes() == content


def test_a_damaged_partial_download_is_begun_anew(
    server: Server, dest: Path, tmp_path: Path
) -> None:
    server.faults[SDIST] = [loopback.HALF] + [loopback.BUSY] * 9
    with pytest.raises(FetchError):
        fetch("0.9.0", dest)
    (partial,) = _downloads(tmp_path)
    partial.write_bytes(b"X" + partial.read_bytes()[1:])
    server.faults.clear()
    fetch("0.9.0", dest)
    assert [path.name for path in _downloads(tmp_path)] == [SDIST]


def test_a_partial_download_longer_than_the_file_is_begun_anew(
    server: Server, dest: Path, tmp_path: Path
) -> None:
    server.faults[SDIST] = [loopback.BUSY] * 9
    with pytest.raises(FetchError):
        fetch("0.9.0", dest)
    (partial,) = _downloads(tmp_path)
    partial.write_bytes(bytes(len(server.files[SDIST].content) + 1))
    server.faults.clear()
    fetch("0.9.0", dest)
