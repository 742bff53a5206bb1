# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""Whatever fails on an output's way, each caller of MultiprocExecutor gets an answer.

The worker is a stub, so that no model and no device is needed. Its processes are
forked, and find what is replaced here replaced there.
"""

import inspect
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from vllm.config import DeviceConfig, ParallelConfig, VllmConfig
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from vllm.platforms import current_platform
from vllm.v1.executor.multiproc_executor import MultiprocExecutor, WorkerProc
from vllm.v1.outputs import AsyncModelRunnerOutput
from vllm.v1.worker.worker_base import WorkerBase

pytestmark = [pytest.mark.cpu_test, pytest.mark.skip_global_cleanup]

# Seconds that an RPC may take. Who waits that long was not answered.
TIMEOUT = 10

# Bytes that do not fit into a block of a worker's queue, and go by socket.
LARGE = 25 * 2**20

# What sending does in this process: "fails at once", "fails half way", where the
# block is written, or "fails by socket".
sending = ""

in_both_modes = pytest.mark.parametrize(
    "async_scheduling", [False, True], ids=["sync_scheduling", "async_scheduling"]
)


class StubOutput(AsyncModelRunnerOutput):
    def __init__(self, value: object):
        self.value = value

    def get_output(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class StubWorker(WorkerBase):
    """Its methods are called by name through `collective_rpc`."""

    def init_device(self) -> None:
        self.device = "stub"

    def load_model(self) -> None:
        pass

    def plain(self, number: int) -> int:
        return number

    def resolved(self, number: int) -> AsyncModelRunnerOutput:
        return StubOutput(number)

    def failing_call(self, text: str) -> None:
        try:
            raise OSError("device lost")
        except OSError as e:
            raise ValueError(text) from e

    def failing_get_output(self, text: str) -> AsyncModelRunnerOutput:
        try:
            self.failing_call(text)
        except ValueError as e:
            return StubOutput(e)

    def unpicklable(self, _: object) -> AsyncModelRunnerOutput:
        return StubOutput(threading.Lock())

    def failing_send(self, how: str) -> AsyncModelRunnerOutput:
        global sending
        sending = how
        return StubOutput(bytes(LARGE) if how == "fails by socket" else how)


class BrokenSocket:
    def send_multipart(self, *args, **kwargs):
        raise OSError("the socket is broken")


@contextmanager
def running_executor(async_scheduling: bool) -> Iterator[MultiprocExecutor]:
    """An executor of two stub workers, each in a process of its own."""
    vllm_config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        parallel_config=ParallelConfig(
            tensor_parallel_size=2,
            distributed_executor_backend="mp",
            worker_cls=f"{StubWorker.__module__}.{StubWorker.__qualname__}",
        ),
    )
    # Set late: platforms and defaults may decide otherwise on the way.
    vllm_config.scheduler_config.async_scheduling = async_scheduling
    # All that the worker's wrapper asks of a model.
    vllm_config.model_config = SimpleNamespace(
        is_multimodal_model=False, multimodal_config=None, is_hybrid=False
    )
    with ExitStack() as stack:
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        # The stub needs no core of its own, nor a fresh interpreter.
        monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork")
        executor = MultiprocExecutor(vllm_config)
        for queue in (executor.rpc_broadcast_mq, *executor.response_mqs):
            # The traceback of a failed call keeps its queue in a reference cycle.
            # Collecting that may end the context before its sockets, and blocks.
            stack.callback(queue.local_socket.context.destroy, linger=0)
        stack.callback(executor.shutdown)
        yield executor


@pytest.fixture
def executor(async_scheduling, monkeypatch):
    enqueue, acquire_write = MessageQueue.enqueue, MessageQueue.acquire_write

    def enqueue_or_fail(self, *args, **kwargs):
        if sending == "fails at once":
            raise OSError("the queue is broken")
        if sending == "fails by socket":
            monkeypatch.setattr(self, "local_socket", BrokenSocket())
        return enqueue(self, *args, **kwargs)

    @contextmanager
    def acquire_write_and_fail(self, *args, **kwargs):
        global sending
        with acquire_write(self, *args, **kwargs) as buffer:
            yield buffer
        if sending == "fails half way":
            sending = ""  # what is sent next would go out
            raise OSError("the reader is not notified")

    monkeypatch.setattr(MessageQueue, "enqueue", enqueue_or_fail)
    monkeypatch.setattr(MessageQueue, "acquire_write", acquire_write_and_fail)
    with running_executor(async_scheduling) as executor:
        yield executor


@pytest.fixture
def executor_without_device(monkeypatch):
    def set_device(device):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("no device for threads")

    monkeypatch.setattr(current_platform, "set_device", set_device)
    with running_executor(async_scheduling=True) as executor:
        yield executor


def start(executor, method, arg, rank=0):
    return executor.collective_rpc(
        method, TIMEOUT, args=(arg,), non_block=True, unique_reply_rank=rank
    )


def call(executor, method, arg, rank=0):
    return start(executor, method, arg, rank).result()


def wait_until_failed(executor) -> bool:
    failed = threading.Event()
    executor.register_failure_callback(failed.set)
    return failed.wait(TIMEOUT)


@in_both_modes
@pytest.mark.parametrize("method", ["failing_call", "failing_get_output"])
def test_caller_is_told_the_error_and_its_cause(executor, method):
    said = "ValueError: out of luck, caused by OSError: device lost"
    with pytest.raises(RuntimeError, match=said):
        call(executor, method, "out of luck")
    assert call(executor, "resolved", 8) == 8


@in_both_modes
def test_caller_is_told_that_output_cannot_be_pickled(executor):
    with pytest.raises(RuntimeError, match="TypeError: cannot pickle"):
        call(executor, "unpicklable", None)
    assert call(executor, "resolved", 8) == 8


@in_both_modes
def test_caller_is_told_that_large_output_cannot_be_sent(executor):
    with pytest.raises(RuntimeError, match="OSError: the socket is broken"):
        call(executor, "failing_send", "fails by socket")
    assert call(executor, "resolved", 8) == 8


@in_both_modes
def test_each_call_gets_its_own_answer(executor):
    failures = {
        "failing_call": "number {} ",
        "failing_get_output": "number {} ",
        "unpicklable": "cannot pickle",
    }
    methods = ["resolved", "failing_get_output", "plain", "unpicklable", "failing_call"]
    for first in range(0, 60, 5):
        numbers = range(first, first + 5)
        futures = []
        for number, method in zip(numbers, methods):
            arg = f"number {number} " if method in failures else number
            futures.append(start(executor, method, arg, rank=number % 2))
        # Asking for the last answer first must not mix up the ones before it.
        for number, method, future in reversed(list(zip(numbers, methods, futures))):
            if method in failures:
                with pytest.raises(RuntimeError, match=failures[method].format(number)):
                    future.result()
            else:
                assert future.result() == number


@in_both_modes
def test_worker_ends_when_response_fails_half_way(executor):
    # The response is out, so that this one may still be answered.
    try:
        assert call(executor, "failing_send", "fails half way") == "fails half way"
    except RuntimeError as e:
        assert "cancelled" in str(e)
    assert wait_until_failed(executor)


@in_both_modes
def test_worker_ends_when_not_even_failure_can_be_sent(executor):
    with pytest.raises(RuntimeError, match="cancelled"):
        call(executor, "failing_send", "fails at once")
    assert wait_until_failed(executor)


@pytest.mark.skipif(
    "set_device" not in inspect.getsource(WorkerProc.async_output_busy_loop),
    reason="the output thread does not set a device",
)
def test_output_is_not_resolved_on_another_device(executor_without_device):
    executor = executor_without_device
    for _ in range(2):
        with pytest.raises(RuntimeError, match="RuntimeError: no device for threads"):
            call(executor, "resolved", 7)
        assert call(executor, "plain", 8) == 8
    with pytest.raises(RuntimeError, match="ValueError: out of luck"):
        call(executor, "failing_call", "out of luck")
