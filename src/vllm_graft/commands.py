"""What each command does; every function returns the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from vllm_graft import api, report
from vllm_graft.plan import Plan
from vllm_graft.series import Series, load_series, series_names
from vllm_graft.tree import DirTree, find_tree


def status(arguments: argparse.Namespace) -> int:
    """``vllm-graft status``."""
    result = api.status(find_tree(arguments.tree), _series(arguments))
    report.show(arguments, result.to_json(), report.status_lines(result))
    return 0 if result.ok else 1


def diff(arguments: argparse.Namespace) -> int:
    """``vllm-graft diff``."""
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
    tree = find_tree(arguments.tree)
    planned = api.plan(tree, _series(arguments), reverse=reverse)
    record: dict[str, Any] = planned.status.to_json()
    if arguments.check or not planned.ok:
        record |= {"changed": [], "commits": []}
        lines = report.status_lines(planned.status, reverse=reverse)
        report.show(arguments, record, lines)
        return _explain(planned) if not arguments.json else int(not planned.ok)
    outcome = api.carry_out(
        tree, planned, commit=arguments.commit, signoff=arguments.signoff
    )
    record |= {"changed": list(outcome.changed), "commits": list(outcome.commits)}
    report.show(arguments, record, report.outcome_lines(outcome, reverse=reverse))
    return 0


def export(arguments: argparse.Namespace) -> int:
    """``vllm-graft export``."""
    from vllm_graft import export as exporter  # noqa: PLC0415

    tree = find_tree(arguments.tree)
    planned = exporter.forward_plan(tree, _series(arguments))
    if not planned.ok:
        return _explain(planned)
    files = []
    if planned.changes:
        files = exporter.export(
            tree, planned, arguments.output, signoff=arguments.signoff
        )
    record = {**planned.status.to_json(), "files": [str(file) for file in files]}
    lines = [str(file) for file in files] or ["nothing to export"]
    report.show(arguments, record, lines)
    return 0


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

    restored = write.recover(find_tree(arguments.tree))
    lines = [f"restored {path}" for path in restored] or ["nothing to recover"]
    report.show(arguments, {"restored": restored}, lines)
    return 0


def run(arguments: argparse.Namespace) -> int:
    """``vllm-graft run``; does not return where the command starts."""
    from vllm_graft import run as runner  # noqa: PLC0415

    given = arguments.tree
    tree = find_tree(given) if given else runner.command_tree(arguments.words)
    without = arguments.without or []
    # Only what is named, where something is to be taken out.
    series = arguments.series or ([] if without else series_names())
    try:
        folder = runner.bundle(tree, series, without)
    except runner.NotRunnableError as error:
        for line in report.status_lines(error.plan.status, reverse=error.plan.reverse):
            report.complain(line)
        return _explain(error.plan)
    env = runner.environment(os.environ, folder, given)
    if arguments.cpu:
        from vllm_graft import cpu  # noqa: PLC0415

        env = cpu.environment(env)
    runner.start(arguments.words, env)
    return 0


def fetch(arguments: argparse.Namespace) -> int:
    """``vllm-graft fetch``."""
    from vllm_graft.fetch import fetch as get  # noqa: PLC0415
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
    from vllm_graft.matrix_command import run  # noqa: PLC0415

    return run(arguments, _series(arguments))


def _series(arguments: argparse.Namespace) -> list[Series]:
    return [load_series(name) for name in arguments.series or series_names()]


def _explain(planned: Plan) -> int:
    """Says on standard error why a plan cannot be carried out."""
    if planned.ok:
        return 0
    for line in report.refusal_lines(planned):
        report.complain(line)
    return 1


__all__ = ["DirTree"]
