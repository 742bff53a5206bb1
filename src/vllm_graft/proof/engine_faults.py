"""What faults lead to for the client of a real engine, on a tiny model.

    python -m vllm_graft.proof.engine_faults [--output FILE] [--only FAULT]…
        [--executor uni|mp]…

It needs the environment of ``configurations.driver_environment``. The client is an
``AsyncLLM``, its engine core a process of its own, and with ``mp`` the worker
another. The records are those of ``records.Record``: ``caller`` and ``next_call``
are what a request of the client gives, ``goes_on`` is whether the engine does.
"""

# ruff: noqa: PLC0415 - vLLM is imported only once a process needs it

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from vllm_graft.proof import leftovers
from vllm_graft.proof.isolate import run_each
from vllm_graft.proof.records import ANSWERED, Case, Record

FAULTS: Final = ("sample-raises", "get-output-raises", "worker-killed", "client-aborts")
EXECUTORS: Final = ("uni", "mp")
STEP: Final = 3  # the step of the request that the fault meets
TIMEOUT: Final = 20  # seconds that an RPC may take; Triton's interpreter is slow
LIMIT: Final = 240  # seconds that a case may take
AT_ONCE: Final = 2
# Seconds that the engine gets to end. After its own 5, which a busy machine may need,
# vLLM kills the core with its resource tracker, and shared memory stays for good.
GRACE: Final = 60
_TOKENS: Final = 6
_PROMPTS: Final = ([5, 9, 30], [40, 41, 42, 43], [200])


class Saboteur:
    """Extension of the worker: puts a fault in."""

    model_runner: Any

    def arm(self, fault: str, step: int) -> None:
        """Let the fault happen at a step from now, counted from 1; once."""
        from vllm.v1.worker.gpu.async_utils import AsyncOutput

        owner, name = self.model_runner, "sample_tokens"
        if fault == "get-output-raises":
            owner, name = AsyncOutput, "get_output"
        original = getattr(owner, name)
        steps = iter(range(1, step + 1))

        def sabotaged(*args: Any, **kwargs: Any) -> Any:
            if next(steps, 0) == step:
                if fault == "worker-killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError(f"{name} of step {step}")
            return original(*args, **kwargs)

        setattr(owner, name, sabotaged)


def cases(names: Sequence[str], executors: Sequence[str]) -> list[Case]:
    """The faults and executors named, or all, in both scheduling modes."""
    return [
        Case(name, scheduling, executor)
        for name in names or FAULTS
        for executor in executors or EXECUTORS
        for scheduling in ("sync", "async")
    ]


def start(case: Case) -> Any:
    """The client of a new engine."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    from vllm_graft.proof.driver import BASE_OPTIONS, model_folder

    extension = f"{Saboteur.__module__}.{Saboteur.__qualname__}"
    arguments = AsyncEngineArgs(
        model=model_folder("llama"),
        distributed_executor_backend=case.executor,
        async_scheduling=case.scheduling == "async",
        **{**BASE_OPTIONS, "worker_extension_cls": extension},
    )
    config = arguments.create_engine_config()
    # Set late: the CPU platform has just asked for mp, and for spawned processes,
    # which would import everything again.
    config.parallel_config.distributed_executor_backend = case.executor
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"
    return AsyncLLM.from_vllm_config(config, disable_log_stats=True)


async def generate(client: Any, name: str, prompt: list[int], stop_at: int = 0) -> Any:
    """The tokens of one request; with ``stop_at``, left in mid-stream."""
    from vllm import SamplingParams

    params = SamplingParams(temperature=0, max_tokens=_TOKENS, ignore_eos=True)
    tokens: list[int] = []
    stream = client.generate({"prompt_token_ids": prompt}, params, request_id=name)
    async for output in stream:
        tokens = list(output.outputs[0].token_ids)
        if stop_at and len(tokens) >= stop_at:
            await stream.aclose()
            await client.abort(name)
            break
    return tokens


async def outcome(client: Any, name: str, right: Any, leave_first: bool = False) -> str:
    """What reaches a client that asks for all prompts at once."""
    asked = [
        generate(client, f"{name}-{i}", prompt, STEP if leave_first and i == 0 else 0)
        for i, prompt in enumerate(_PROMPTS)
    ]
    got = await asyncio.gather(*asked, return_exceptions=True)
    errors = [f"{type(e).__name__}: {e}" for e in got if isinstance(e, BaseException)]
    if errors:
        return errors[0][:200]
    compared = got[1:] if leave_first else got
    wanted = right[1:] if leave_first else right
    return ANSWERED if compared == wanted else f"wrong answer: {compared}"


async def observe(case: Case) -> tuple[Record, list[str]]:
    """One record, as seen by the client, and the segments in use."""
    client = start(case)
    asked = [generate(client, f"right-{i}", p) for i, p in enumerate(_PROMPTS)]
    right = await asyncio.gather(*asked)
    segments = leftovers.mapped(os.getpid())
    processes = leftovers.in_session(os.getpid())
    if len(processes) != {"uni": 1, "mp": 2}[case.executor]:
        raise AssertionError(f"{case}: the engine is {list(processes.values())}")
    aborts = case.fault == "client-aborts"
    if not aborts:
        await client.collective_rpc("arm", args=(case.fault, STEP))
    began = time.monotonic()
    caller = await outcome(client, "struck", right, leave_first=aborts)
    seconds = round(time.monotonic() - began, 2)
    next_call = await outcome(client, "next", right)
    goes_on = not client.errored
    client.shutdown(timeout=GRACE)
    session = os.getpid()
    left = leftovers.settle(lambda: leftovers.in_session(session), 15)
    segments_left = leftovers.settle(lambda: leftovers.existing(segments), 2)
    record = Record(*case, caller, seconds, goes_on, next_call, left, segments_left)
    return record, segments


def run(names: Sequence[str], executors: Sequence[str]) -> dict[str, Any]:
    """All records, under the key of ``faults``' own."""
    import vllm

    from vllm_graft.proof import faults, stub

    began = time.monotonic()
    stub.warm_up()
    todo = cases(names, executors)
    jobs = [functools.partial(_observe, case) for case in todo]
    done = {}
    for ended in run_each(jobs, LIMIT, AT_ONCE):
        done[todo[ended.job]] = faults.complete(todo[ended.job], ended)
    return {
        "tree": {
            "vllm_version": vllm.__version__,
            "runner_resolves": stub.runner_resolves(),
        },
        "records": [done[case]._asdict() for case in todo],
        "seconds": round(time.monotonic() - began, 1),
    }


def _observe(case: Case) -> tuple[Record, list[str]]:
    return asyncio.run(observe(case))


def main() -> None:
    parser = argparse.ArgumentParser(prog="engine_faults")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", action="append", choices=FAULTS, default=[])
    parser.add_argument("--executor", action="append", choices=EXECUTORS, default=[])
    arguments = parser.parse_args()
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    os.environ["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"] = str(TIMEOUT)
    with tempfile.TemporaryDirectory() as sockets:
        os.environ["VLLM_RPC_BASE_PATH"] = sockets
        result = json.dumps(run(arguments.only, arguments.executor), indent=1)
    if arguments.output:
        arguments.output.write_text(result)
    else:
        sys.stdout.write(result + "\n")


if __name__ == "__main__":
    main()
