"""Ordering errors put into a running engine on purpose.

On a CPU without the strict stand-ins none of them would show, or all would show as
something else; here each must change what the engine says.
"""

# ruff: noqa: PLC0415 - vLLM is imported only when a fault is put in

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _NoEvent:
    def synchronize(self) -> None:
        pass


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def at_most(steps: int, engine: Any) -> Any:
    """Fail an engine that goes on longer: wrong counts may keep it from ending."""
    left = iter(range(steps))

    def make(original: Any) -> Any:
        def step() -> Any:
            if next(left, None) is None:
                raise RuntimeError(f"not done after {steps} steps")
            return original()

        return step

    return _replaced(engine, "step", make)


def no_wait() -> Any:
    """``get_output`` reads without waiting for the copy."""
    from vllm.v1.worker.gpu.async_utils import AsyncOutput

    def make(original: Any) -> Any:
        def get_output(self: Any) -> Any:
            self.copy_event = _NoEvent()
            return original(self)

        return get_output

    return _replaced(AsyncOutput, "get_output", make)


def reused_buffer() -> Any:
    """Every step's sampled tokens live in the same device buffer."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    buffers: dict[Any, Any] = {}

    def make(original: Any) -> Any:
        def sample(self: Any, *args: Any) -> Any:
            output, *rest = original(self, *args)
            tokens = output.sampled_token_ids
            buffer = buffers.setdefault(tokens.shape[1], tokens.new_zeros(64, 1))
            buffer[: len(tokens)] = tokens
            output.sampled_token_ids = buffer[: len(tokens)]
            return (output, *rest)

        return sample

    return _replaced(GPUModelRunner, "sample", make)


def freed_source() -> Any:
    """The output does not hold the tensors that are still being copied."""
    from vllm.v1.worker.gpu.async_utils import AsyncOutput

    def make(original: Any) -> Any:
        def begin(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            del self.sampler_output, self.num_sampled_tokens

        return begin

    return _replaced(AsyncOutput, "__init__", make)


_FAULTS = {fault.__name__: fault for fault in (no_wait, reused_buffer, freed_source)}


@contextmanager
def inject(name: str, engine: Any) -> Iterator[None]:
    """Put an error in, as the driver's ``fault`` names it; bounds the engine too."""
    with _FAULTS[name](), at_most(100, engine):
        yield
