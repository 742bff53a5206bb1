"""Where downloads and records are kept, outside every tree."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """The folder for cached data, created on demand.

    ``VLLM_GRAFT_CACHE`` names it; else it is ``vllm-graft`` below
    ``XDG_CACHE_HOME``, or below ``~/.cache``.

    Args:
        parts: Folders below it, created too.
    """
    root = os.environ.get("VLLM_GRAFT_CACHE")
    if root:
        base = Path(root).expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        base = base / "vllm-graft"
    path = base.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path
