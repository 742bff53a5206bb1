"""Carry semantic patch series onto any vLLM tree.

The API in a few lines::

    from pathlib import Path
    from vllm_graft import DirTree, apply, load_series, status

    tree = DirTree(Path("path/to/vllm-checkout"))
    series = [load_series("mrv2-async-output")]
    print(status(tree, series).series[0].verdict)
    apply(tree, series)

Names are imported when first used: the import hook of ``vllm-graft run`` loads this
package in every process and must not cost what it does not use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "api": ("DoesNotApplyError", "Outcome", "apply", "plan", "revert", "status"),
    "errors": (
        "FetchError",
        "GitError",
        "GraftError",
        "PatchError",
        "SourceError",
        "TreeError",
    ),
    "plan": ("FileChange", "Plan"),
    "results": ("HunkResult", "PatchResult", "SeriesResult", "TreeStatus", "Verdict"),
    "series": ("Series", "load_series", "series_names"),
    "tree": ("DirTree", "MemoryTree", "Tree", "find_tree"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    """Imports a public name from the module that defines it (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `plan` is both a function here and a module; the module must not win.
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
