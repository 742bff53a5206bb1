"""Which tensors share memory, without keeping that memory alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef

_SWEEP_AT = 512


class StorageSet:
    """A set of tensor storages that keeps none of them alive.

    A weak reference pins the address that serves as key, so a key cannot be
    reused while its entry stands. Dead entries are swept when there are many.
    """

    def __init__(self) -> None:
        self._entries: dict[int, StorageWeakRef] = {}

    def add(self, tensor: torch.Tensor) -> None:
        """Add the storage behind a tensor."""
        from torch.multiprocessing.reductions import StorageWeakRef  # noqa: PLC0415

        if len(self._entries) >= _SWEEP_AT:
            for key in [k for k, ref in self._entries.items() if ref.expired()]:
                del self._entries[key]
        reference = StorageWeakRef(tensor.untyped_storage())
        self._entries[reference.cdata] = reference

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return storage_key(tensor) in self._entries


def storage_key(tensor: torch.Tensor) -> int:
    """What tells whether two tensors share memory."""
    key: int = tensor.untyped_storage()._cdata  # noqa: SLF001
    return key
