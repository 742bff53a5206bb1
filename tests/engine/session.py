"""Start the driver in the engine environment and read its results."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.interpreter import engine_python
from vllm_graft import cpu
from vllm_graft.proof.configurations import driver_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent


def engine_environment() -> dict[str, str]:
    """The environment of a driver process on a CPU; it finds this package too."""
    env = driver_environment(cpu.environment(os.environ))
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(HERE.parent)])
    return env


def run_driver(
    configs: Sequence[Mapping[str, Any]],
    folder: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = 900,
) -> dict[str, Any]:
    """Run configurations in one driver process; its results by name.

    Args:
        configs: See ``vllm_graft.proof.driver``.
        folder: Where the files of the exchange and the log go.
        env: The environment, by default ``engine_environment()``.
        timeout: Seconds after which the driver is killed.

    Raises:
        RuntimeError: The driver failed; the message has the end of its log.
        subprocess.TimeoutExpired: It took too long.
    """
    config, result = folder / "config.json", folder / "result.json"
    config.write_text(json.dumps(list(configs)))
    with (folder / "log").open("w") as log:
        done = subprocess.run(
            [engine_python(), "-m", "vllm_graft.proof.driver", config, result],
            env=engine_environment() if env is None else dict(env),
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=timeout,
        )
    if done.returncode:
        tail = (folder / "log").read_text().splitlines()[-60:]
        raise RuntimeError(f"driver ended with {done.returncode}\n" + "\n".join(tail))
    found: dict[str, Any] = json.loads(result.read_text())
    return found
