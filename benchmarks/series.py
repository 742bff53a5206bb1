"""The refactor as a semantic patch series: what the others are compared with."""

from __future__ import annotations

import vllm_graft
from benchmarks.inputs import Files


class DoesNotApply(Exception):  # noqa: N818 - an answer, not an error
    """The series does not apply, and says so."""


def refactor(files: Files, series: vllm_graft.Series) -> dict[str, bytes]:
    """Parses, matches and splices, in memory.

    Raises:
        DoesNotApply: A patch does not apply.
    """
    plan = vllm_graft.plan(vllm_graft.MemoryTree(files), [series])
    if not plan.ok or not plan.changes:
        raise DoesNotApply
    after = {change.path: change.after for change in plan.changes}
    return {path: after.get(path) or data for path, data in files.items()}
