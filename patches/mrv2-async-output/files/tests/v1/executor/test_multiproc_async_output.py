# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""MultiprocExecutor's workers send resolved outputs, or the error instead."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import pytest

from tests.v1.executor.stub_worker import TIMEOUT, make_output, make_vllm_config
from vllm.v1.executor.multiproc_executor import MultiprocExecutor

pytestmark = [pytest.mark.cpu_test, pytest.mark.skip_global_cleanup]

each_kind_of_output = pytest.mark.parametrize(
    "method", ["plain_output", "async_output"]
)
each_entry_point = pytest.mark.parametrize("method", ["execute_model", "sample_tokens"])
blocking_and_not = pytest.mark.parametrize(
    "non_block", [False, True], ids=["blocking", "non_blocking"]
)


@contextmanager
def running_executor(async_scheduling: bool) -> Iterator[MultiprocExecutor]:
    """An executor of two stub workers, each in a process of its own."""
    vllm_config = make_vllm_config("mp", 2, async_scheduling)
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


@pytest.fixture(
    scope="module", params=[False, True], ids=["sync_scheduling", "async_scheduling"]
)
def executor(request):
    with running_executor(async_scheduling=request.param) as executor:
        yield executor


@pytest.fixture
def sync_executor():
    """For one test alone, which ends the workers where it fails."""
    with running_executor(async_scheduling=False) as executor:
        yield executor


def call(executor, method, *args, rank=None, non_block=False):
    """The reply to an RPC of one rank, or the list of the replies of all."""
    reply = executor.collective_rpc(
        method,
        timeout=TIMEOUT,
        args=args,
        unique_reply_rank=rank,
        non_block=non_block,
    )
    if non_block:
        assert isinstance(reply, Future)
        return reply.result()
    return reply


@blocking_and_not
@each_kind_of_output
def test_one_rank_replies_with_resolved_output(executor, non_block, method):
    for rank in (0, 1):
        reply = call(executor, method, 7, rank=rank, non_block=non_block)
        assert reply == make_output(7)


@blocking_and_not
@each_kind_of_output
def test_all_ranks_reply_with_resolved_outputs(executor, non_block, method):
    replies = call(executor, method, 7, non_block=non_block)
    assert replies == [make_output(7), make_output(7)]


@blocking_and_not
@each_entry_point
def test_step_returns_resolved_output(executor, non_block, method):
    reply = getattr(executor, method)(7, non_block=non_block)
    assert (reply.result() if non_block else reply) == make_output(7)


def test_only_the_rank_asked_resolves_and_replies(executor):
    call(executor, "take_resolved")
    assert call(executor, "async_output", 7, rank=1) == make_output(7)
    with pytest.raises(RuntimeError, match="out of luck"):
        call(executor, "failing_call", "out of luck", rank=1)
    # Replies arrive in order, so a stray one of rank 0 would come first here.
    assert call(executor, "get_rank") == [0, 1]
    assert call(executor, "take_resolved") == [[], [7]]


def test_each_output_is_resolved_once_and_in_order(executor):
    call(executor, "take_resolved")
    futures = [
        executor.collective_rpc(method, TIMEOUT, args=(i,), non_block=True)
        for i, method in enumerate(["async_output", "plain_output"] * 4)
    ]
    # Asking for the last reply first must not mix up the ones before it.
    for i, future in reversed(list(enumerate(futures))):
        assert future.result() == [make_output(i), make_output(i)]
    assert call(executor, "take_resolved") == [[0, 2, 4, 6], [0, 2, 4, 6]]


@pytest.mark.parametrize("executor", [True], ids=["async_scheduling"], indirect=True)
def test_worker_goes_on_while_async_output_is_unresolved(executor):
    call(executor, "hold_outputs")
    held = executor.collective_rpc("async_output", TIMEOUT, args=(7,), non_block=True)
    # The workers run this although the output before it is still held.
    executor.collective_rpc("release_outputs", TIMEOUT)
    assert held.result() == [make_output(7), make_output(7)]


@blocking_and_not
def test_worker_survives_error_in_call(executor, non_block):
    with pytest.raises(RuntimeError, match="out of luck"):
        call(executor, "failing_call", "out of luck", rank=0, non_block=non_block)
    assert call(executor, "async_output", 8) == [make_output(8), make_output(8)]


@blocking_and_not
def test_worker_survives_error_in_get_output(sync_executor, non_block):
    with pytest.raises(RuntimeError, match="out of luck"):
        call(
            sync_executor,
            "failing_get_output",
            "out of luck",
            rank=0,
            non_block=non_block,
        )
    assert call(sync_executor, "async_output", 8) == [make_output(8), make_output(8)]


@blocking_and_not
def test_worker_survives_reply_that_cannot_be_sent(sync_executor, non_block):
    with pytest.raises(RuntimeError, match="pickle"):
        call(sync_executor, "unpicklable_output", rank=0, non_block=non_block)
    assert call(sync_executor, "async_output", 8) == [make_output(8), make_output(8)]
