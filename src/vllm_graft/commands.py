"""What each command does; every function returns the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from vllm_graft import report
from vllm_graft.catalog import series_names
from vllm_graft.tree import find_tree

if TYPE_CHECKING:
    from vllm_graft.planner import Plan
    from vllm_graft.series import Series


def status(arguments: argparse.Namespace) -> int:
    """``vllm-graft status``."""
    from vllm_graft import api  # noqa: PLC0415 - `run` starts without the engine

    result = api.status(find_tree(arguments.tree), _series(arguments))
    report.show(arguments, result.to_json(), report.status_lines(result))
    return 0 if result.ok else 1


def diff(arguments: argparse.Namespace) -> int:
    """``vllm-graft diff``."""
    from vllm_graft import api  # noqa: PLC0415
    from vllm_graft import export as exporter  # noqa: PLC0415

    tree = find_tree(arguments.tree)
    planned = api.plan(tree, _series(arguments), reverse=arguments.reverse)
    text = exporter.diff(tree, planned) if planned.changes else b""
    if arguments.json:
        record = {**planned.status.to_json(), "diff": text.decode(errors="replace")}
        report.show(arguments, record, [])
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
    return _explain(planned)


def apply(arguments: argparse.Namespace) -> int:
    """``vllm-graft apply``."""
    return _carry_out(arguments, reverse=False)


def revert(arguments: argparse.Namespace) -> int:
    """``vllm-graft revert``."""
    return _carry_out(arguments, reverse=True)


def _carry_out(arguments: argparse.Namespace, *, reverse: bool) -> int:
    from vllm_graft import api  # noqa: PLC0415

    if arguments.signoff and not arguments.commit:
        from vllm_graft.cli import UsageError  # noqa: PLC0415

        raise UsageError(
            "--signoff without --commit", hint="a sign-off is a commit's trailer"
        )
    tree = find_tree(arguments.tree)
    planned = api.plan(tree, _series(arguments), reverse=reverse)
    record: dict[str, Any] = planned.status.to_json()
    if arguments.check or not planned.ok:
        if planned.ok:
            api.check(tree, planned, commit=arguments.commit)
        record |= {"changed": [], "commits": [], "notes": []}
        report.show(
            arguments, record, report.status_lines(planned.status, reverse=reverse)
        )
        return _explain(planned)
    outcome = api.carry_out(
        tree, planned, commit=arguments.commit, signoff=arguments.signoff
    )
    notes = report.outcome_notes(outcome)
    record |= {
        "changed": list(outcome.changed),
        "commits": list(outcome.commits),
        "notes": notes,
    }
    report.show(arguments, record, report.outcome_lines(outcome, reverse=reverse))
    report.note(notes)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """``vllm-graft export``."""
    from vllm_graft import export as exporter  # noqa: PLC0415
    from vllm_graft.write import check_recovered  # noqa: PLC0415

    tree = find_tree(arguments.tree)
    check_recovered(tree)
    planned = exporter.forward_plan(tree, _series(arguments))
    out = arguments.output
    files = []
    if planned.ok and planned.changes:
        files = exporter.export(tree, planned, out, signoff=arguments.signoff)
    notes = exporter.notes(planned, out, files)
    names = [str(file) for file in files]
    record = {**planned.status.to_json(), "files": names, "notes": notes}
    lines = report.export_lines(out, names) if planned.ok else []
    report.show(arguments, record, lines)
    report.note(notes)
    return _explain(planned)


def check(arguments: argparse.Namespace) -> int:
    """``vllm-graft check``."""
    from vllm_graft.lint import lint  # noqa: PLC0415

    problems = lint(arguments.paths)
    record = {"problems": [problem.to_json() for problem in problems]}
    report.show(arguments, record, report.problem_lines(problems))
    return 2 if problems else 0


def recover(arguments: argparse.Namespace) -> int:
    """``vllm-graft recover``."""
    from vllm_graft import write  # noqa: PLC0415

    tree = find_tree(arguments.tree)
    restored = write.recover(tree)
    lines = [f"restored {path}" for path in restored] or ["nothing to recover"]
    report.show(arguments, {"tree": tree.name, "restored": restored}, lines)
    return 0


def run(arguments: argparse.Namespace) -> int:
    """``vllm-graft run``; does not return where the command starts."""
    from vllm_graft import launch  # noqa: PLC0415
    from vllm_graft import run as runner  # noqa: PLC0415

    given = arguments.tree
    tree = find_tree(given) if given else launch.command_tree(arguments.words)
    without = arguments.without or []
    # Only what is named, where something is to be taken out.
    series = arguments.series or ([] if without else series_names())
    try:
        folder = runner.bundle(tree, series, without)
    except runner.NotRunnableError as error:
        report.refuse(arguments, error.plan)
        return _explain(error.plan)
    env = runner.environment(os.environ, folder, given)
    if arguments.cpu:
        from vllm_graft import cpu  # noqa: PLC0415

        env = cpu.environment(env)
    launch.start(arguments.words, env)
    return 0


def fetch(arguments: argparse.Namespace) -> int:
    """``vllm-graft fetch``."""
    from vllm_graft.index.fetch import fetch as get  # noqa: PLC0415
    from vllm_graft.progress import download_bar  # noqa: PLC0415

    with download_bar(f"vllm {arguments.release}") as progress:
        fetched = get(arguments.release, arguments.dest, progress=progress)
    record = {
        "path": str(fetched.path),
        "vllm_version": fetched.version,
        "file": fetched.filename,
        "sha256": fetched.sha256,
        "commit": fetched.commit,
        "notes": list(fetched.notes),
    }
    report.show(arguments, record, report.fetched_lines(fetched))
    return 0


def matrix(arguments: argparse.Namespace) -> int:
    """``vllm-graft matrix``."""
    from vllm_graft.matrix.command import run  # noqa: PLC0415

    return run(arguments, _series(arguments))


def audit(arguments: argparse.Namespace) -> int:
    """``vllm-graft audit``."""
    from vllm_graft.audit.command import run  # noqa: PLC0415

    return run(arguments, arguments.series or [])


def verify(arguments: argparse.Namespace) -> int:
    """``vllm-graft verify``."""
    from vllm_graft.verify.command import run  # noqa: PLC0415

    return run(arguments, arguments.series or series_names())


def _series(arguments: argparse.Namespace) -> list[Series]:
    from vllm_graft.series import load_series  # noqa: PLC0415

    names = arguments.series or series_names()
    return [load_series(name) for name in dict.fromkeys(names)]


def _explain(planned: Plan) -> int:
    """Says on standard error that a plan cannot be carried out."""
    if planned.ok:
        return 0
    from vllm_graft.api import DoesNotApplyError  # noqa: PLC0415

    report.complain(
        f"error: {planned.status.tree}: {DoesNotApplyError(planned).message}"
    )
    return 1
