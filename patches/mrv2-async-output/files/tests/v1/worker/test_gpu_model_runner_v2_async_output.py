# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""The V2 model runner returns its output unresolved, in both scheduling modes."""

import gc
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch

from tests.v1.worker.tiny_engine import PROMPTS, Step, assert_same, tiny_engines
from vllm.triton_utils import HAS_TRITON
from vllm.v1.outputs import (
    EMPTY_MODEL_RUNNER_OUTPUT,
    AsyncModelRunnerOutput,
    ModelRunnerOutput,
)
from vllm.v1.worker.gpu.async_utils import AsyncOutput, AsyncPoolingOutput

pytestmark = [
    # The engines outlive a test.
    pytest.mark.skip_global_cleanup,
    pytest.mark.skipif(not HAS_TRITON, reason="Model Runner V2 needs Triton"),
]

each_method = pytest.mark.parametrize(
    "pooling", [False, True], ids=["sample_tokens", "pool"], scope="module"
)
each_scheduling_mode = pytest.mark.parametrize(
    "async_scheduling",
    [False, True],
    ids=["sync_scheduling", "async_scheduling"],
    scope="module",
)

# A step on a CPU takes as long as many on a GPU.
NUM_STEPS = 500 if torch.cuda.is_available() else 10
# About a second; a step of the tiny model takes a few milliseconds.
BUSY_CYCLES = 2_000_000_000
# What the caching allocator gives to the smallest of tensors.
BLOCK_BYTES = 512


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    with tiny_engines(tmp_path_factory.mktemp("tiny-llama")) as engines:
        yield engines


@pytest.fixture
def engine(engines, pooling, async_scheduling):
    engine = engines.get(pooling=pooling, async_scheduling=async_scheduling)
    yield engine
    engine.abort_all()


@pytest.fixture
def streams(engine):
    """The runner's streams, if they are more than placeholders."""
    if not hasattr(torch.cuda.Event, "query"):
        pytest.skip("this platform has placeholders for streams and events")
    return SimpleNamespace(
        main=engine.runner.main_stream, copy=engine.runner.output_copy_stream
    )


def keep_busy(stream):
    """Make a stream lag behind the host.

    Without a GPU, streams are stand-ins that do not copy to the host until it
    waits for them: as late as can be without this.
    """
    if torch.cuda.is_available():
        with torch.cuda.stream(stream):
            torch.cuda._sleep(BUSY_CYCLES)


@each_scheduling_mode
@each_method
def test_last_rank_returns_async_output(engine, pooling):
    request_id = engine.add(PROMPTS[0])
    scheduled, returned = engine.step()
    assert isinstance(returned, AsyncPoolingOutput if pooling else AsyncOutput)
    output = returned.get_output()
    assert isinstance(output, ModelRunnerOutput)
    assert output.req_ids == [request_id]
    engine.update(scheduled, output)
    assert_same(engine.finish(), engine.expected[1])


@each_scheduling_mode
@each_method
def test_other_ranks_return_only_the_kv_connector_output(engine, monkeypatch):
    engine.add(PROMPTS[0])
    engine.execute()
    # Stands for what the last rank broadcasts: all requests decode next.
    peer = SimpleNamespace(receive=lambda input_batch: True)
    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "is_last_pp_rank", False)
        patch.setattr(engine.runner, "pp_handler", peer)
        assert engine.sample_or_pool() is EMPTY_MODEL_RUNNER_OUTPUT


@each_scheduling_mode
@each_method
def test_returns_none_after_failed_execute_model(engine, monkeypatch):
    def failing_model(**inputs):
        raise ValueError("out of luck")

    engine.add(PROMPTS[0])
    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "model", failing_model)
        with pytest.raises(ValueError, match="out of luck"):
            engine.execute()
    assert engine.sample_or_pool() is None


@each_scheduling_mode
@each_method
def test_runner_does_not_know_the_scheduling_mode(engine):
    assert not hasattr(engine.runner, "use_async_scheduling")


def call_executor(engine, non_block):
    """The executor's last call of a step, whose reply goes to the engine core."""
    if engine.pooling:
        scheduled = engine.schedule()
        return scheduled, engine.executor.execute_model(scheduled, non_block=non_block)
    scheduled = engine.execute()
    return scheduled, engine.executor.sample_tokens(None, non_block=non_block)


@each_scheduling_mode
@each_method
def test_executor_resolves_output_in_blocking_call(engine):
    engine.add(PROMPTS[0])
    scheduled, reply = call_executor(engine, non_block=False)
    assert isinstance(reply, ModelRunnerOutput)
    engine.update(scheduled, reply)
    assert_same(engine.finish(), engine.expected[1])


@each_scheduling_mode
@each_method
def test_executor_leaves_output_to_future_in_non_blocking_call(engine):
    engine.add(PROMPTS[0])
    scheduled, reply = call_executor(engine, non_block=True)
    assert isinstance(reply, Future)
    assert not reply.done()
    engine.update(scheduled, reply.result())
    assert_same(engine.finish(), engine.expected[1])


@each_scheduling_mode
@each_method
def test_outputs_resolved_late_keep_their_values(engine, streams):
    keep_busy(streams.copy)
    steps = []
    for prompt in PROMPTS:
        engine.add(prompt)
        steps.append(engine.step())
        # More steps are held than the runner has input buffers for. Wait for the
        # model, but not for the copy of its output.
        streams.main.synchronize()
    for step in steps:
        assert isinstance(step.returned, AsyncModelRunnerOutput)
        engine.update(step.scheduled, step.resolve())
    assert_same(engine.finish(), engine.expected[len(PROMPTS)])


@each_method
def test_scheduling_modes_give_the_same_results(engines, pooling):
    sync_engine, async_engine = (
        engines.get(pooling=pooling, async_scheduling=async_scheduling)
        for async_scheduling in (False, True)
    )
    assert_same(async_engine.run(PROMPTS), sync_engine.run(PROMPTS))


@each_scheduling_mode
@each_method
def test_returns_while_copy_is_in_flight(engine, streams):
    engine.add(PROMPTS[0])
    scheduled = engine.execute()
    keep_busy(streams.main)
    step = Step(scheduled, engine.sample_or_pool())
    assert isinstance(step.returned, AsyncModelRunnerOutput)
    assert not step.returned.copy_event.query()
    engine.update(scheduled, step.resolve())
    assert_same(engine.finish(), engine.expected[1])


@each_scheduling_mode
@each_method
def test_copy_waits_for_the_main_stream(engine, streams):
    engine.add(PROMPTS[0])
    scheduled = engine.execute()
    keep_busy(streams.main)
    before_sampling = streams.main.record_event()
    step = Step(scheduled, engine.sample_or_pool())
    assert isinstance(step.returned, AsyncModelRunnerOutput)
    step.returned.copy_event.synchronize()
    assert before_sampling.query()
    engine.update(scheduled, step.resolve())
    assert_same(engine.finish(), engine.expected[1])


@each_scheduling_mode
@each_method
def test_main_stream_does_not_wait_for_the_copy(engine, streams):
    keep_busy(streams.copy)
    engine.add(PROMPTS[0])
    first = engine.step()
    assert isinstance(first.returned, AsyncModelRunnerOutput)
    engine.add(PROMPTS[1])
    second = engine.step()
    streams.main.synchronize()
    assert not first.returned.copy_event.query()
    for step in (first, second):
        engine.update(step.scheduled, step.resolve())
    assert_same(engine.finish(), engine.expected[2])


def allocated_bytes():
    """GPU memory in use; without a GPU, a block for each tensor."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    return len(tensors) * BLOCK_BYTES


@each_scheduling_mode
@each_method
def test_steps_do_not_accumulate_memory(engine, record_property):
    before = allocated_bytes()
    start = time.perf_counter()
    for _ in range(NUM_STEPS):
        if not engine.busy:
            engine.results.clear()
            engine.add(PROMPTS[0], max_tokens=32)
        engine.step_and_update()
    step_ms = (time.perf_counter() - start) / NUM_STEPS * 1000
    engine.abort_all()
    growth = allocated_bytes() - before
    print(f"{step_ms:.3f} ms a step, {growth} bytes more after {NUM_STEPS} steps")
    record_property("step_ms", f"{step_ms:.3f}")
    # To keep one tensor of each step takes at least twice as much.
    assert growth < NUM_STEPS * BLOCK_BYTES / 2
