# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""A worker without a model or a device, for tests of the executors.

It lives in a module of its own because executors name their worker class, and
worker processes import it by that name.
"""

import threading
from types import SimpleNamespace

from vllm.config import DeviceConfig, ParallelConfig, VllmConfig
from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.worker_base import WorkerBase

# Seconds after which a wait in a test counts as a hang.
TIMEOUT = 20


def make_output(token_id: int) -> ModelRunnerOutput:
    return ModelRunnerOutput(
        req_ids=["0"],
        req_id_to_index={"0": 0},
        sampled_token_ids=[[token_id]],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )


class StubAsyncOutput(AsyncModelRunnerOutput):
    def __init__(self, worker: "StubWorker", token_id: int, error: str | None = None):
        self.worker = worker
        self.token_id = token_id
        self.error = error

    def get_output(self) -> ModelRunnerOutput:
        assert self.worker.may_resolve.wait(TIMEOUT), "still held"
        self.worker.resolved.append(self.token_id)
        if self.error is not None:
            raise ValueError(self.error)
        return make_output(self.token_id)


class StubWorker(WorkerBase):
    """Its methods are called by name through `collective_rpc`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The token ids of the outputs resolved here, in that order.
        self.resolved: list[int] = []
        self.may_resolve = threading.Event()
        self.may_resolve.set()

    def init_device(self) -> None:
        pass

    def load_model(self) -> None:
        pass

    def execute_model(self, scheduler_output: int) -> AsyncModelRunnerOutput:
        return self.async_output(scheduler_output)

    def sample_tokens(self, grammar_output: int) -> AsyncModelRunnerOutput:
        return self.async_output(grammar_output)

    def plain_output(self, token_id: int) -> ModelRunnerOutput:
        return make_output(token_id)

    def async_output(self, token_id: int) -> AsyncModelRunnerOutput:
        return StubAsyncOutput(self, token_id)

    def failing_call(self, error: str) -> ModelRunnerOutput:
        raise ValueError(error)

    def failing_get_output(self, error: str) -> AsyncModelRunnerOutput:
        return StubAsyncOutput(self, -1, error)

    def unpicklable_output(self) -> object:
        return threading.Lock()

    def hold_outputs(self) -> None:
        """Make `get_output()` wait from now on."""
        self.may_resolve.clear()

    def release_outputs(self) -> None:
        self.may_resolve.set()

    def get_rank(self) -> int:
        return self.rank

    def take_resolved(self) -> list[int]:
        """The token ids resolved since the last call of this method."""
        resolved, self.resolved = self.resolved, []
        return resolved


def make_vllm_config(
    backend: str, world_size: int = 1, async_scheduling: bool = False
) -> VllmConfig:
    vllm_config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        parallel_config=ParallelConfig(
            tensor_parallel_size=world_size,
            distributed_executor_backend=backend,
            worker_cls=f"{StubWorker.__module__}.{StubWorker.__qualname__}",
        ),
    )
    # Set late: platforms and defaults may decide otherwise on the way.
    vllm_config.scheduler_config.async_scheduling = async_scheduling
    # All that the worker's wrapper asks of a model.
    vllm_config.model_config = SimpleNamespace(
        is_multimodal_model=False, multimodal_config=None, is_hybrid=False
    )
    return vllm_config
