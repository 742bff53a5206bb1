"""A worker without a model or a device, and real executors that run it.

What the worker returns is decided by the tree's own ``GPUModelRunner``: where that
resolves its output itself in synchronous mode, the stub does so too. A base tree is
then the base runner on base executors, a grafted one the grafted on grafted.
"""

from __future__ import annotations

import ast
import ctypes
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from vllm.config import DeviceConfig, ParallelConfig, VllmConfig
from vllm.platforms import current_platform
from vllm.v1.executor.multiproc_executor import MultiprocExecutor, WorkerProc
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.worker_base import WorkerBase

from vllm_graft.proof.numbered import LARGE, NumberedOutput

RANKS: Final = 2  # workers of a MultiprocExecutor
SLOW: Final = 1.0  # seconds that a slow output takes to resolve
_RUNNER: Final = "vllm.v1.worker.gpu.model_runner"
_OVERFLOWING: Final = ("large", "overflow-not-sent")  # do not fit into a chunk
_PR_SET_PDEATHSIG: Final = 1  # of prctl(2)

# Set by a worker that has begun with a slow request; a driver's own.
_begun = multiprocessing.get_context("fork").Event()


class Request(NamedTuple):
    """What the worker is asked to do.

    Args:
        number: Comes back in the answer.
        fault: What shall go wrong; see :class:`StubWorker`.
    """

    number: int
    fault: str = ""


def runner_resolves() -> bool:
    """Whether the tree's runner calls ``get_output()`` when scheduling is synchronous.

    Read from the source that an import would run, a graft's included.

    Raises:
        LookupError: The tree has no such runner.
    """
    spec = find_spec(_RUNNER)
    source = getattr(spec and spec.loader, "get_source", lambda _: None)(_RUNNER)
    for node in ast.walk(ast.parse(source or "")):
        if isinstance(node, ast.FunctionDef) and node.name == "sample_tokens":
            calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
            names = {f.attr for f in calls if isinstance(f, ast.Attribute)}
            return "get_output" in names
    raise LookupError(f"{_RUNNER} has no sample_tokens")


def answer(request: Request) -> ModelRunnerOutput:
    """The right answer to a request."""
    filler = [bytes(LARGE)] if request.fault in _OVERFLOWING else []
    return ModelRunnerOutput(
        req_ids=["0"],
        req_id_to_index={"0": 0},
        sampled_token_ids=[[request.number]],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=filler,
    )


def is_answer(value: Any, request: Request) -> bool:
    """Whether it is the right answer; what cannot be pickled may stay in it."""
    if request.fault == "unpicklable" and isinstance(value, ModelRunnerOutput):
        value.pooler_output = []
    return bool(value == answer(request))


class StubOutput(AsyncModelRunnerOutput):  # type: ignore[misc]
    """Resolves to the answer, or fails as the request says."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def get_output(self) -> ModelRunnerOutput:
        """Called by whoever resolves it; for ``slow``, takes a while."""
        fault = self.request.fault
        if fault == "get-output-raises":
            message = f"get_output of {self.request.number}"
            raise ValueError(message) from OSError("the copy")
        if fault == "slow":
            time.sleep(SLOW)
        output = answer(self.request)
        if fault == "unpicklable":
            output.pooler_output = [threading.Lock()]
        return output


class StubWorker(WorkerBase):  # type: ignore[misc]
    """Its methods are called by name, through ``collective_rpc``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        asynchronous = self.vllm_config.scheduler_config.async_scheduling
        self.resolves = runner_resolves() and not asynchronous
        # A fault of what comes after the call; taken by the one it is meant for.
        self.pending = ""
        self.begun = _begun
        self.calls = 0

    def init_device(self) -> None:
        """Nothing to set up."""

    def load_model(self) -> None:
        """Nothing to load."""

    def sample_tokens(self, grammar_output: Request) -> Any:
        """What the tree's runner would return, or the request's fault."""
        request, fault = grammar_output, grammar_output.fault
        if fault == "call-raises":
            raise ValueError(f"call of {request.number}")
        if fault == "slow":
            self.begun.set()
        if fault == "worker-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "worker-stopped":
            # Whatever becomes of its parent, it must not stay.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGSTOP)
        self.pending = fault
        output = StubOutput(request)
        return output.get_output() if self.resolves else output

    def stress(self, number: int, fault: str, rank: int | None) -> Any:
        """See ``stress``: the call's number, the rank, and how many came before."""
        seen, self.calls = self.calls, self.calls + 1
        if rank is None and self.rank != RANKS - 1 and fault != "large":
            fault = ""
        output = NumberedOutput((number, self.rank, seen), fault)
        if fault == "plain":
            return output.get_output()
        if fault == "call-raises":
            raise ValueError(str(output))
        return output.get_output() if self.resolves else output


def break_sending() -> None:
    """Make the worker processes forked from now on fail where a request asks for it.

    ``handle-output-raises``: before anything is sent. ``send-fails-half-way``: after
    the response was written, when the reader is notified. ``overflow-not-sent``: after
    it was announced, when it goes by socket. ``nothing-sent``: whatever it is, and
    from then on.
    """
    original = WorkerProc.handle_output

    def handle_output(self: WorkerProc, output: Any) -> None:
        worker, queue = self.worker.worker, self.worker_response_mq
        fault, worker.pending = worker.pending, ""
        if fault == "handle-output-raises":
            raise OSError("handle_output")
        if fault == "send-fails-half-way":
            _fail_once(queue._spin_condition, "notify")  # noqa: SLF001
        if fault == "overflow-not-sent":
            queue.local_socket = SimpleNamespace(send_multipart=_fail)
        if fault == "nothing-sent":
            queue.enqueue = _fail
        original(self, output)

    WorkerProc.handle_output = handle_output


def break_threads() -> None:
    """Make threads of the worker processes forked from now on set no device."""

    def set_device(device: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(f"set_device of {device}")

    current_platform.set_device = set_device


def _fail(*_: Any, **__: Any) -> None:
    raise OSError("broken")


def _fail_once(owner: Any, name: str) -> None:
    def fail() -> None:
        delattr(owner, name)  # the class's own is back
        raise OSError(name)

    setattr(owner, name, fail)


class Driver:
    """A running executor, called as the engine core calls it.

    Args:
        executor: ``uni`` or ``mp``.
        asynchronous: Whether scheduling is.
        timeout: Seconds that a call of the workers may take; the methods of the
            executor take theirs from ``VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS``.
    """

    def __init__(self, executor: str, asynchronous: bool, timeout: float) -> None:
        global _begun  # noqa: PLW0603 - forked workers find it there
        self.begun = _begun = multiprocessing.get_context("fork").Event()
        self.asynchronous = asynchronous
        self.timeout = timeout
        kind = MultiprocExecutor if executor == "mp" else UniProcExecutor
        config = _config(executor, asynchronous)
        # Set late: the CPU platform has just asked for spawned workers.
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"
        self.executor = kind(config)
        self.queues: list[Any] = []
        if executor == "mp":
            self.queues += [self.executor.rpc_broadcast_mq, *self.executor.response_mqs]

    def step(self, request: Request) -> Any:
        """One answer: blocking, or the result of a future where asynchronous."""
        if self.asynchronous:
            return self.start(request).result()
        return self.executor.sample_tokens(request)

    def start(self, request: Request) -> Future[Any]:
        """A future of one answer."""
        future: Future[Any] = self.executor.sample_tokens(request, non_block=True)
        return future

    def start_slow(self, request: Request) -> Future[Any]:
        """A future of an answer that takes a while, once the worker has begun."""
        future = self.start(request._replace(fault="slow"))
        self.begun.wait(self.timeout)
        return future

    def all_ranks(self, request: Request) -> Any:
        """One answer, which every rank gives."""
        answers = self.executor.collective_rpc(
            "sample_tokens", self.timeout, (request,)
        )
        return answers[0] if answers == answers[:1] * RANKS else answers

    def alive(self) -> bool:
        """Whether the executor and all of its workers are."""
        workers = getattr(self.executor, "workers", [])
        failed = getattr(self.executor, "is_failed", False)
        return not failed and all(worker.proc.is_alive() for worker in workers)


def warm_up() -> None:
    """Import all that an executor does, so that processes forked later share it."""
    Driver("uni", asynchronous=False, timeout=0).executor.shutdown()


def _config(executor: str, asynchronous: bool) -> VllmConfig:
    config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        parallel_config=ParallelConfig(
            tensor_parallel_size=RANKS if executor == "mp" else 1,
            distributed_executor_backend=executor,
            worker_cls=f"{StubWorker.__module__}.{StubWorker.__qualname__}",
        ),
    )
    # Set late: platforms and defaults may decide otherwise on the way.
    config.scheduler_config.async_scheduling = asynchronous
    # All that the wrapper of the workers asks of a model.
    config.model_config = SimpleNamespace(
        is_multimodal_model=False, multimodal_config=None, is_hybrid=False
    )
    return config
