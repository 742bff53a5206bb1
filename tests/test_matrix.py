from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

import loopback
from tiny import (
    AFTER,
    ANOTHER_WAY,
    BEFORE,
    CONFLICT,
    SYNTAX_ERROR,
    add_release,
    write_series,
)
from vllm_graft import load_series
from vllm_graft.errors import FetchError
from vllm_graft.index.client import Index
from vllm_graft.matrix.build import OLDEST, Matrix, run_matrix
from vllm_graft.results import Verdict

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


def _verdicts(matrix: Matrix) -> dict[str, list[str]]:
    return {row.version: [str(v) for v in row.verdicts] for row in matrix.rows}


def test_every_final_release_from_the_oldest_on_is_a_row(
    server: Server, series: list[Series]
) -> None:
    for version in ("0.9.0", "0.20.0", OLDEST, "0.13.0", "0.21.0rc1", "0.11.1"):
        add_release(server, version, BEFORE)
    matrix = run_matrix(series)
    assert [row.version for row in matrix.rows] == [OLDEST, "0.13.0", "0.20.0"]
    assert matrix.failed == ()


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        pytest.param(BEFORE, Verdict.APPLIES, id="before"),
        pytest.param(AFTER, Verdict.APPLIED, id="after"),
        pytest.param(ANOTHER_WAY, Verdict.SUPERSEDED, id="another-way"),
        pytest.param(CONFLICT, Verdict.CONFLICT, id="conflict"),
    ],
)
def test_a_row_has_the_verdict_of_status(
    server: Server, series: list[Series], source: bytes, verdict: Verdict
) -> None:
    add_release(server, "0.12.0", source)
    (row,) = run_matrix(series).rows
    assert row.verdicts == (verdict,)
    assert row.source == loopback.wheel_name("0.12.0")


def test_what_a_release_does_not_have_is_absent(
    server: Server, series: list[Series]
) -> None:
    wheel = loopback.make_wheel({"vllm/a.py": BEFORE})
    server.add(loopback.wheel_name("0.12.0"), wheel)
    (row,) = run_matrix(series).rows
    assert row.verdicts == (Verdict.ABSENT,)


def test_a_patch_that_only_adds_files_does_not_count(
    server: Server, series: list[Series]
) -> None:
    add_release(server, "0.12.0", BEFORE)
    matrix = run_matrix(series)
    (row,) = matrix.rows
    assert [patch.adds_only for patch in row.patches] == [False, True]
    assert matrix.counts() == {Verdict.APPLIES: 1}
    assert [str(run.verdict) for run in matrix.runs("two")] == ["applies"]


def test_named_releases_are_sorted_and_each_is_there_once(
    server: Server, series: list[Series]
) -> None:
    for version in ("0.9.0", "0.12.0", "0.13.0"):
        add_release(server, version, BEFORE)
    matrix = run_matrix(series, ["0.12", "v0.9.0", "0.12.0"])
    assert [row.version for row in matrix.rows] == ["0.9.0", "0.12.0"]


def test_a_release_that_cannot_be_read_does_not_stop_the_others(
    server: Server, series: list[Series]
) -> None:
    for version in ("0.12.0", "0.13.0", "0.14.0"):
        add_release(server, version, BEFORE)
    server.faults[loopback.wheel_name("0.13.0")] = [loopback.FORBIDDEN] * 9
    matrix = run_matrix(series)
    assert _verdicts(matrix) == {
        "0.12.0": ["applies"],
        "0.13.0": [],
        "0.14.0": ["applies"],
    }
    (failed,) = matrix.failed
    assert failed.version == "0.13.0"
    assert "403" in str(failed.error)


def test_a_release_that_does_not_exist_is_a_row_with_its_error(
    server: Server, series: list[Series]
) -> None:
    add_release(server, "0.12.0", BEFORE)
    server.add("vllm-0.13.0.tar.gz", b"")
    matrix = run_matrix(series, ["0.12.0", "0.13.0", "0.99.0"])
    errors = {row.version: str(row.error) for row in matrix.failed}
    assert "has no wheel" in errors["0.13.0"]
    assert "no vLLM 0.99.0" in errors["0.99.0"]


def test_a_target_that_is_no_python_is_not_silent(
    server: Server, series: list[Series]
) -> None:
    add_release(server, "0.12.0", SYNTAX_ERROR)
    (row,) = run_matrix(series).rows
    assert row.error is not None or row.verdicts == (Verdict.CONFLICT,)


def test_what_is_no_version_is_refused_before_anything_is_read(
    server: Server, series: list[Series]
) -> None:
    add_release(server, "0.12.0", BEFORE)
    with pytest.raises(FetchError, match="not a version"):
        run_matrix(series, ["0.12.0", "main"])
    assert server.asked(loopback.wheel_name("0.12.0")) == 0


def test_no_index_is_one_error_and_not_one_for_each_release(
    server: Server, series: list[Series]
) -> None:
    server.faults["vllm"] = [loopback.FORBIDDEN] * 9
    with pytest.raises(FetchError, match="403"):
        run_matrix(series, ["0.12.0", "0.13.0"])


def test_runs_are_the_history_of_a_series(server: Server, series: list[Series]) -> None:
    history = [BEFORE, BEFORE, CONFLICT, AFTER, AFTER]
    for minor, source in enumerate(history, 12):
        add_release(server, f"0.{minor}.0", source)
    runs = run_matrix(series).runs("two")
    assert [(str(run.verdict), str(run)) for run in runs] == [
        ("applies", "0.12.0 to 0.13.0"),
        ("conflict", "0.14.0"),
        ("applied", "0.15.0 to 0.16.0"),
    ]


def test_progress_names_every_release(server: Server, series: list[Series]) -> None:
    told: list[tuple[int, int, str]] = []
    for version in ("0.12.0", "0.13.0"):
        add_release(server, version, BEFORE)
    run_matrix(series, on_progress=lambda *args: told.append(args))
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]
    assert {version for _, _, version in told} == {"0.12.0", "0.13.0"}


def test_releases_are_read_at_the_same_time(
    server: Server, series: list[Series], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=20)

    def read(*_: object) -> dict[str, bytes | None]:
        both.wait()
        return {"vllm/a.py": BEFORE, "vllm/b.py": b""}

    monkeypatch.setattr("vllm_graft.matrix.build.read_wheel_files", read)
    for version in ("0.12.0", "0.13.0"):
        add_release(server, version, BEFORE)
    assert run_matrix(series, jobs=2).counts() == {Verdict.APPLIES: 2}


def test_the_json_form(server: Server, series: list[Series]) -> None:
    add_release(server, "0.12.0", BEFORE)
    add_release(server, "0.13.0", BEFORE)
    server.faults[loopback.wheel_name("0.13.0")] = [loopback.MISSING] * 9
    data = json.loads(json.dumps(run_matrix(series).to_json()))
    assert list(data) == ["schema", "made", "index", "notes", "releases"]
    assert data["schema"] == 1
    assert data["index"]["urls"] == [server.url]
    good, bad = data["releases"]
    assert list(good) == ["version", "source", "series", "error"]
    assert good["error"] is None
    (one,) = good["series"]
    assert (one["name"], one["verdict"]) == ("two", "applies")
    assert one["patches"][0]["hunks"][0]["lines"] == [2]
    assert bad["series"] == []
    assert set(bad["error"]) == {"message", "hint"}


@pytest.mark.network
def test_the_real_series_on_all_real_releases() -> None:
    with Index() as index:
        releases = [release.version for release in index.releases()]
        matrix = run_matrix([load_series("mrv2-async-output")], index=index)
    assert [row.version for row in matrix.rows] == releases[releases.index(OLDEST) :]
    found = {row.version: set(map(str, row.verdicts)) for row in matrix.rows}
    upstream = releases.index("0.24.0")
    for place, version in enumerate(releases[releases.index(OLDEST) :]):
        where = place + releases.index(OLDEST)
        if version == OLDEST:
            assert found[version] == {"absent"}, version
        elif where < upstream:
            assert found[version] == {"applies"}, version
        else:
            assert found[version] <= {"applied", "superseded"}, version
