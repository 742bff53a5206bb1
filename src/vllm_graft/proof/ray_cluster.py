"""A local cluster of real Ray: on the loopback interface, and gone afterwards.

Importing this is cheap: every process of the cluster does it before anything else.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

MARK: Final = "VLLM_GRAFT_PROOF_RAY"  # in the environment of every process started
LIMIT: Final = 1700  # seconds that a cluster may live
_ATTEMPTS: Final = 3  # to start a cluster
_HOOK: Final = f"{__name__}.prepare"

ENVIRONMENT: Final = {
    "RAY_AUTH_MODE": "disabled",  # else a token is kept in the home folder
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CGRAPH_get_timeout": "60",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


def prepare() -> None:
    """What every process of the cluster does before it imports vLLM.

    The CPU platform names no device for Ray and so refuses it; any name that Ray
    hands out will do.
    """
    from vllm_graft.cpu.imports import register  # noqa: PLC0415

    def name_a_device(module: ModuleType) -> None:
        module.CpuPlatform.ray_device_key = "GPU"

    register({"vllm.platforms.cpu": name_a_device})


def marked(value: str) -> list[int]:
    """The processes, but for this one, that carry the mark in their environment.

    The resource tracker of :mod:`multiprocessing` does not count: it lives as long
    as the process that started it.
    """
    wanted = f"{MARK}={value}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            # Empty for the dead that nobody has waited for yet.
            variables = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if wanted in variables and b"resource_tracker" not in command:
            found.append(int(folder.name))
    return found


@contextmanager
def cluster(folder: Path, devices: int) -> Iterator[None]:
    """A Ray cluster of one node, ended at the end; this environment is prepared.

    Nothing may have imported vLLM or Ray yet.

    Args:
        folder: Where its files go; the path must be short, as it holds sockets.
        devices: How many it has to hand out; nobody looks for them.
    """
    os.environ.update({**ENVIRONMENT, MARK: str(folder)})
    prepare()
    import ray  # noqa: PLC0415
    from ray._private import services  # noqa: PLC0415

    # Should whoever started this be gone by then, nobody else ends it.
    signal.alarm(LIMIT)
    # It would take another address of this machine, and listen on all of them.
    services.resolve_ip_for_localhost = lambda host: host
    for attempt in range(_ATTEMPTS):
        try:
            _start(folder, devices)
            break
        except Exception:
            # It waits 30 s for its processes, which a busy machine may exceed.
            ray.shutdown()
            if attempt == _ATTEMPTS - 1:
                raise
    try:
        yield
    finally:
        ray.shutdown()


def _start(folder: Path, devices: int) -> None:
    import ray  # noqa: PLC0415

    ray.init(
        num_cpus=1,
        num_gpus=devices,
        object_store_memory=80 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder),
        runtime_env={"worker_process_setup_hook": _HOOK},
    )


def addresses(pids: list[int]) -> list[str]:
    """The addresses at which the processes listen."""
    import psutil  # noqa: PLC0415

    found = set()
    for pid in pids:
        try:
            connections = psutil.Process(pid).net_connections("inet")
        except psutil.Error:
            continue
        found |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    return sorted(found)
