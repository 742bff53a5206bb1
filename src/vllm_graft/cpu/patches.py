"""What is changed in which module, once that module has been imported.

Each function names the one thing that stops Model Runner V2 on a CPU.
"""

from __future__ import annotations

import os
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_METHOD = "VLLM_WORKER_MULTIPROC_METHOD"


def triton_backends(module: ModuleType) -> None:
    """``vllm.triton_utils.importing`` wants a backend named ``cpu``.

    Its driver is never active: kernels run in Triton's interpreter, which asks no
    backend, and torch must not think that it could compile for one.
    """
    driver = SimpleNamespace(is_active=lambda: False)
    module.backends.setdefault("cpu", SimpleNamespace(compiler=None, driver=driver))


def keep_settings(module: ModuleType) -> None:
    """``CpuPlatform.check_and_update_config`` switches async scheduling off.

    It also has workers spawned, whatever was asked for; a worker that is forked, as
    on a GPU, starts in a fraction of the time.
    """
    original = module.CpuPlatform.check_and_update_config.__func__

    @wraps(original)
    def check_and_update_config(cls: type, vllm_config: Any) -> None:
        scheduler = vllm_config.scheduler_config
        wanted = scheduler.async_scheduling
        method = os.environ.get(_METHOD)
        original(cls, vllm_config)
        if method is not None:
            os.environ[_METHOD] = method
        forced = os.environ.get("VLLM_GRAFT_CPU_ASYNC")
        scheduler.async_scheduling = wanted if forced is None else forced == "1"

    module.CpuPlatform.check_and_update_config = classmethod(check_and_update_config)


def stand_ins(module: ModuleType) -> None:  # noqa: ARG001
    """``vllm.v1.worker.cpu.shm`` puts placeholders that do nothing; replace them."""
    from vllm_graft.cpu.tensors import install  # noqa: PLC0415

    install()


def copy_named_tuples(module: ModuleType) -> None:
    """``LogprobsTensors.to_cpu_nonblocking`` returns itself for a CPU tensor."""

    def to_cpu_nonblocking(self: Any) -> Any:
        return type(self)(
            *(
                item.to("cpu", non_blocking=True) if hasattr(item, "storage") else item
                for item in self
            )
        )

    for name in ("LogprobsTensors", "RoutedExpertsTensors"):
        kind = getattr(module, name, None)
        if kind is not None and hasattr(kind, "to_cpu_nonblocking"):
            kind.to_cpu_nonblocking = to_cpu_nonblocking


ACTIONS: dict[str, Callable[[ModuleType], None]] = {
    "triton.backends": triton_backends,
    "vllm.platforms.cpu": keep_settings,
    "vllm.v1.worker.cpu.shm": stand_ins,
    "vllm.v1.outputs": copy_named_tuples,
}
