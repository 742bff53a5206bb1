"""What pytest's report says of the tests that it ran."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET


class Outcomes(NamedTuple):
    """The names of the tests, and what pytest printed."""

    passed: set[str]
    failed: set[str]
    output: str


def read_outcomes(report: Path, output: str) -> Outcomes:
    """Reads a report; nothing may have been skipped."""
    assert report.exists(), f"pytest did not get as far as a report:\n{output}"
    passed: set[str] = set()
    failed: set[str] = set()
    for case in ET.parse(report).iter("testcase"):
        assert case.find("skipped") is None, case.get("name")
        bad = any(case.find(kind) is not None for kind in ("failure", "error"))
        (failed if bad else passed).add(case.get("name", ""))
    return Outcomes(passed, failed, output)


def matching(outcomes: Outcomes, patterns: list[str]) -> set[str]:
    """The tests that match, of those that ran; every pattern names some."""
    ran = outcomes.passed | outcomes.failed
    # In a pattern, brackets are those of the test's name.
    found = {
        pattern: {n for n in ran if fnmatchcase(n, pattern.replace("[", "[[]"))}
        for pattern in patterns
    }
    assert all(found.values()), found
    return set().union(*found.values())
