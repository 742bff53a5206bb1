"""An audit as text for a person, and as annotations for GitHub."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from typing import Final

from vllm_graft.audit.findings import Finding, Report

_WIDTH: Final = 88
_COLOURS: Final = {"error": "31", "warning": "33", "note": "36"}


def listing(report: Report) -> Iterator[str]:
    """The findings: place and rule, why it breaks, the fix; and a summary."""
    for finding in report.open:
        yield f"{finding.where}: {_paint(finding)} {finding.rule.name}"
        yield from _wrapped("", finding.message)
        yield from _wrapped("fix: ", finding.rule.fix)
        yield ""
    yield summary(report)


def summary(report: Report) -> str:
    """How much was found, where, and against which vLLM."""
    found = report.open
    files = len({finding.path for finding in found})
    parts = [f"{_count(len(found), 'finding')} in {_count(files, 'file')}"]
    hidden = len(report.findings) - len(found)
    if hidden:
        parts.append(f"{hidden} suppressed")
    version = report.vllm_version or ("of unknown version" if report.vllm else "none")
    parts.append(f"{_count(report.files, 'file')} audited, vLLM: {version}")
    return "; ".join(parts)


def github_lines(report: Report) -> Iterator[str]:
    """Workflow commands that GitHub Actions shows beside the lines."""
    for finding in report.open:
        place = finding.region
        properties = {
            "file": finding.path,
            "line": str(place.line),
            "endLine": str(place.end_line),
            "col": str(place.column),
            "endColumn": str(place.end_column),
            "title": f"{finding.rule.id} {finding.rule.name}",
        }
        if place.end_line != place.line:  # GitHub takes columns on one line only
            del properties["col"], properties["endColumn"]
        said = ",".join(f"{k}={_property(v)}" for k, v in properties.items())
        level = "notice" if finding.rule.level == "note" else finding.rule.level
        text = _data(f"{finding.message}\nfix: {finding.rule.fix}")
        yield f"::{level} {said}::{text}"
    yield summary(report)


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{label}{text}",
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  " + " " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _paint(finding: Finding) -> str:
    rule = finding.rule
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return rule.id
    return f"\x1b[{_COLOURS[rule.level]}m{rule.id}\x1b[0m"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
