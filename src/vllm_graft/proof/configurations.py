"""The configurations that base and grafted engines are compared on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


# A GPU has no attention kernel for float32, and engines may have to share it.
_ON_CUDA: dict[str, Any] = {"dtype": "bfloat16", "gpu_memory_utilization": 0.2}


def configurations(device: str) -> list[dict[str, Any]]:
    """Every combination, as ``driver`` takes them; the models are named by kind.

    Args:
        device: ``cpu`` or ``cuda``.
    """
    found = [_one("held", "uni", "async", HELD) | {"in_flight": 4}]
    for mode in ("sync", "async"):
        for executor in ("uni", "mp"):
            eagle = _one("eagle", executor, mode, SPECULATIVE)
            found += [
                _one("generate", executor, mode, GENERATE),
                eagle | {"draft": "eagle"},
                _embedding(executor, mode),
            ]
        for kind in ("tensor", "pipeline"):
            size = {"options": {f"{kind}_parallel_size": 2}}
            found.append(_one(f"{kind}2", "mp", mode, PARALLEL) | size)
    if device == "cuda":
        for one in found:
            one["options"] = {**one.get("options", {}), **_ON_CUDA}
    return found


def _one(kind: str, executor: str, mode: str, workloads: list[str]) -> dict[str, Any]:
    return {
        "name": f"{kind}-{executor}-{mode}",
        "executor": executor,
        "asynchronous": mode == "async",
        "model": "llama",
        "workloads": workloads,
    }


def _embedding(executor: str, mode: str) -> dict[str, Any]:
    # The same weights, asked for the last hidden state. The runner's `pool` takes
    # no other task: it asserts that the model embeds.
    options = {"runner": "pooling", "convert": "embed"}
    return _one("embed", executor, mode, ["embed"]) | {"options": options}


def driver_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a driver process: offline, in-process core, repeatable.

    Args:
        base: What to build on: ``cpu.environment``, or the user's own on a GPU.
    """
    return {
        **base,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # The driver steps the engine itself: no race decides what is batched.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # What the driver has imported, its workers need not.
        "VLLM_WORKER_MULTIPROC_METHOD": "fork",
        # Sums depend on how threads split them.
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_HOST_IP": "127.0.0.1",
    }
