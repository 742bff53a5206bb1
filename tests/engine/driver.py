"""Run configurations on a real engine and write what came out as JSON.

    python -m engine.driver CONFIG.json RESULT.json

CONFIG is one configuration or a list of them, run in this process in turn. It
must be started with the environment of ``vllm_graft.cpu.environment``. A
configuration: ``name``; ``model`` (a folder); ``draft`` (a folder, optional);
``executor`` (``uni`` or ``mp``); ``asynchronous``; ``options`` (more arguments of
``LLM``); ``workloads`` (names); ``in_flight`` (optional: how many steps the engine
lets run before it resolves the oldest; ``uni`` only); ``fault`` (optional, a name
from ``faults``; a workload's exception is then its result). RESULT has for each
configuration, by its name: ``results`` (by workload; what must be equal),
``evidence`` and ``seconds``.
"""

# ruff: noqa: PLC0415 - vLLM is imported only once a configuration asks for it

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

KEPT: list[Any] = []
BASE_OPTIONS: dict[str, Any] = {
    "dtype": "float32",
    "enforce_eager": True,
    "seed": 0,
    "max_model_len": 256,
    "max_num_seqs": 8,
    # Small, so that ordinary prompts are chunked.
    "max_num_batched_tokens": 64,
    "block_size": 32,
    "num_gpu_blocks_override": 24,
    "disable_log_stats": True,
    "worker_extension_cls": "engine.probe.Probe",
}


def start(config: dict[str, Any]) -> Any:
    """The engine of a configuration."""
    from vllm import LLM
    from vllm.config import VllmConfig

    if config.get("in_flight"):
        # Sizes the engine's queue of unresolved outputs and the runner's buffers.
        VllmConfig.max_concurrent_batches = property(lambda _: config["in_flight"])
    options = {**BASE_OPTIONS, **config.get("options", {})}
    if config.get("draft"):
        options["speculative_config"] = {
            "method": "eagle",
            "model": config["draft"],
            "num_speculative_tokens": config.get("speculative_tokens", 3),
        }
    return LLM(
        model=config["model"],
        distributed_executor_backend=config["executor"],
        async_scheduling=config["asynchronous"],
        **options,
    )


def count_preemptions(scheduler: Any) -> list[str]:
    """A list that gets each preempted request's id."""
    preempted: list[str] = []
    original = scheduler._preempt_request

    def counted(request: Any, *args: Any, **kwargs: Any) -> Any:
        preempted.append(request.request_id)
        return original(request, *args, **kwargs)

    scheduler._preempt_request = counted
    return preempted


def progress(line: str) -> None:
    """Say in the log how far it got: what a hang was in."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def run_workload(llm: Any, name: str, fault: str | None) -> Any:
    """A workload's result; with a fault, also the exception that it led to."""
    from engine.workloads import WORKLOADS

    if fault is None:
        return WORKLOADS[name](llm)
    from engine.faults import FAULTS, at_most

    with FAULTS[fault](), at_most(100, llm.llm_engine):
        try:
            return WORKLOADS[name](llm)
        except Exception as error:  # noqa: BLE001 - it is the result
            return {"raised": f"{type(error).__name__}: {error}"}


def run_one(config: dict[str, Any]) -> dict[str, Any]:
    """Start the engine, run the workloads, gather the evidence, stop the engine."""
    from vllm.config import VllmConfig
    from vllm.distributed import cleanup_dist_env_and_memory

    usual_in_flight = VllmConfig.max_concurrent_batches
    began = time.perf_counter()
    llm = start(config)
    core = llm.llm_engine.engine_core.engine_core
    preempted = count_preemptions(core.scheduler)
    seconds = {"start": time.perf_counter() - began}
    progress(f"{config['name']}: started in {seconds['start']:.1f} s")
    results, evidence = {}, {}
    try:
        for name in config["workloads"]:
            before = time.perf_counter()
            llm.collective_rpc("probe_start")
            preempted.clear()
            results[name] = run_workload(llm, name, config.get("fault"))
            evidence[name] = {
                "workers": llm.collective_rpc("probe_report"),
                "preemptions": len(preempted),
            }
            seconds[name] = time.perf_counter() - before
            progress(f"{config['name']}: {name} took {seconds[name]:.1f} s")
        engine = {
            "scheduler": type(core.scheduler).__name__,
            "executor": type(core.model_executor).__name__,
            "batch_queue_size": core.batch_queue_size,
        }
    finally:
        VllmConfig.max_concurrent_batches = usual_in_flight
        llm.llm_engine.engine_core.shutdown()
        if config["executor"] == "uni":
            # The next engine of this process needs the groups for itself.
            del llm, core
            cleanup_dist_env_and_memory()
        else:
            # Its message queues hold zmq contexts; to collect one whose worker
            # went away first can block for ever.
            KEPT.append(llm)
    return {
        "results": results,
        "evidence": {"engine": engine, "workloads": evidence},
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def main() -> None:
    configs = json.loads(Path(sys.argv[1]).read_text())
    configs = configs if isinstance(configs, list) else [configs]
    done = {config["name"]: run_one(config) for config in configs}
    Path(sys.argv[2]).write_text(json.dumps(done, indent=1, sort_keys=True))
    sys.stdout.flush()
    if KEPT:
        # Engines are shut down, the result is written: skip the destructors.
        os._exit(0)


if __name__ == "__main__":
    main()
