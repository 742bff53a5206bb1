"""The command ``verify``: runs it, prints it, writes the reports."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vllm_graft import outputs, report
from vllm_graft.run import NotRunnableError
from vllm_graft.verify import report as verify_report
from vllm_graft.verify.page import render_html
from vllm_graft.verify.progress import verify_progress
from vllm_graft.verify.results import Verification
from vllm_graft.verify.verification import Options, verify


def run(arguments: argparse.Namespace, series: Sequence[str]) -> int:
    """Runs the command and returns its exit code.

    Args:
        arguments: The parsed arguments.
        series: The series by name or folder.
    """
    for path in (arguments.html, arguments.junit):
        outputs.check_writable(path)
    options = Options(
        arguments.tree, series, arguments.python, arguments.device, arguments.quick
    )
    try:
        with terminable(), verify_progress() as tell:
            done = verify(options, tell)
    except NotRunnableError as error:
        return _refuse(arguments, error)
    lines = verify_report.report_lines(done)
    report.show(arguments, done.to_json(), lines)
    _write(arguments, done)
    report.note(done.notes)
    return 0 if done.holds else 1


def _write(arguments: argparse.Namespace, done: Verification) -> None:
    if arguments.junit:
        outputs.write(arguments.junit, verify_report.junit(done))
        report.complain(f"wrote {arguments.junit}")
    if arguments.html:
        outputs.write(arguments.html, render_html(done))
        report.complain(f"wrote {arguments.html}")


def _refuse(arguments: argparse.Namespace, error: NotRunnableError) -> int:
    report.refuse(arguments, error.plan)
    report.complain(f"error: {error.plan.status.tree}: {error.message}")
    return 1


@contextmanager
def terminable() -> Iterator[None]:
    """Makes a request to terminate an interrupt, so that children are ended."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
