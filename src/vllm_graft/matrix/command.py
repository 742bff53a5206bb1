"""The command ``matrix``: runs it, prints it, writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from vllm_graft import outputs, report
from vllm_graft.index.client import Index
from vllm_graft.matrix.build import Matrix, run_matrix
from vllm_graft.matrix.page import render_html
from vllm_graft.matrix.table import print_table
from vllm_graft.progress import count_bar
from vllm_graft.series import Series


def run(arguments: argparse.Namespace, series: Sequence[Series]) -> int:
    """Runs the command and returns its exit code."""
    with Index(refresh=arguments.refresh) as index, count_bar("releases") as progress:
        matrix = run_matrix(
            series, arguments.releases or None, index=index, on_progress=progress
        )
    if arguments.json:
        report.show(arguments, matrix.to_json(), [])
    else:
        print_table(matrix, sys.stdout)
    if arguments.html:
        outputs.write(arguments.html, render_html(matrix))
        report.complain(f"wrote {arguments.html}")
    return 2 if matrix.failed else int(not _fine(matrix))


def _fine(matrix: Matrix) -> bool:
    """Whether every patch that a release should take is in order on it.

    A release from before the code that the series is for is no failure.
    """
    return all(
        series.ok or series.verdict.value == "absent"
        for row in matrix.rows
        if row.status is not None
        for series in row.status.series
    )
