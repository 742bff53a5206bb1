"""The tree's own worker and runner, without a model, for Ray's actors.

``sample_tokens``, ``pool`` and the outputs that they return are the real ones; only
what they compute with is made up. Nothing needs to know whether the tree is grafted.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import torch
from vllm.platforms import current_platform

if current_platform.is_cpu():
    import vllm.v1.worker.cpu.shm  # noqa: F401 - puts stand-ins for streams

from vllm.v1.outputs import LogprobsTensors
from vllm.v1.worker.gpu import async_utils
from vllm.v1.worker.gpu.model_runner import GPUModelRunner
from vllm.v1.worker.gpu.sample.output import SamplerOutput
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment

REQUEST: Final = "0"  # the id of the one request
LOGPROB: Final = -0.25


class Step(NamedTuple):
    """What stands for the scheduler's output.

    Args:
        number: The token that is sampled; comes back in the answer.
        fault: ``sample-raises`` or ``get-output-raises``.
        total_num_scheduled_tokens: As in vLLM; an executor asks for it.
    """

    number: int
    fault: str = ""
    total_num_scheduled_tokens: int = 1


class StubRunner(GPUModelRunner):  # type: ignore[misc]
    """Runs no model; its own ``__init__`` is all that ``sample_tokens`` asks for."""

    def __init__(self, config: Any, device: torch.device) -> None:
        self.device = device
        self.use_async_scheduling = config.scheduler_config.async_scheduling
        self.is_last_pp_rank, self.pp_handler, self.speculator = True, None, None
        self.supports_mm_inputs = False
        self.main_stream = torch.cuda.current_stream()
        self.output_copy_stream = torch.cuda.Stream()
        self.kv_connector = SimpleNamespace(post_forward=lambda _: None)
        self.eplb = SimpleNamespace(step=lambda **_: None)
        values = SimpleNamespace(gpu=None, np=None)
        self.req_states = SimpleNamespace(
            all_token_ids=values, num_computed_tokens=values, prompt_len=values
        )
        self.model = SimpleNamespace(compute_logits=lambda hidden: hidden)
        self.pooling_runner = SimpleNamespace(pool=self._pooled)
        self.pools_itself = False
        self.returned: list[str] = []
        self.set_pooling(on=False)

    def set_pooling(self, *, on: bool) -> None:
        """Become a pooling model or a generating one, as in the real ``__init__``."""
        self.execute_model_state: Any = None
        self.is_pooling_model, self.sampler = on, None
        worker = SimpleNamespace(compute_prompt_logprobs=lambda *_: {})
        self.prompt_logprobs_worker = None if on else worker

    def execute_model(self, scheduler_output: Step, *_: Any) -> Any:
        """No model is run; None, or the output where it ``pools_itself`` as V1 does."""
        batch = SimpleNamespace(
            step=scheduler_output, req_ids=[REQUEST], idx_mapping=None
        )
        batch.query_start_loc, batch.num_draft_tokens = None, 0
        batch.logits_indices = slice(None)
        self.execute_model_state = SimpleNamespace(
            input_batch=batch,
            hidden_states=self._tensor([[float(scheduler_output.number)]]),
            aux_hidden_states=None,
            attn_metadata=None,
            slot_mappings_by_layer=None,
            finished_req_ids=set(),
        )
        return self.pool() if self.pools_itself else None

    def sample_tokens(self, grammar_output: Any) -> Any:
        """The tree's own; remembers the type."""
        return self._note(super().sample_tokens(grammar_output))

    def pool(self) -> Any:
        """The tree's own; remembers the type."""
        return self._note(super().pool())

    def _note(self, output: Any) -> Any:
        self.returned.append(type(output).__name__)
        return output

    def sample(self, hidden_states: Any, input_batch: Any, grammar_output: Any) -> Any:
        """One token, the step's number."""
        if self.is_pooling_model:
            return super().sample(hidden_states, input_batch, grammar_output)
        step: Step = input_batch.step
        if step.fault == "sample-raises":
            raise ValueError(f"sample of {step.number}")
        count = self._tensor([1])
        if step.fault == "get-output-raises":
            # Nobody can cut a list at 1.0: that is found out where it is resolved.
            count = count.float()
        logprobs = LogprobsTensors(
            self._tensor([[step.number]]),
            self._tensor([[LOGPROB]]),
            self._tensor([1]),
        )
        sampled = SamplerOutput(self._tensor([[step.number]]), logprobs, None, None)
        return sampled, count, self._tensor([0])

    def postprocess_sampled(self, *_: Any) -> None:
        """There is no state to update."""

    def postprocess_num_computed_tokens(self, *_: Any) -> None:
        """There is no state to update."""

    def _pooled(self, hidden_states: Any, *_: Any) -> Any:
        return hidden_states, None

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, device=self.device)


class StubWorker(Worker):  # type: ignore[misc]
    """The tree's own worker; it has process groups and a runner, but no model."""

    def init_device(self) -> None:
        """Joins the other ranks, as the real one does."""
        self.device = torch.device(current_platform.device_type)
        backend = current_platform.dist_backend
        where = self.distributed_init_method
        init_worker_distributed_environment(
            self.vllm_config, self.rank, where, self.local_rank, backend
        )
        self.model_runner = StubRunner(self.vllm_config, self.device)
        self.threads: list[str] = []
        for kind in (async_utils.AsyncOutput, async_utils.AsyncPoolingOutput):
            _watch(kind, self.threads)

    def load_model(self, **_: Any) -> None:
        """There is none."""

    def set_pooling(self, on: bool, itself: bool = False) -> None:
        """See the runner; ``itself``: ``execute_model`` pools."""
        self.model_runner.set_pooling(on=on)
        self.model_runner.pools_itself = itself

    def unresolved(self, step: Step) -> Any:
        """An output that nobody has resolved: what must not leave the process."""
        runner = self.model_runner
        return async_utils.AsyncPoolingOutput(
            SimpleNamespace(),
            torch.tensor([[step.number]], device=self.device),
            None,
            runner.main_stream,
            runner.output_copy_stream,
        )

    def report(self) -> dict[str, list[str]]:
        """What the runner returned and which threads resolved it, since the last."""
        runner = self.model_runner
        found = {"returned": [*runner.returned], "resolved in": [*self.threads]}
        runner.returned.clear()
        self.threads.clear()
        return found


def _watch(kind: Any, threads: list[str]) -> None:
    original = kind.get_output

    def get_output(output: Any) -> Any:
        threads.append(threading.current_thread().name)
        return original(output)

    kind.get_output = get_output
