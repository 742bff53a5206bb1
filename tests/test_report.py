from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest

from vllm_graft import (
    HunkResult,
    Outcome,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
)
from vllm_graft.lint import Problem
from vllm_graft.report import (
    export_lines,
    outcome_lines,
    outcome_notes,
    problem_lines,
    status_lines,
)


def patch(
    verdict: Verdict,
    *hunks: HunkResult,
    reason: str = "",
    targets: tuple[str, ...] = ("a.py",),
) -> PatchResult:
    return PatchResult("1.spatch", "Do", targets, verdict, reason, hunks)


def status(*patches: PatchResult, version: str | None = "1.2") -> TreeStatus:
    return TreeStatus("tree", version, (SeriesResult("mini", patches),))


def shown(*patches: PatchResult, reverse: bool = False) -> list[str]:
    """The lines of a status below the series' own."""
    return list(status_lines(status(*patches), reverse=reverse))[3:]


def test_head_of_a_status() -> None:
    lines = list(status_lines(status(patch(Verdict.APPLIES))))
    assert lines[:3] == ["tree (vLLM 1.2)", "", "mini: applies"]


def test_head_without_a_version() -> None:
    lines = list(status_lines(status(patch(Verdict.APPLIES), version=None)))
    assert lines[0] == "tree"


def test_a_verdict_a_patch_with_its_places() -> None:
    hunk = HunkResult("A.f, A.g", Verdict.APPLIES, (3, 14))
    assert shown(patch(Verdict.APPLIES, hunk)) == [
        "  applies     1.spatch",
        "              a.py:3,14: A.f, A.g",
    ]


def test_places_in_one_of_several_files() -> None:
    hunk = HunkResult("A.f", Verdict.APPLIES, (3,))
    both = patch(Verdict.APPLIES, hunk, targets=("a.py", "b.py"))
    assert shown(both)[1:] == ["              line 3: A.f"]


def test_a_hunk_that_says_nothing_is_left_out() -> None:
    hunk = HunkResult("A.f", Verdict.APPLIES)
    assert shown(patch(Verdict.APPLIES, hunk)) == ["  applies     1.spatch"]


def test_reasons_stand_below() -> None:
    hunk = HunkResult("A.f", Verdict.CONFLICT, (), "line 4 does not match")
    assert shown(patch(Verdict.CONFLICT, hunk, reason="post-condition")) == [
        "  conflict    1.spatch",
        "              post-condition",
        "              a.py: A.f",
        "                line 4 does not match",
    ]


def test_a_reason_is_said_once() -> None:
    hunks = [HunkResult(path, Verdict.ABSENT, (), "no tests/") for path in ("a", "b")]
    assert shown(patch(Verdict.ABSENT, *hunks, reason="no tests/")) == [
        "  absent      1.spatch",
        "              no tests/",
    ]


def test_a_hunk_whose_verdict_is_not_the_patch_s() -> None:
    absent = HunkResult("A.f", Verdict.ABSENT, (), "guard", optional=True)
    applied = HunkResult("A.g", Verdict.APPLIED, (7,))
    assert shown(patch(Verdict.PARTIAL, absent, applied)) == [
        "  partial     1.spatch",
        "              a.py: A.f: absent (optional)",
        "                guard",
        "              a.py:7: A.g: applied",
    ]


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.APPLIES, "reverts"),
        (Verdict.APPLIED, "not there"),
        (Verdict.PARTIAL, "half there"),
        (Verdict.CONFLICT, "conflict"),
    ],
)
def test_words_on_the_way_back(verdict: Verdict, word: str) -> None:
    assert shown(patch(verdict), reverse=True) == [f"  {word:<12}1.spatch"]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert shown(patch(Verdict.CONFLICT)) == ["  \x1b[31mconflict  \x1b[0m  1.spatch"]


def test_no_colours_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert shown(patch(Verdict.CONFLICT)) == ["  conflict    1.spatch"]


def test_every_verdict_has_a_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert all("\x1b[" in shown(patch(verdict))[0] for verdict in Verdict)


def test_what_was_done() -> None:
    outcome = Outcome(status(patch(Verdict.APPLIES)), ("a.py",), ("abc",))
    assert list(outcome_lines(outcome, reverse=False)) == [
        "tree (vLLM 1.2)",
        "  changed  a.py",
        "  commit   abc",
    ]


@pytest.mark.parametrize(("reverse", "word"), [(False, "applied"), (True, "not there")])
def test_nothing_to_do(reverse: bool, word: str) -> None:
    outcome = Outcome(status(patch(Verdict.APPLIED)), ())
    lines = list(outcome_lines(outcome, reverse=reverse))
    assert lines[1:] == [f"  nothing to do: mini is {word}"]


def test_notes() -> None:
    absent = patch(Verdict.ABSENT, reason="no tests/")
    outcome = Outcome(status(absent), (), inexact=("2.spatch", "1.spatch"))
    left_out, guessed = outcome_notes(outcome)
    assert left_out == "1.spatch left out: no tests/"
    assert guessed.startswith("the code is as 2.spatch, 1.spatch has it")


def test_no_notes() -> None:
    assert outcome_notes(Outcome(status(patch(Verdict.APPLIES)), ("a.py",))) == []


def test_mail() -> None:
    lines = list(export_lines(Path("out"), ["out/1.patch"]))
    assert lines == [
        "out/1.patch",
        "apply it with: git am --keep-non-patch out/*.patch",
    ]
    assert list(export_lines(Path("out"), [])) == ["nothing to export"]


def test_problems() -> None:
    problems = [Problem("a:1", "wrong", "right it"), Problem("b", "odd", "")]
    assert list(problem_lines(problems)) == ["a:1: wrong", "  hint: right it", "b: odd"]
    assert list(problem_lines([])) == ["no problems"]
