"""The command ``matrix``: runs it, prints it, writes the page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from vllm_graft import report
from vllm_graft.index import Index
from vllm_graft.matrix import run_matrix
from vllm_graft.matrix_html import render_html
from vllm_graft.series import Series


def run(arguments: argparse.Namespace, series: Sequence[Series]) -> int:
    """Runs the command and returns its exit code."""
    raise NotImplementedError
