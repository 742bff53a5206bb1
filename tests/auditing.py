"""Miniature trees to audit: a vLLM of our own, and the code that builds on it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from miniature import write_files
from vllm_graft.audit.auditor import audit
from vllm_graft.audit.findings import Finding, Report
from vllm_graft.audit.rules import load_rules

RULES = load_rules(["mrv2-async-output"])
#: A miniature of what the rules name in vLLM; same names, same roles, our own code.
VLLM = Path(__file__).parent / "audit" / "tree"


def write(folder: Path, files: dict[str, str]) -> None:
    """Writes files, with their indentation taken out."""
    write_files(folder, {name: dedent(text).encode() for name, text in files.items()})


def look(*paths: Path, vllm: Path | None = VLLM) -> Report:
    """Audits with the refactor's rules."""
    return audit(paths, RULES, vllm=vllm)


def found(report: Report) -> list[tuple[str, int]]:
    """The rules and lines of the findings that count."""
    return [(finding.rule.id, finding.region.line) for finding in report.open]


def marked(text: str) -> list[tuple[str, int]]:
    """What a source says is to be found: lines that end in ``#! RULE``."""
    return [
        (line.rpartition("#! ")[2], number)
        for number, line in enumerate(text.splitlines(), 1)
        if "#! " in line
    ]


def only(report: Report) -> Finding:
    """The one finding."""
    (finding,) = report.open
    return finding
