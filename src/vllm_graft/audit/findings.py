"""What an audit finds."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vllm_graft.audit.rules import Rule


@dataclass(frozen=True)
class Region:
    """A piece of a file: 1-based lines and columns, the end column exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Finding:
    """A place that breaks, or that the audit cannot leave unsaid.

    Args:
        rule: The rule.
        path: The file, to be shown.
        region: Where in it.
        scope: The definition around the place, dotted; empty at module level.
        subject: What it is about; fills in the rule's message.
        detail: What was seen; fills in the rule's message.
        anchor: What stands there, however it is laid out.
        home: The file from the import root on, the same on every machine.
        fingerprint: The same as long as anchor, scope and home are.
        suppressed: ``comment``, ``baseline`` or empty.
        reason: Why it is suppressed, where a comment says so.
    """

    rule: Rule
    path: str
    region: Region
    scope: str
    subject: str
    detail: str
    anchor: str
    home: str
    fingerprint: str = ""
    suppressed: str = ""
    reason: str = ""

    @property
    def message(self) -> str:
        """Why it breaks."""
        return self.rule.message.format(subject=self.subject, detail=self.detail)

    @property
    def where(self) -> str:
        """path:line:column."""
        return f"{self.path}:{self.region.line}:{self.region.column}"

    def suppress(self, how: str, reason: str = "") -> Finding:
        """The same, suppressed."""
        return replace(self, suppressed=how, reason=reason)

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "rule": self.rule.id,
            "name": self.rule.name,
            "series": self.rule.series,
            "level": self.rule.level,
            "path": self.path,
            "line": self.region.line,
            "column": self.region.column,
            "end_line": self.region.end_line,
            "end_column": self.region.end_column,
            "scope": self.scope,
            "message": self.message,
            "fix": self.rule.fix,
            "fingerprint": self.fingerprint,
            "suppressed": self.suppressed or None,
            "reason": self.reason,
        }


@dataclass(frozen=True, order=True)
class Note:
    """What could not be audited, or what a person should know."""

    where: str
    message: str

    def to_json(self) -> dict[str, str]:
        """The documented JSON form."""
        return {"where": self.where, "message": self.message}


@dataclass
class Report:
    """The result of an audit.

    Args:
        rules: The rules that were looked for, the audit's own included.
        findings: In the order of their places, suppressed ones too.
        notes: What else a person should know.
        files: How many files were audited.
        vllm: The vLLM tree that the code builds on.
        vllm_version: The version that it says it is.
    """

    rules: list[Rule]
    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    files: int = 0
    vllm: Path | None = None
    vllm_version: str | None = None

    @property
    def open(self) -> list[Finding]:
        """The findings that nothing suppresses."""
        return [finding for finding in self.findings if not finding.suppressed]


def region(lines: list[str], node: ast.AST) -> Region:
    """Where a node is, in characters.

    Args:
        lines: The file's lines.
        node: A node with a position, whose columns are bytes in UTF-8.
    """
    line = getattr(node, "lineno", 1)
    end_line = getattr(node, "end_lineno", None) or line
    column = _characters(lines, line, getattr(node, "col_offset", 0))
    end = _characters(lines, end_line, getattr(node, "end_col_offset", 0) or 0)
    return Region(line, column, end_line, max(end, column if end_line == line else 1))


def _characters(lines: list[str], line: int, offset: int) -> int:
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode()[:offset].decode(errors="replace")) + 1


def fingerprinted(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order of their places, with fingerprints.

    Where the same stands in the same scope more than once, its number counts.
    """
    ordered = sorted(findings, key=lambda f: (f.path, f.region.line, f.region.column))
    seen: Counter[tuple[str, ...]] = Counter()
    done = []
    for finding in ordered:
        key = (finding.rule.id, finding.home, finding.scope, finding.anchor)
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        done.append(replace(finding, fingerprint=digest))
    return done
