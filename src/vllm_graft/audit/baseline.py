"""A file with the findings that are known; only new ones count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from vllm_graft import outputs
from vllm_graft.audit.findings import Finding, Note
from vllm_graft.errors import GraftError

_SCHEMA: Final = 1


def write_baseline(path: Path, findings: Iterable[Finding]) -> int:
    """Writes all findings that no comment suppresses; gives their number.

    Raises:
        GraftError: The file cannot be written.
    """
    known = {
        finding.fingerprint: {
            "rule": finding.rule.id,
            "file": finding.home,
            "scope": finding.scope,
        }
        for finding in findings
        if finding.suppressed != "comment"
    }
    data = {"schema": _SCHEMA, "findings": known}
    outputs.write(path, json.dumps(data, indent=1) + "\n")
    return len(known)


def apply_baseline(
    path: Path, findings: list[Finding]
) -> tuple[list[Finding], Note | None]:
    """The findings, suppressed where they are known, and what is no longer found.

    Raises:
        GraftError: The file cannot be read, or is no baseline.
    """
    known = _read(path)
    done = [
        finding.suppress("baseline")
        if finding.fingerprint in known and not finding.suppressed
        else finding
        for finding in findings
    ]
    stale = known.keys() - {finding.fingerprint for finding in findings}
    if not stale:
        return done, None
    said = [
        f"{known[key].get('rule')} in {known[key].get('file')}"
        for key in known
        if key in stale
    ]
    shown = ", ".join(said[:3]) + ", ..." * (len(said) > 3)
    plural = "entry is" if len(said) == 1 else "entries are"
    return done, Note(
        str(path), f"{len(said)} {plural} no longer found ({shown}); write it anew"
    )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    hint = "write one with 'vllm-graft audit --write-baseline FILE PATH'"
    try:
        data = json.loads(path.read_bytes())
        known: dict[str, dict[str, Any]] = data["findings"]
        valid = all(isinstance(entry, dict) for entry in known.values())
        valid = valid and data["schema"] == _SCHEMA
    except OSError as error:
        raise GraftError(
            f"cannot be read: {error.strerror}", where=str(path), hint=hint
        ) from error
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise GraftError("not a baseline", where=str(path), hint=hint) from error
    if not valid:
        raise GraftError("not a baseline", where=str(path), hint=hint)
    return known
