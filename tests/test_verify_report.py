"""Tests of what verify prints and writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from miniature import World
from running import Run
from vllm_graft.verify import command as verify_command
from vllm_graft.verify import report as verify_report
from vllm_graft.verify.page import render_html
from vllm_graft.verify.results import FaultPair, Property, Timing, Verification
from vllm_graft.verify.verification import Options

GOOD = Property("results", "generate-uni-sync: greedy", True, "", 1.25)
BAD = Property("results", "x: y", False, "y[0]: base <1>, grafted \x1b[31m2 & 3", 2)
UNKNOWN = Property("asynchrony", "x, base", False, "base: ended with 1", ran=False)
RECORD = {
    "fault": "get-output-raises",
    "scheduling": "async",
    "executor": "mp",
    "caller": "TimeoutError: RPC call to sample_tokens timed out.",
    "seconds": 5.01,
    "goes_on": True,
    "next_call": "answered",
    "left_processes": 0,
    "left_segments": 1,
    "exit_processes": 0,
    "exit_segments": 0,
}
BETTER = {**RECORD, "caller": "RuntimeError: <b>", "seconds": 0.0, "left_segments": 0}
FAULTS = [
    FaultPair("get-output-raises", "async", "mp", "better", RECORD, BETTER),
    FaultPair("get-output-raises", "sync", "mp", "same", BETTER, BETTER),
]
TIMINGS = [
    Timing("generate-uni-sync", "start", 2.5, 3.0),
    Timing("generate-uni-sync", "greedy", None, 0.5),
]


def verification(*properties: Property, **more: Any) -> Verification:
    plain = Verification(
        tree="/src/vllm",
        version="0.23.0",
        series=["mrv2-async-output"],
        carried=False,
        device="cpu",
        python="/env/bin/python",
        quick=True,
        made=datetime(2026, 6, 14, 12, tzinfo=timezone.utc),
        seconds=100.0,
        properties=list(properties),
        faults=FAULTS,
        timings=TIMINGS,
    )
    return plain._replace(**more)


def test_no_property_is_no_success() -> None:
    assert not verification().holds


def test_every_property_has_a_line() -> None:
    lines = list(verify_report.report_lines(verification(GOOD, BAD, UNKNOWN)))
    assert "  holds  generate-uni-sync: greedy" in lines
    assert any(line.startswith("  fails  x: y: y[0]: base <1>") for line in lines)
    assert "  error  x, base: base: ended with 1" in lines
    assert lines[-1] == "2 of 3 properties do not hold (in 100 s, the quick part)"


def test_junit_counts_failures_and_errors_apart() -> None:
    root = ET.fromstring(verify_report.junit(verification(GOOD, BAD, UNKNOWN)))
    counts = {key: root.get(key) for key in ("tests", "failures", "errors", "time")}
    wanted = {"tests": "3", "failures": "1", "errors": "1", "time": "100.00"}
    assert counts == wanted
    assert [suite.get("name") for suite in root] == ["results", "asynchrony"]
    good, bad = root[0]
    assert (good.get("name"), good.get("time"), len(good)) == (GOOD.name, "1.25", 0)
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("message") == "y[0]: base <1>, grafted \ufffd[31m2 & 3"
    assert root[1][0].find("error") is not None


class Page(HTMLParser):
    """Checks that elements are nested rightly, and gathers what a page refers to."""

    VOID = ("meta", "br", "wbr", "line", "rect", "i")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.outside: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.classes.update((given.get("class") or "").split())
        self.outside += [
            v for k, v in attrs if k in {"src", "href"} and v and v[0] != "#"
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    page = Page(render_html(verification(GOOD, BAD, UNKNOWN)))
    assert page.open == []
    assert page.outside == []
    text = "".join(page.text)
    assert "2 of 3 properties do not hold." in text
    assert "y[0]: base <1>" in text
    assert "RuntimeError: <b>" in text
    assert "left after shutdown: 1 segment" in text
    assert {"svg", "script"} & page.classes == set()


def test_the_page_says_where_grafted_differs() -> None:
    html = render_html(verification(GOOD))
    assert html.count("grafted: better") == 1
    assert 'aria-label="base 5.01 s, grafted 0.00 s"' in html
    assert 'aria-label="base not run, grafted 0.50 s"' in html


def test_the_page_does_without_faults_and_timings() -> None:
    html = render_html(verification(GOOD, faults=[], timings=[]))
    assert 'id="faults"' not in html
    assert 'id="latency"' not in html


@pytest.fixture
def verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Runs the command; what it would find out is given."""
    World(tmp_path, monkeypatch)

    def verify(done: Verification, *arguments: object) -> Run:
        asked: list[Options] = []

        def found(options: Options, _: object) -> Verification:
            asked.append(options)
            return done

        monkeypatch.setattr(verify_command, "verify", found)
        run = Run(capsys, "verify", "--series", "mrv2-async-output", *arguments)
        assert [one.series for one in asked] in ([], [["mrv2-async-output"]])
        return run

    return verify


@pytest.mark.parametrize(("one", "code"), [(GOOD, 0), (BAD, 1), (UNKNOWN, 1)])
def test_the_exit_code_says_whether_all_hold(
    verify: Callable[..., Run], one: Property, code: int
) -> None:
    assert verify(verification(one)).code == code


def test_json_fits_its_schema(verify: Callable[..., Run]) -> None:
    done = verification(GOOD, BAD, UNKNOWN, notes=["the logs are in /tmp/x"])
    record = verify(done, "--json").json("verify")
    assert record["holds"] is False
    assert [one["verdict"] for one in record["properties"]] == [
        "holds",
        "fails",
        "error",
    ]


def test_reports_are_written_whether_it_holds_or_not(
    verify: Callable[..., Run], tmp_path: Path
) -> None:
    html, xml = tmp_path / "a.html", tmp_path / "a.xml"
    run = verify(verification(BAD), "--html", html, "--junit", xml)
    assert run.code == 1
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert ET.parse(xml).getroot().get("failures") == "1"
    assert f"wrote {html}" in run.err


@pytest.mark.parametrize("name", ["no/such/folder/a.html", "."])
def test_a_report_that_cannot_be_written_is_known_at_once(
    verify: Callable[..., Run], tmp_path: Path, name: str
) -> None:
    run = verify(verification(GOOD), "--html", tmp_path / name)
    assert run.code == 2
    assert "cannot be written" in run.err
    assert "holds" not in run.out
