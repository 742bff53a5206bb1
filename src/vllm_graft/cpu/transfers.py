"""Deferred copies between host and device, and the memory they may still read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from vllm_graft.cpu import streams
from vllm_graft.cpu.storage import storage_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among arguments or results, one level of list deep."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, torch.Tensor))


def poison(target: torch.Tensor, source: torch.Tensor) -> None:
    """Fill memory that no one may read yet with what no result can be.

    NaN for floats, a recognisable negative number for integers (165 for
    unsigned ones), and for booleans the opposite of what will come.
    """
    if target.is_floating_point() or target.is_complex():
        target.fill_(float("nan"))
    elif target.dtype is torch.bool:
        target.copy_(~source.to(torch.bool))
    elif target.dtype is torch.int8:
        target.fill_(-99)
    elif target.dtype.is_signed:
        target.fill_(-24680)
    else:
        target.fill_(165)


class _Memory:
    """A tensor without a hold on its storage, as a copy engine sees it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._reference = StorageWeakRef(tensor.untyped_storage())
        self._dtype = tensor.dtype
        self._layout = (tensor.storage_offset(), tensor.size(), tensor.stride())

    def tensor(self) -> torch.Tensor | None:
        """The tensor as it is now, None once its storage was freed."""
        if self._reference.expired():
            return None
        storage = torch.UntypedStorage._new_with_weak_ptr(  # noqa: SLF001
            self._reference.cdata
        )
        if storage is None:
            return None
        empty = torch.empty(0, dtype=self._dtype, device="cpu")
        empty.set_(storage, *self._layout)
        return empty


class Transfer:
    """A copy that reads its source when run and, to the host, writes when landed.

    Args:
        stream: The stream that it is queued on.
        source: Read when the stream gets there. Its memory is not kept for this
            copy unless the stream allocated it, or ``record_stream`` said so.
        target: Written when run (to the device) or when landed (to the host).
        to_host: The direction.
        keep: Keep the source's memory in any case.
    """

    def __init__(
        self,
        stream: streams.Stream,
        source: torch.Tensor,
        target: torch.Tensor,
        *,
        to_host: bool,
        keep: bool = False,
    ) -> None:
        self._memory = _Memory(source)
        self._key = storage_key(source)
        self._held = source if keep or source in stream.kept else None
        self._target = target
        self._to_host = to_host
        self._staged: torch.Tensor | None = None

    def keep(self, tensor: torch.Tensor) -> None:
        """Keep the source's memory if it is the tensor's."""
        if storage_key(tensor) == self._key:
            self._held = tensor

    def touches(self, storages: set[int]) -> bool:
        """Whether its device side shares memory with one of the storages."""
        key = self._key if self._to_host else storage_key(self._target)
        return key in storages

    def run(self) -> bool:
        """Read the source; to the device, write the target as well."""
        with torch.inference_mode(), torch._C.DisableTorchFunction():  # noqa: SLF001
            source = self._memory.tensor()
            self._held = None
            if source is None:
                streams.counts["sources freed too early"] += 1
                poison(self._target, torch.ones_like(self._target))
            elif self._to_host:
                self._staged = source.clone()
            else:
                self._target.copy_(source)
        return self._staged is not None

    def land(self) -> None:
        """Write the host's target."""
        if self._staged is not None:
            with torch.inference_mode(), torch._C.DisableTorchFunction():  # noqa: SLF001
                self._target.copy_(self._staged)
            self._staged = None
            streams.counts["copies landed"] += 1


class Received:
    """A collective's result, which the target gets when the stream gets there.

    Args:
        request: The collective in flight, into a buffer of its own.
        buffer: That buffer.
        target: The tensor that the caller passed; poison until then.
    """

    def __init__(
        self, request: Any, buffer: torch.Tensor, target: torch.Tensor
    ) -> None:
        self._request = request
        self._buffer = buffer
        self._target = target

    def touches(self, storages: set[int]) -> bool:
        """Whether the target is in one of the storages."""
        return storage_key(self._target) in storages

    def run(self) -> bool:
        """Wait for the peers and write the target."""
        self._request.wait()
        with torch.inference_mode(), torch._C.DisableTorchFunction():  # noqa: SLF001
            self._target.copy_(self._buffer)
        return False

    def land(self) -> None:
        """Nothing: the target is device memory."""
