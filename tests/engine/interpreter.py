"""Where the engine environment's Python is."""

from __future__ import annotations

import os

from vllm_graft.engine_env import cpu_engine, ensure


def engine_python() -> str:
    """The Python with real vLLM: ``VLLM_GRAFT_ENGINE_PYTHON``, else in the cache.

    The environment is made the first time, which takes minutes and 6 GB.
    """
    named = os.environ.get("VLLM_GRAFT_ENGINE_PYTHON")
    return named or str(ensure(cpu_engine()).python)
