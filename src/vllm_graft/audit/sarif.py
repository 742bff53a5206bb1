"""An audit as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import quote

from vllm_graft.audit.findings import Finding, Note, Region, Report
from vllm_graft.audit.rules import Rule

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: Paths are relative to the folder that the audit ran in: a checkout's root in CI.
_BASE: Final = "%SRCROOT%"
#: A changed way to make fingerprints needs a new name.
_FINGERPRINT: Final = "vllmGraftFinding/v1"


def sarif(report: Report, version: str) -> dict[str, Any]:
    """The log, with one run.

    Args:
        report: The audit's result. Suppressed findings are part of the log.
        version: The tool's version.
    """
    order = {rule.id: number for number, rule in enumerate(report.rules)}
    driver = {
        "name": "vllm-graft",
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in report.rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, order[f.rule.id]) for f in report.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_note(n) for n in report.notes],
            }
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.help},
        "help": {
            "text": f"{rule.help}\n\nFix: {rule.fix}",
            "markdown": f"{rule.help}\n\n**Fix:** {rule.fix}",
        },
        "defaultConfiguration": {"level": rule.level},
        "properties": {"tags": [rule.series or "vllm-graft"]},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.path),
            "region": _region(finding.region),
        }
    }
    if finding.scope:
        name = {"fullyQualifiedName": finding.scope, "kind": "function"}
        location["logicalLocations"] = [name]
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": finding.rule.level,
        "message": {"text": f"{finding.message}. Fix: {finding.rule.fix}"},
        "locations": [location],
        "partialFingerprints": {_FINGERPRINT: finding.fingerprint},
    }
    if finding.suppressed:
        in_source = finding.suppressed == "comment"
        suppression = {"kind": "inSource" if in_source else "external"}
        if finding.reason:
            suppression["justification"] = finding.reason
        result["suppressions"] = [suppression]
    return result


def _region(region: Region) -> dict[str, int]:
    return {
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    }


def _artifact(path: str) -> dict[str, str]:
    """A place in the current folder, by its relative URI, or an absolute one."""
    if PurePath(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    raw = PurePath(path).as_posix().encode("utf-8", "surrogateescape")
    # A colon in the first segment would read as a scheme.
    return {"uri": quote(raw, safe="/"), "uriBaseId": _BASE}


def _note(note: Note) -> dict[str, Any]:
    return {"level": "note", "message": {"text": f"{note.where}: {note.message}"}}
