"""Run the real Model Runner V2 on a machine without a GPU.

``environment`` gives the variables under which a command, and every process it
starts, does so; ``install`` is what those variables make each of them call.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ASYNC_VARIABLE = "VLLM_GRAFT_CPU_ASYNC"

# What the recipe needs, and what keeps a run quiet and repeatable.
_FIXED = {
    "VLLM_GRAFT_CPU": "1",
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_USE_V2_MODEL_RUNNER": "1",
    # Triton has no CPU backend on the index; its interpreter runs the kernels.
    "TRITON_INTERPRET": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
# Only where the caller has not chosen.
_DEFAULT = {
    # GiB; the platform would else take most of the machine's memory.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # Workers and gloo stay on the loopback interface.
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
}


def environment(
    base: Mapping[str, str], *, asynchronous: bool | None = None
) -> dict[str, str]:
    """Environment variables with which a command runs V2 on the CPU.

    Args:
        base: The environment to build on, usually ``os.environ``; not changed.
        asynchronous: Force asynchronous scheduling on or off, whatever the
            command asks for. None keeps what the command's configuration says
            (vLLM's CPU platform would switch it off).
    """
    from pathlib import Path  # noqa: PLC0415

    env = {**_DEFAULT, **base, **_FIXED}
    site = str(Path(__file__).resolve().parent.parent / "_site")
    rest = [
        part
        for part in base.get("PYTHONPATH", "").split(os.pathsep)
        if part and part != site
    ]
    env["PYTHONPATH"] = os.pathsep.join([site, *rest])
    if asynchronous is None:
        env.pop(ASYNC_VARIABLE, None)
    else:
        env[ASYNC_VARIABLE] = "1" if asynchronous else "0"
    return env


def install() -> None:
    """Register the import hooks in this process; imports neither torch nor vLLM."""
    from vllm_graft.cpu.imports import register  # noqa: PLC0415
    from vllm_graft.cpu.patches import ACTIONS  # noqa: PLC0415

    # Triton reads it once, at import.
    os.environ["TRITON_INTERPRET"] = "1"
    if "triton" in sys.modules:
        raise ImportError("triton was imported before vllm_graft.cpu.install()")
    register(ACTIONS)
