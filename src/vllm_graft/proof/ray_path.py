"""What crosses Ray's boundaries, on a local cluster of real Ray with stub workers.

    python -m vllm_graft.proof.ray_path FOLDER RESULT.json

It runs inside the environment that has vLLM and Ray; the tree under test is whatever
that imports. The cluster is this process's own, with its files in FOLDER (the path
must be short: it holds sockets). The result is one JSON object: ``addresses`` that
the cluster listens on; ``worker`` (calls of a `RayWorkerWrapper`); ``graph``
(`RayDistributedExecutor`, whose compiled graph calls ``execute_model_ray``); ``sync``
and ``async`` (`RayExecutorV2`); ``left``, the processes that its end left;
``seconds``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from vllm_graft.proof import leftovers
from vllm_graft.proof.ray_cluster import addresses, cluster, marked

RANKS: Final = {"sync": 2, "async": 1}  # workers of a RayExecutorV2
TIMEOUT: Final = 3  # seconds until a lost answer is given up
_STARTED: Final = 120  # seconds in which an actor must answer
_WORKER: Final = "vllm_graft.proof.ray_worker.StubWorker"


def shown(value: Any) -> Any:
    """A value as JSON; of an output its type and all that it says."""
    if isinstance(value, list):
        return [shown(one) for one in value]
    if value is None or isinstance(value, dict):
        return value
    if not hasattr(value, "req_ids"):
        return type(value).__name__
    logprobs = value.logprobs
    return {
        "type": type(value).__name__,
        "requests": value.req_ids,
        "tokens": value.sampled_token_ids,
        "logprobs": logprobs and [array.tolist() for array in logprobs[:3]],
        "pooled": value.pooler_output and [t.tolist() for t in value.pooler_output],
    }


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gave, or the error that reached its caller."""
    try:
        return shown(call())
    except Exception as error:  # noqa: BLE001 - it is the result
        cause = getattr(error, "cause", None) or error
        first = str(cause).strip().partition("\n")[0]
        return {"error": f"{type(cause).__name__}: {first}"[:160]}


def config(asynchronous: bool, ranks: int) -> Any:
    """A configuration without a model."""
    from vllm.config import DeviceConfig, ParallelConfig, VllmConfig  # noqa: PLC0415
    from vllm.platforms import current_platform  # noqa: PLC0415

    made = VllmConfig(
        device_config=DeviceConfig(device=current_platform.device_type),
        parallel_config=ParallelConfig(
            tensor_parallel_size=ranks,
            distributed_executor_backend="ray",
            worker_cls=_WORKER,
        ),
    )
    # Set late: platforms and defaults may decide otherwise on the way.
    made.scheduler_config.async_scheduling = asynchronous
    # All that is asked of a model.
    made.model_config = SimpleNamespace(
        is_multimodal_model=False,
        multimodal_config=None,
        is_hybrid=False,
        is_moe=False,
        runner_type="generate",
    )
    return made


def steps(executor: Any, first: int = 1) -> dict[str, Any]:
    """Ordinary steps and failing ones, called as the engine core does."""
    from vllm_graft.proof.ray_worker import Step  # noqa: PLC0415

    def step(number: int, fault: str = "") -> Any:
        executor.execute_model(Step(number, fault))
        return executor.sample_tokens(None)

    def start(number: int, fault: str = "") -> tuple[Any, Any]:
        executed = executor.execute_model(Step(number, fault), non_block=True)
        return executed, executor.sample_tokens(None, non_block=True)

    def later(fault: str = "") -> list[Any]:
        pending = [start(number, fault) for number in (first + 1, first + 2)]
        return [outcome(future.result) for pair in pending for future in pair]

    return {
        "blocking": outcome(lambda: step(first)),
        "two in flight": later(),
        "call raises": outcome(lambda: step(first + 3, "sample-raises")),
        "after it": outcome(lambda: step(first + 4)),
    }


def failing_output(executor: Any) -> dict[str, Any]:
    """A step whose output cannot be resolved, and one after it."""
    from vllm_graft.proof.ray_worker import Step  # noqa: PLC0415

    def step(number: int, fault: str = "") -> Any:
        executor.execute_model(Step(number, fault))
        return executor.sample_tokens(None)

    return {
        "get_output raises": outcome(lambda: step(6, "get-output-raises")),
        "after that": outcome(lambda: step(7)),
    }


def through_worker(actor: Any) -> dict[str, Any]:
    """Calls of one `RayWorkerWrapper`, each with its result sent through Ray."""
    import ray  # noqa: PLC0415

    from vllm_graft.proof.ray_worker import Step  # noqa: PLC0415

    def call(method: str, *arguments: Any) -> Any:
        remote = getattr(actor, method).remote(*arguments)
        return outcome(lambda: ray.get(remote, timeout=_STARTED))

    def rpc(method: str, *arguments: Any) -> Any:
        return call("execute_method", method, *arguments)

    found = {"sample": call("execute_model_ray", (Step(1), None))}
    found["report"] = rpc("report")
    found["call raises"] = call("execute_model_ray", (Step(2, "sample-raises"), None))
    failing = Step(3, "get-output-raises")
    found["get_output raises"] = call("execute_model_ray", (failing, None))
    found["after them"] = call("execute_model_ray", (Step(4), None))
    # As V1's runner does it: execute_model gives the pooled output itself.
    rpc("set_pooling", True, True)
    found["pooled by execute_model"] = call("execute_model_ray", (Step(5), None))
    # As V2's does it: execute_model gives None, and wants pool() to be called.
    rpc("set_pooling", True)
    found["pooling model"] = call("execute_model_ray", (Step(6), None))
    rpc("set_pooling", False)
    # The controls: by plain RPC nobody resolves an output.
    found["unresolved"] = rpc("unresolved", Step(7))
    rpc("execute_model", Step(8))
    found["sample_tokens by RPC"] = rpc("sample_tokens", None)
    return found


def through_graph() -> dict[str, dict[str, Any]]:
    """The executor with a compiled graph; it knows no asynchronous scheduling."""
    from vllm.v1.executor.ray_executor import RayDistributedExecutor  # noqa: PLC0415

    executor = RayDistributedExecutor(config(asynchronous=False, ranks=1))
    try:
        worker = through_worker(executor.workers[0])
        executor.collective_rpc("report")
        graph = {**steps(executor), **failing_output(executor)}
        graph["report"] = executor.collective_rpc("report")
    finally:
        executor.shutdown()
    return {"worker": worker, "graph": graph}


def through_queues(mode: str) -> dict[str, Any]:
    """RayExecutorV2, whose workers answer by vLLM's message queues."""
    from vllm.v1.executor.ray_executor_v2 import RayExecutorV2  # noqa: PLC0415

    from vllm_graft.proof.ray_worker import Step  # noqa: PLC0415

    executor = RayExecutorV2(config(mode == "async", RANKS[mode]))
    queues = [executor.rpc_broadcast_mq, *executor.response_mqs]
    segments = leftovers.segments_of(queues)
    contexts = [queue.local_socket.context for queue in queues]
    queues.clear()
    rpc = executor.collective_rpc
    try:
        found = steps(executor)
        rpc("execute_model", args=(Step(8),))
        found["all ranks"] = outcome(lambda: rpc("sample_tokens", args=(None,)))
        rpc("execute_model", args=(Step(9),))
        future = rpc("sample_tokens", args=(None,), non_block=True)
        found["all ranks, later"] = outcome(future.result)
        found["report"] = rpc("report")
        rpc("set_pooling", args=(True,))
        found["pooled"] = outcome(lambda: executor.execute_model(Step(5)))
        rpc("set_pooling", args=(False,))
        os.environ["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"] = str(TIMEOUT)
        found |= failing_output(executor)
    finally:
        os.environ.pop("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", None)
        executor.shutdown()
        for context in contexts:
            context.destroy(linger=0)
    found["segments left"] = leftovers.settle(lambda: leftovers.existing(segments), 1)
    leftovers.remove(segments)
    return found


def progress(what: str, began: float) -> None:
    """Say on stderr how far it got: what a hang was in."""
    sys.stderr.write(f"{time.monotonic() - began:6.1f} s: {what}\n")
    sys.stderr.flush()


def run(folder: Path) -> dict[str, Any]:
    """All of it; see the module's own description."""
    began = time.monotonic()
    found: dict[str, Any] = {}
    with cluster(folder, 1 + sum(RANKS.values())):
        found["addresses"] = addresses([*marked(str(folder)), os.getpid()])
        progress("cluster is up", began)
        found |= through_graph()
        progress("worker and compiled graph are done", began)
        for mode in RANKS:
            found[mode] = through_queues(mode)
            progress(f"RayExecutorV2, {mode}, is done", began)
    found["left"] = leftovers.settle(lambda: marked(str(folder)), 20)
    found["seconds"] = round(time.monotonic() - began, 1)
    return found


def main() -> None:
    """Run, and write the result."""
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"  # failures are what is asked for
    folder, result = map(Path, sys.argv[1:])
    result.write_text(json.dumps(run(folder), indent=1))


if __name__ == "__main__":
    main()
