"""Torch calls whose effect on a GPU is asynchronous, made so on the CPU.

Device and host tensors are all CPU tensors here, so a call has to tell which way
it copies:

- ``x.to("cpu", non_blocking=True)``, the device given as a string, goes to the
  host; device code passes a ``torch.device`` the other way.
- ``target.copy_(source, non_blocking=True)`` goes to the host if the target is
  pinned memory and the source is not, else to the device. On the main stream the
  latter is an ordinary copy.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from vllm_graft.cpu import streams
from vllm_graft.cpu.storage import StorageSet, storage_key
from vllm_graft.cpu.transfers import Received, Transfer, poison, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FACTORIES = (
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
)

pinned = StorageSet()

_original_to = torch.Tensor.to
_original_cpu = torch.Tensor.cpu
_original_copy = torch.Tensor.copy_


def _to_host(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Poison the target and queue the copy that will fill it."""
    with torch.inference_mode(), torch._C.DisableTorchFunction():  # noqa: SLF001
        poison(target, source)
    pinned.add(target)
    stream = streams.current_stream()
    streams.counts["copies to the host"] += 1
    stream.enqueue(Transfer(stream, source, target, to_host=True))
    return target


def _to_device(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Queue a copy on the current side stream.

    Pageable memory is staged before the call returns; pinned memory is read when
    the stream gets there, and its allocator keeps it until then.
    """
    stream = streams.current_stream()
    if source not in pinned:
        source = source.clone()
    streams.counts["copies to the device"] += 1
    stream.enqueue(Transfer(stream, source, target, to_host=False, keep=True))
    return target


def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``Tensor.to``: a blocking copy to the host waits for the current stream."""
    device = kwargs.get("device", args[0] if args else None)
    if isinstance(device, str) and device.startswith("cpu"):
        if kwargs.get("non_blocking"):
            with torch._C.DisableTorchFunction():  # noqa: SLF001
                target = torch.empty_like(_original_to(self, *args, **kwargs))
            return _to_host(self, target)
        streams.current_stream().synchronize()
    return _original_to(self, *args, **kwargs)


def cpu(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``Tensor.cpu``: waits for the current stream, as it does on a GPU."""
    streams.current_stream().synchronize()
    return _original_cpu(self, *args, **kwargs)


def copy_(
    self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    """``Tensor.copy_``: see the module's text for the direction."""
    if non_blocking and isinstance(source, torch.Tensor):
        if self in pinned and source not in pinned:
            return _to_host(source, self)
        if not streams.current_stream().eager:
            return _to_device(source.expand_as(self), self)
    return _original_copy(self, source, non_blocking=non_blocking)


def record_stream(self: torch.Tensor, stream: streams.Stream) -> None:
    """``Tensor.record_stream``: the stream's copies keep this memory."""
    with streams.DEVICE_LOCK:
        stream.kept.add(self)
        for work in stream.pending():
            if isinstance(work, Transfer):
                work.keep(self)


def pin_memory(self: torch.Tensor, _device: Any = None) -> torch.Tensor:
    """``Tensor.pin_memory``: a copy that counts as pinned."""
    if self in pinned:
        return self
    copy = self.clone()
    pinned.add(copy)
    return copy


def _accept_pinning(factory: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A factory that takes ``pin_memory=True``, which torch refuses without CUDA."""

    @wraps(factory)
    def create(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        tensor = factory(*args, **kwargs)
        if pin_memory:
            pinned.add(tensor)
        return tensor

    return create


def _broadcast(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.distributed.broadcast`` that does not block a receiving side stream.

    The sender's part is done at once: nobody waits for it, so there is no later
    moment at which it would be sure to happen.
    """

    @wraps(original)
    def broadcast(
        tensor: torch.Tensor,
        src: int | None = None,
        group: Any = None,
        async_op: bool = False,
        **kwargs: Any,
    ) -> Any:
        stream = streams.current_stream()
        sends = src == torch.distributed.get_rank()
        if stream.eager or async_op or src is None or sends:
            run_conflicts(stream, [tensor])
            return original(tensor, src, group, async_op, **kwargs)
        buffer = torch.empty_like(tensor)
        request = original(buffer, src, group, async_op=True, **kwargs)
        poison(tensor, torch.ones_like(tensor))
        streams.counts["broadcasts received"] += 1
        stream.enqueue(Received(request, buffer, tensor))
        return None

    return broadcast


def run_conflicts(stream: streams.Stream, tensors: Iterable[torch.Tensor]) -> None:
    """Run the queue if any of it touches the tensors' memory: streams are in order."""
    storages = {storage_key(tensor) for tensor in tensors}
    if any(work.touches(storages) for work in stream.pending()):
        stream.run_until(stream.issued)


class SideStreamMode(TorchFunctionMode):  # type: ignore[misc]
    """Active while a side stream is current.

    A call first runs what is queued on the memory it touches. What it allocates
    belongs to the stream, which keeps it until its copies have read it.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the call between the two steps above."""
        kwargs = kwargs or {}
        stream = streams.current_stream()
        inputs = list(tensors_in([*args, *kwargs.values()]))
        run_conflicts(stream, inputs)
        result = func(*args, **kwargs)
        known = {storage_key(tensor) for tensor in inputs}
        outputs = result if isinstance(result, (list, tuple)) else [result]
        for tensor in tensors_in(outputs):
            if storage_key(tensor) not in known:
                stream.kept.add(tensor)
        return result


_mode = SideStreamMode()


def _switch(to_side: bool) -> None:
    if to_side:
        _mode.__enter__()
    else:
        _mode.__exit__(None, None, None)


def install() -> None:
    """Put the stand-ins in place of ``torch.cuda``'s and the tensor methods."""
    streams.switches[:] = [_switch]
    # Computed once from torch's attributes: it must hold the real factories, or
    # ``with torch.device(...)`` would no longer recognise them.
    _device_constructors()
    for name in _FACTORIES:
        setattr(torch, name, _accept_pinning(getattr(torch, name)))
    replacements: dict[Any, dict[str, Any]] = {
        torch: {"Event": streams.Event, "Stream": streams.Stream},
        torch.cuda: {
            "Event": streams.Event,
            "Stream": streams.Stream,
            "current_stream": streams.current_stream,
            "default_stream": streams.default_stream,
            "set_stream": streams.set_stream,
            "stream": streams.stream_context,
            "synchronize": streams.synchronize,
        },
        torch.accelerator: {"synchronize": streams.synchronize},
        torch.Tensor: {
            "to": to,
            "cpu": cpu,
            "copy_": copy_,
            "record_stream": record_stream,
            "pin_memory": pin_memory,
        },
        torch.distributed: {"broadcast": _broadcast(torch.distributed.broadcast)},
    }
    for owner, attributes in replacements.items():
        for name, value in attributes.items():
            setattr(owner, name, value)
