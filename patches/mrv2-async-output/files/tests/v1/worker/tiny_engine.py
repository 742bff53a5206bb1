# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""An engine in this process, on a tiny random model, that a test steps by hand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from vllm import PoolingParams, SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.platforms import current_platform
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.gpu.model_runner import GPUModelRunner

VOCAB_SIZE = 256
# Token ids, each prompt of another length.
PROMPTS = [[(7 * i + 31 * j) % VOCAB_SIZE for j in range(i + 3)] for i in range(4)]

RunnerOutput = AsyncModelRunnerOutput | ModelRunnerOutput | None


def save_tiny_llama(folder: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        # Wide, so that different prompts lead to different tokens.
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


class Step(NamedTuple):
    """What the scheduler asked for, and what the runner returned for it."""

    scheduled: SchedulerOutput
    returned: RunnerOutput

    def resolve(self) -> ModelRunnerOutput:
        if isinstance(self.returned, AsyncModelRunnerOutput):
            return self.returned.get_output()
        assert self.returned is not None
        return self.returned


class TinyEngine:
    """Requests go in, and `results` has what came out, by request id.

    For a generative model that is a list of token ids, for a pooling model a list
    of one embedding. `expected` has the results for PROMPTS where every output is
    resolved at once: for each number of prompts, so that batches are the same.
    """

    def __init__(self, model: Path, *, pooling: bool, async_scheduling: bool):
        args = EngineArgs(
            model=str(model),
            runner="pooling" if pooling else "generate",
            convert="embed" if pooling else "auto",
            skip_tokenizer_init=True,
            dtype="float32" if current_platform.is_cpu() else "float16",
            enforce_eager=True,
            max_model_len=64,
            max_num_seqs=16,
            enable_prefix_caching=False,
            gpu_memory_utilization=0.1,
            kv_cache_memory_bytes=32 << 20,
            distributed_executor_backend="uni",
            async_scheduling=async_scheduling,
        )
        vllm_config = args.create_engine_config()
        if vllm_config.scheduler_config.async_scheduling != async_scheduling:
            pytest.skip("this platform decides on async scheduling itself")
        self.pooling = pooling
        self.core = EngineCore(vllm_config, UniProcExecutor, log_stats=False)
        self.executor: UniProcExecutor = self.core.model_executor
        self.runner: GPUModelRunner = self.executor.driver_worker.worker.model_runner
        self.results: dict[str, list] = {}
        self.request_ids = map("request-{}".format, count())
        # This also brings about whatever is made at the first use.
        self.expected = {n: self.run(PROMPTS[:n]) for n in (1, 2, len(PROMPTS))}

    def add(self, prompt: list[int], max_tokens: int = 3) -> str:
        """Add a request and return its id, which is never used again."""
        request_id = next(self.request_ids)
        self.results[request_id] = []
        sampling_params = SamplingParams(
            temperature=0, max_tokens=max_tokens, ignore_eos=True
        )
        request = EngineCoreRequest(
            request_id=request_id,
            prompt_token_ids=prompt,
            mm_features=None,
            sampling_params=None if self.pooling else sampling_params,
            pooling_params=PoolingParams(task="embed") if self.pooling else None,
            arrival_time=0,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        self.core.add_request(*self.core.preprocess_add_request(request))
        return request_id

    def schedule(self) -> SchedulerOutput:
        scheduled = self.core.scheduler.schedule()
        assert scheduled.total_num_scheduled_tokens > 0
        return scheduled

    def execute(self) -> SchedulerOutput:
        """Run the model on the next batch, up to the hidden states."""
        scheduled = self.schedule()
        assert self.runner.execute_model(scheduled) is None
        return scheduled

    def sample_or_pool(self) -> RunnerOutput:
        return self.runner.pool() if self.pooling else self.runner.sample_tokens(None)

    def step(self) -> Step:
        """One step, its output as the runner returned it."""
        scheduled = self.execute()
        return Step(scheduled, self.sample_or_pool())

    def update(self, scheduled: SchedulerOutput, output: ModelRunnerOutput) -> None:
        """Give a resolved output to the scheduler."""
        updates = self.core.scheduler.update_from_output(scheduled, output)
        for outputs in updates.values():
            for update in outputs.outputs:
                result = self.results[update.request_id]
                if self.pooling:
                    result.append(update.pooling_output)
                else:
                    result.extend(update.new_token_ids)

    def step_and_update(self) -> None:
        step = self.step()
        self.update(step.scheduled, step.resolve())

    @property
    def busy(self) -> bool:
        return self.core.scheduler.has_unfinished_requests()

    def run(self, prompts: Sequence[list[int]]) -> list[list]:
        """The results for some prompts, one of which arrives before each step."""
        for prompt in prompts:
            self.add(prompt)
            self.step_and_update()
        return self.finish()

    def finish(self) -> list[list]:
        """Run until no request is left; the results of all, in their order."""
        while self.busy:
            self.step_and_update()
        self.forget_finished()
        results = list(self.results.values())
        self.results.clear()
        return results

    def abort_all(self) -> None:
        self.core.abort_requests(list(self.core.scheduler.requests))
        self.forget_finished()
        self.results.clear()

    def forget_finished(self) -> None:
        """Let the runner free what finished or was aborted."""
        if self.core.scheduler.has_finished_requests():
            self.runner.execute_model(self.core.scheduler.schedule())


class TinyEngines:
    """Engines by kind and scheduling mode, each started when first asked for.

    They live side by side, so that tests can share and compare them.
    """

    def __init__(self, model: Path):
        self.model = model
        self.started: dict[tuple[bool, bool], TinyEngine] = {}

    def get(self, *, pooling: bool, async_scheduling: bool) -> TinyEngine:
        key = pooling, async_scheduling
        if key not in self.started:
            self.started[key] = TinyEngine(
                self.model, pooling=pooling, async_scheduling=async_scheduling
            )
        return self.started[key]


@contextmanager
def tiny_engines(folder: Path) -> Iterator[TinyEngines]:
    """Engines whose model is saved in `folder`."""
    save_tiny_llama(folder)
    engines = TinyEngines(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
        yield engines
        for engine in engines.started.values():
            engine.core.shutdown()


def assert_same(results: list[list], expected: list[list]) -> None:
    """The results are there, and equal, bit for bit."""
    assert results and all(results)
    torch.testing.assert_close(results, expected, rtol=0, atol=0)
