"""Verdicts in the cache, seen through the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import loopback
from tiny import AFTER, ANOTHER_WAY, BEFORE, CONFLICT, PATCH, add_release, write_series
from vllm_graft.matrix import run_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopback import Server
    from vllm_graft.series import Series


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with loopback.serving() as running:
        loopback.only_this_index(monkeypatch, running.url, tmp_path / "cache")
        yield running


@pytest.fixture
def series(tmp_path: Path) -> list[Series]:
    return [write_series(tmp_path)]


def test_a_second_matrix_needs_no_network_and_no_evaluation(
    server: Server, series: list[Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    for minor, source in enumerate([BEFORE, AFTER, ANOTHER_WAY, CONFLICT], 12):
        add_release(server, f"0.{minor}.0", source)
    first = run_matrix(series)
    server.log.clear()

    def fail(*_: object) -> None:
        raise AssertionError("evaluated again")

    monkeypatch.setattr("vllm_graft.verdicts.status", fail)
    second = run_matrix(series)
    assert second.rows == first.rows
    assert server.log == []


@pytest.mark.parametrize("damage", [b"", b"x", b"applied", b"\xff"])
def test_a_damaged_verdict_in_the_cache_is_found_anew(
    server: Server, series: list[Series], tmp_path: Path, damage: bytes
) -> None:
    add_release(server, "0.12.0", BEFORE)
    first = run_matrix(series)
    (stored,) = (tmp_path / "cache").rglob("status-*")
    data = stored.read_bytes()
    stored.write_bytes(data.replace(b"applies", damage) if damage else b"")
    assert run_matrix(series).rows == first.rows


def test_a_changed_patch_is_judged_anew(
    server: Server, series: list[Series], tmp_path: Path
) -> None:
    add_release(server, "0.12.0", BEFORE)
    run_matrix(series)
    patch = PATCH.replace("return one\n", "return won\n", 1)
    changed = [write_series(tmp_path, patch)]
    (row,) = run_matrix(changed).rows
    assert [str(verdict) for verdict in row.verdicts] == ["conflict"]


def test_changed_code_of_the_tool_judges_anew(
    server: Server, series: list[Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_release(server, "0.12.0", BEFORE)
    run_matrix(series)
    judged: list[object] = []
    monkeypatch.setattr("vllm_graft.verdicts._package", lambda: "other code")
    monkeypatch.setattr("vllm_graft.verdicts.status", lambda *a: judged.append(a))
    with pytest.raises(AttributeError):  # there is no status to store
        run_matrix(series)
    assert len(judged) == 1
