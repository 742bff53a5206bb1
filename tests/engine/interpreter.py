"""Where the engine environment's Python is."""

from __future__ import annotations

import os
from pathlib import Path

from vllm_graft.cache import cache_dir

VERSION = "0.23.0"


def engine_python() -> str:
    """The Python with real vLLM: ``VLLM_GRAFT_ENGINE_PYTHON``, else in the cache.

    Raises:
        FileNotFoundError: It is not installed. Not a skip: the tests that ask for
            it are marked ``engine`` and are deselected by that mark.
    """
    named = os.environ.get("VLLM_GRAFT_ENGINE_PYTHON")
    python = Path(named or cache_dir("engine", f"cpu-{VERSION}") / "bin" / "python")
    if not python.exists():
        raise FileNotFoundError(
            f"{python}: the engine environment is not installed; run 'make test', "
            "or name its Python in VLLM_GRAFT_ENGINE_PYTHON"
        )
    return str(python)
