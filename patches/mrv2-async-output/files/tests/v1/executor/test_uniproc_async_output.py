# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""UniProcExecutor hands out resolved outputs, whichever way it is called."""

from concurrent.futures import Future

import pytest

from tests.v1.executor.stub_worker import make_output, make_vllm_config
from vllm.v1.executor.uniproc_executor import UniProcExecutor

pytestmark = [pytest.mark.cpu_test, pytest.mark.skip_global_cleanup]

each_kind_of_output = pytest.mark.parametrize(
    "method", ["plain_output", "async_output"]
)
each_entry_point = pytest.mark.parametrize("method", ["execute_model", "sample_tokens"])
each_reply_form = pytest.mark.parametrize("single_value", [True, False])
each_failure = pytest.mark.parametrize("method", ["failing_call", "failing_get_output"])


@pytest.fixture(params=[False, True], ids=["sync_scheduling", "async_scheduling"])
def executor(request):
    config = make_vllm_config("uni", async_scheduling=request.param)
    executor = UniProcExecutor(config)
    yield executor
    executor.shutdown()


@each_reply_form
@each_kind_of_output
def test_blocking_call_returns_resolved_output(executor, method, single_value):
    reply = executor.collective_rpc(method, args=(7,), single_value=single_value)
    assert reply == (make_output(7) if single_value else [make_output(7)])


@each_reply_form
@each_kind_of_output
def test_non_blocking_call_returns_future_of_resolved_output(
    executor, method, single_value
):
    future = executor.collective_rpc(
        method, args=(7,), non_block=True, single_value=single_value
    )
    assert isinstance(future, Future)
    assert future.result() == (make_output(7) if single_value else [make_output(7)])


@each_entry_point
def test_blocking_step_returns_resolved_output(executor, method):
    assert getattr(executor, method)(7) == make_output(7)


@each_entry_point
def test_non_blocking_step_returns_future_of_resolved_output(executor, method):
    future = getattr(executor, method)(7, non_block=True)
    assert future.result() == make_output(7)


def test_non_blocking_call_does_not_wait_for_output(executor):
    executor.collective_rpc("hold_outputs")
    future = executor.collective_rpc("async_output", args=(7,), non_block=True)
    assert executor.collective_rpc("take_resolved") == [[]]
    executor.collective_rpc("release_outputs")
    assert future.result() == [make_output(7)]


@each_reply_form
@each_failure
def test_blocking_call_raises_error(executor, method, single_value):
    with pytest.raises(ValueError, match="out of luck"):
        executor.collective_rpc(
            method, args=("out of luck",), single_value=single_value
        )
    assert executor.collective_rpc("plain_output", args=(8,)) == [make_output(8)]


@each_reply_form
@each_failure
def test_non_blocking_call_returns_future_of_error(executor, method, single_value):
    future = executor.collective_rpc(
        method, args=("out of luck",), non_block=True, single_value=single_value
    )
    with pytest.raises(ValueError, match="out of luck"):
        future.result()
    future = executor.collective_rpc("async_output", args=(8,), non_block=True)
    assert future.result() == [make_output(8)]


def test_blocking_calls_resolve_each_output_once_and_in_order(executor):
    for token_id in range(4):
        executor.collective_rpc("async_output", args=(token_id,))
    assert executor.collective_rpc("take_resolved", single_value=True) == [0, 1, 2, 3]


def test_non_blocking_calls_resolve_each_output_once_and_in_order(executor):
    futures = [
        executor.collective_rpc("async_output", args=(token_id,), non_block=True)
        for token_id in range(4)
    ]
    assert [f.result() for f in futures] == [[make_output(i)] for i in range(4)]
    assert [f.result() for f in futures] == [[make_output(i)] for i in range(4)]
    assert executor.collective_rpc("take_resolved", single_value=True) == [0, 1, 2, 3]
