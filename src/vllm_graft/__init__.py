"""Carry semantic patch series onto any vLLM tree.

The API in a few lines::

    from vllm_graft import DirTree, apply, load_series, status

    tree = DirTree(Path("path/to/vllm-checkout"))
    series = [load_series("mrv2-async-output")]
    print(status(tree, series).series[0].verdict)
    apply(tree, series)
"""

from vllm_graft.api import DoesNotApplyError, Outcome, apply, plan, revert, status
from vllm_graft.errors import (
    FetchError,
    GitError,
    GraftError,
    PatchError,
    SourceError,
    TreeError,
)
from vllm_graft.plan import FileChange, Plan
from vllm_graft.results import (
    HunkResult,
    PatchResult,
    SeriesResult,
    TreeStatus,
    Verdict,
)
from vllm_graft.series import Series, load_series, series_names
from vllm_graft.tree import DirTree, MemoryTree, Tree, find_tree

__all__ = [
    "DirTree",
    "DoesNotApplyError",
    "FetchError",
    "FileChange",
    "GitError",
    "GraftError",
    "HunkResult",
    "MemoryTree",
    "Outcome",
    "PatchError",
    "PatchResult",
    "Plan",
    "Series",
    "SeriesResult",
    "SourceError",
    "Tree",
    "TreeError",
    "TreeStatus",
    "Verdict",
    "apply",
    "find_tree",
    "load_series",
    "plan",
    "revert",
    "series_names",
    "status",
]
