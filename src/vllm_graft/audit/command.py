"""``vllm-graft audit``."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vllm_graft import outputs
from vllm_graft import report as printer
from vllm_graft.audit.auditor import audit
from vllm_graft.audit.baseline import apply_baseline, write_baseline
from vllm_graft.audit.findings import Report
from vllm_graft.audit.listing import github_lines, listing
from vllm_graft.audit.rules import RULES_FILE, Rule, load_rules
from vllm_graft.catalog import series_names
from vllm_graft.cli import UsageError
from vllm_graft.tree import DirTree, installed_vllm

if TYPE_CHECKING:
    import argparse

    from vllm_graft.audit.auditor import Progress

#: Seconds that an audit may take before it shows how far it is.
_PATIENCE: Final = 1.0


def run(arguments: argparse.Namespace, names: Sequence[str]) -> int:
    """Runs the command; gives its exit code.

    Args:
        arguments: The command's.
        names: The series that the user named; none for all.
    """
    _check(arguments)
    rules = _rules(names)
    with _no_collector(), _progress() as progress:
        result = audit(
            arguments.paths,
            rules,
            vllm=DirTree(arguments.vllm).root if arguments.vllm else None,
            installed=installed_vllm(),
            progress=progress,
        )
    if arguments.baseline is not None:
        result.findings, stale = apply_baseline(arguments.baseline, result.findings)
        result.notes += [stale] if stale else []
    if arguments.sarif is not None:
        _write_sarif(arguments.sarif, result)
    if arguments.write_baseline is not None:
        number = write_baseline(arguments.write_baseline, result.findings)
        line = f"{arguments.write_baseline}: {number} findings"
        printer.show(arguments, _record(arguments.paths, result), [line])
        code = 0
    else:
        lines = github_lines(result) if arguments.github else listing(result)
        printer.show(arguments, _record(arguments.paths, result), lines)
        code = 1 if result.open else 0
    printer.note(f"{note.where}: {note.message}" for note in result.notes)
    return code


def _check(arguments: argparse.Namespace) -> None:
    if arguments.github and arguments.json:
        raise UsageError("--github with --json", hint="ask for one of them")
    if arguments.baseline is not None and arguments.write_baseline is not None:
        raise UsageError(
            "--write-baseline with --baseline",
            hint="to renew a baseline, write it without reading it",
        )


def _rules(names: Sequence[str]) -> list[Rule]:
    rules = load_rules(dict.fromkeys(names or series_names()))
    if not rules:
        raise UsageError(
            f"no rules in {', '.join(names)}",
            hint=f"name a series that has a file {RULES_FILE}",
        )
    return rules


def _write_sarif(path: Path, result: Report) -> None:
    from importlib.metadata import version  # noqa: PLC0415 - slow, and rare

    from vllm_graft.audit.sarif import sarif  # noqa: PLC0415

    log = sarif(result, version("vllm-graft"))
    outputs.write(path, json.dumps(log, indent=1) + "\n")


def _record(paths: Sequence[Path], result: Report) -> dict[str, Any]:
    return {
        "paths": [str(path) for path in paths],
        "vllm": str(result.vllm) if result.vllm else None,
        "vllm_version": result.vllm_version,
        "files": result.files,
        "findings": [finding.to_json() for finding in result.findings],
        "notes": [note.to_json() for note in result.notes],
    }


@contextmanager
def _no_collector() -> Iterator[None]:
    """Holds back the search for cycles: syntax trees are many objects and have none.

    It takes a third of the time otherwise, and frees nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Draws a bar on a terminal once the audit has taken a second."""
    if not sys.stderr.isatty():
        yield None
        return
    begin = time.monotonic()
    with ExitStack() as stack:
        bars: list[Progress | None] = []

        def update(done: int, total: int, name: str) -> None:
            if not bars and time.monotonic() - begin > _PATIENCE:
                from vllm_graft.progress import count_bar  # noqa: PLC0415

                bars.append(stack.enter_context(count_bar("auditing")))
            for bar in bars:
                if bar is not None:
                    bar(done, total, name)

        yield update
