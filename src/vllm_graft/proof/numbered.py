"""Outputs that say which call they belong to, as answers and as errors."""

from __future__ import annotations

from typing import Any, Final

from vllm.v1.outputs import AsyncModelRunnerOutput

LARGE: Final = 25 * 2**20  # bytes; a chunk of a worker's message queue has 24 MiB


class NumberedOutput(AsyncModelRunnerOutput):  # type: ignore[misc]
    """Resolves to its numbers, or fails with them.

    Args:
        numbers: The call's number, the rank, and the calls that came before.
        fault: What shall go wrong.
    """

    def __init__(self, numbers: tuple[int, int, int], fault: str) -> None:
        self.numbers = numbers
        self.fault = fault

    def __str__(self) -> str:
        number, rank, seen = self.numbers
        return f"call {number} rank {rank} was {seen}"

    def get_output(self) -> Any:
        """The numbers, in a padding or in an object that cannot be sent."""
        if self.fault == "get-output-raises":
            raise ValueError(str(self))
        if self.fault == "unpicklable":
            return Unpicklable(str(self))
        return Padded(self.numbers) if self.fault == "large" else self.numbers


class Padded(tuple[int, int, int]):
    """Its numbers once received; larger than a chunk while under way."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _unpad, (tuple(self), bytes(LARGE))


def _unpad(numbers: tuple[int, int, int], padding: bytes) -> tuple[int, int, int]:
    if len(padding) != LARGE:
        raise ValueError(f"{len(padding)} bytes of padding")
    return numbers


class Unpicklable:
    """Fails to be sent, with a text of its own."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> Any:
        raise TypeError(self.text)
