"""Run configurations on a real engine and write what came out as JSON.

    python -m vllm_graft.proof.driver CONFIG.json RESULT.json

CONFIG is one configuration or a list of them, run in this process in turn, with
the environment of ``configurations.driver_environment``. A configuration:
``name``; ``model`` and, optional, ``draft`` (a folder, or a kind of
``models.make``); ``executor`` (``uni`` or ``mp``); ``asynchronous``; ``options``
(more arguments of ``LLM``); ``workloads`` (names); ``in_flight`` (optional: how
many steps the engine lets run before it resolves the oldest; ``uni`` only);
``fault`` (optional: a module and a name; the module's ``inject(name, engine)`` is
a context in which each workload runs, and a workload's exception is then its
result).

RESULT has for each configuration, by its name: ``results`` (by workload; what must
be equal), ``evidence`` and ``seconds``. It is written after every configuration. One
that fails has ``error`` too, and ends the process: what an engine leaves behind when
it fails is not to meet the next one.
"""

# ruff: noqa: PLC0415 - vLLM is imported only once a configuration asks for it

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from vllm_graft.cache import cache_dir

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
    "worker_extension_cls": "vllm_graft.proof.probe.Probe",
}


def model_folder(model: str) -> str:
    """The folder of a model, which is made in the cache where a kind is named."""
    if os.sep in model:
        return model
    from vllm_graft.proof.models import make

    return str(make(model, cache_dir("models")))


def preload() -> None:
    """Import what a worker would, so that forked ones need not, each for itself."""
    from vllm.platforms import current_platform

    names = ["vllm.model_executor.models.llama", "vllm.v1.worker.gpu.model_runner"]
    if current_platform.is_cpu():
        names += ["vllm.v1.worker.cpu_worker", "vllm.v1.worker.cpu_model_runner"]
        # The model is compiled, if only to be run as it is.
        names += ["torch._inductor.codegen.triton"]
    for name in names:
        import_module(name)


def start(config: dict[str, Any]) -> Any:
    """The engine of a configuration."""
    from vllm import LLM

    if config["executor"] == "mp":
        preload()
    from vllm.config import VllmConfig

    if config.get("in_flight"):
        # Sizes the engine's queue of unresolved outputs and the runner's buffers.
        VllmConfig.max_concurrent_batches = property(lambda _: config["in_flight"])
    options = {**BASE_OPTIONS, **config.get("options", {})}
    if config.get("draft"):
        options["speculative_config"] = {
            "method": "eagle",
            "model": model_folder(config["draft"]),
            "num_speculative_tokens": config.get("speculative_tokens", 3),
        }
    return LLM(
        model=model_folder(config["model"]),
        distributed_executor_backend=config["executor"],
        async_scheduling=config["asynchronous"],
        **options,
    )


def count_preemptions(scheduler: Any) -> list[str]:
    """A list that gets each preempted request's id."""
    preempted: list[str] = []
    original = scheduler._preempt_request  # noqa: SLF001 - it has no public hook

    def counted(request: Any, *args: Any, **kwargs: Any) -> Any:
        preempted.append(request.request_id)
        return original(request, *args, **kwargs)

    scheduler._preempt_request = counted  # noqa: SLF001
    return preempted


def progress(line: str) -> None:
    """Say in the log how far it got: what a hang was in."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def run_workload(llm: Any, name: str, fault: tuple[str, str] | None) -> Any:
    """A workload's result; with a fault, also the exception that it led to."""
    from vllm_graft.proof.workloads import WORKLOADS

    if fault is None:
        return WORKLOADS[name](llm)
    module, fault_name = fault
    with import_module(module).inject(fault_name, llm.llm_engine):
        try:
            return WORKLOADS[name](llm)
        except Exception as error:  # noqa: BLE001 - it is the result
            return {"raised": f"{type(error).__name__}: {error}"}


def run_one(config: dict[str, Any], record: dict[str, Any]) -> None:
    """Start the engine, run the workloads, stop the engine.

    Args:
        config: See above.
        record: Gets what the result has of this configuration, as it becomes known.
    """
    from vllm.config import VllmConfig
    from vllm.distributed import cleanup_dist_env_and_memory

    usual_in_flight = VllmConfig.max_concurrent_batches
    began = time.perf_counter()
    llm = start(config)
    core = llm.llm_engine.engine_core.engine_core
    record["seconds"] = {"start": round(time.perf_counter() - began, 2)}
    record["evidence"] = {
        "engine": {
            "scheduler": type(core.scheduler).__name__,
            "executor": type(core.model_executor).__name__,
            "batch_queue_size": core.batch_queue_size,
        },
        "workloads": {},
    }
    progress(f"{config['name']}: started in {record['seconds']['start']:.1f} s")
    try:
        run_workloads(config, llm, record)
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


def run_workloads(config: dict[str, Any], llm: Any, record: dict[str, Any]) -> None:
    """Run the workloads and gather the evidence."""
    preempted = count_preemptions(llm.llm_engine.engine_core.engine_core.scheduler)
    for name in config["workloads"]:
        before = time.perf_counter()
        llm.collective_rpc("probe_start")
        preempted.clear()
        result = run_workload(llm, name, config.get("fault"))
        record["evidence"]["workloads"][name] = {
            "workers": llm.collective_rpc("probe_report"),
            "preemptions": len(preempted),
        }
        record["results"][name] = result
        took = record["seconds"][name] = round(time.perf_counter() - before, 2)
        progress(f"{config['name']}: {name} took {took:.1f} s")


def main() -> int:
    """Run every configuration; 1 where one failed."""
    configs = json.loads(Path(sys.argv[1]).read_text())
    done: dict[str, Any] = {}
    code = 0
    for config in configs if isinstance(configs, list) else [configs]:
        record = done[config["name"]] = {"results": {}, "evidence": {}, "seconds": {}}
        try:
            run_one(config, record)
        except Exception as error:  # noqa: BLE001 - it is the result
            traceback.print_exc()
            record["error"] = f"{type(error).__name__}: {error}"
            code = 1
        Path(sys.argv[2]).write_text(json.dumps(done, indent=1, sort_keys=True))
        if code:
            break
    sys.stdout.flush()
    if KEPT:
        # Engines are shut down, the result is written: skip the destructors.
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
