"""A process that times what it is asked to, so that two trees can take turns.

    python -m vllm_graft.proof.cost rpc|steps EXECUTOR SCHEDULING

``rpc`` drives a real executor with stub workers, ``steps`` a real engine with a tiny
model. It writes ``{"ready": …}`` once it is up, and then answers every line of JSON
on its standard input with one on its standard output, ``{"wall": …, "cpu": …}``, in
seconds. A request of ``rpc`` is ``{"calls": N, "large": BOOL}``, one of ``steps``
``{"tokens": N}``, for each of the prompts; its answer also has ``generated``. Ends
with its input.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import IO, Any

PROMPTS = 4
Task = Callable[[dict[str, Any]], int]


def rpc(executor: str, asynchronous: bool) -> tuple[Task, dict[str, Any]]:
    """Calls of an executor, one after another; and what they run on."""
    # The messages of every call would be part of what it costs.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm_graft.proof.stub import Driver, Request, runner_resolves  # noqa: PLC0415

    driver = Driver(executor, asynchronous, timeout=60)

    def calls(request: dict[str, Any]) -> int:
        asked = Request(1, "large" if request["large"] else "")
        for _ in range(request["calls"]):
            driver.step(asked)
        return int(request["calls"])

    return calls, {"runner_resolves": runner_resolves()}


def steps(executor: str, asynchronous: bool) -> tuple[Task, dict[str, Any]]:
    """Tokens of an engine, generated greedily; and what they run on."""
    from vllm import SamplingParams  # noqa: PLC0415

    from vllm_graft.proof import driver, workloads  # noqa: PLC0415
    from vllm_graft.proof.stub import runner_resolves  # noqa: PLC0415

    llm = driver.start(
        {"model": "llama", "executor": executor, "asynchronous": asynchronous}
    )
    driver.KEPT.append(llm)
    prompts = workloads.SHORT[:PROMPTS]

    def generate(request: dict[str, Any]) -> int:
        params = SamplingParams(
            temperature=0, max_tokens=request["tokens"], ignore_eos=True
        )
        results = workloads.run(llm, prompts, params)
        return sum(len(one["outputs"][0]["tokens"]) for one in results)

    core = llm.llm_engine.engine_core.engine_core
    return generate, {
        "runner_resolves": runner_resolves(),
        "scheduler": type(core.scheduler).__name__,
    }


def serve(task: Task, requests: IO[str], answers: IO[str]) -> None:
    """Answer each request, until there are no more."""
    for line in requests:
        wall, cpu = time.perf_counter(), time.process_time()
        done = task(json.loads(line))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        _write(answers, {"wall": wall, "cpu": cpu, "generated": done})


def _write(answers: IO[str], value: Any) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(prog="cost")
    parser.add_argument("kind", choices=["rpc", "steps"])
    parser.add_argument("executor", choices=["uni", "mp"])
    parser.add_argument("scheduling", choices=["sync", "async"])
    arguments = parser.parse_args()
    # Whatever vLLM prints is not an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    make = rpc if arguments.kind == "rpc" else steps
    task, about = make(arguments.executor, arguments.scheduling == "async")
    _write(answers, {"ready": about})
    serve(task, sys.stdin, answers)
    # Destructors of message queues can block; see `driver`. Workers notice the end.
    os._exit(0)


if __name__ == "__main__":
    main()
