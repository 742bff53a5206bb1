"""The configurations that base and grafted engines are compared on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_graft.cpu import environment

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).resolve().parent

GENERATE = [
    "greedy",
    "sampled",
    "logprobs",
    "parallel",
    "structured",
    "stop",
    "abort",
    "chunked",
    "prefix",
    "preempt",
]
SPECULATIVE = ["greedy", "sampled", "logprobs", "structured", "abort", "chunked"]
# No grammars: vLLM waits for the oldest output only before it fills a bitmask, which
# is too little when more than two steps are under way.
HELD = ["greedy", "sampled", "logprobs", "abort"]
PARALLEL = ["greedy", "sampled", "logprobs", "structured", "abort", "chunked"]


def configurations(models: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every combination, the folders of the tiny models given by kind."""
    found: list[dict[str, Any]] = [
        {
            "name": "held-uni-async",
            "executor": "uni",
            "asynchronous": True,
            "in_flight": 4,
            "model": models["llama"],
            "workloads": HELD,
        }
    ]
    for mode in ("sync", "async"):
        common = {"asynchronous": mode == "async", "model": models["llama"]}
        for executor in ("uni", "mp"):
            found += [
                {
                    "name": f"generate-{executor}-{mode}",
                    "executor": executor,
                    "workloads": GENERATE,
                    **common,
                },
                {
                    "name": f"eagle-{executor}-{mode}",
                    "executor": executor,
                    "workloads": SPECULATIVE,
                    "draft": models["eagle"],
                    **common,
                },
                {
                    "name": f"embed-{executor}-{mode}",
                    "executor": executor,
                    "workloads": ["embed"],
                    **common,
                    "model": models["embed"],
                    "options": {"runner": "pooling", "convert": "embed"},
                },
            ]
        for kind in ("tensor", "pipeline"):
            found.append(
                {
                    "name": f"{kind}2-mp-{mode}",
                    "executor": "mp",
                    "workloads": PARALLEL,
                    "options": {f"{kind}_parallel_size": 2},
                    **common,
                }
            )
    return found


def driver_environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a driver process: offline, in-process core, repeatable."""
    env = environment(base)
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(HERE.parent)])
    env |= {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        # The driver steps the engine itself: no race decides what is batched.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # Sums depend on how threads split them.
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return env
