"""Carry semantic patch series onto any vLLM tree.

The API in a few lines::

    from vllm_graft import DirTree, apply, load_series, status

    tree = DirTree("path/to/vllm-checkout")
    series = [load_series("mrv2-async-output")]
    print(status(tree, series).series[0].verdict)
    apply(tree, series)

Every error is a :class:`GraftError`: one message with a place and a hint.
"""

# Type checkers take it for true; the import of `typing` would cost every process.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from vllm_graft.api import (
        DoesNotApplyError,
        Outcome,
        apply,
        check,
        plan,
        recover,
        revert,
        status,
    )
    from vllm_graft.errors import (
        FetchError,
        GitError,
        GraftError,
        PatchError,
        SourceError,
        TreeError,
    )
    from vllm_graft.planner import FileChange, Plan, Step
    from vllm_graft.results import (
        HunkResult,
        PatchResult,
        SeriesResult,
        TreeStatus,
        Verdict,
    )
    from vllm_graft.series import Series, load_series, series_names
    from vllm_graft.tree import DirTree, MemoryTree, Tree, find_tree

# Imported when asked for: `vllm-graft run` and `import vllm_graft.errors` need
# neither the engine nor the time that importing it takes.
_MODULES = {
    "api": (
        "DoesNotApplyError",
        "Outcome",
        "apply",
        "check",
        "plan",
        "recover",
        "revert",
        "status",
    ),
    "errors": (
        "FetchError",
        "GitError",
        "GraftError",
        "PatchError",
        "SourceError",
        "TreeError",
    ),
    "planner": ("FileChange", "Plan", "Step"),
    "results": ("HunkResult", "PatchResult", "SeriesResult", "TreeStatus", "Verdict"),
    "series": ("Series", "load_series", "series_names"),
    "tree": ("DirTree", "MemoryTree", "Tree", "find_tree"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

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
    "Step",
    "Tree",
    "TreeError",
    "TreeStatus",
    "Verdict",
    "apply",
    "check",
    "find_tree",
    "load_series",
    "plan",
    "recover",
    "revert",
    "series_names",
    "status",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
