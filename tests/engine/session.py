"""Start the driver in the engine environment and read its results."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from engine.interpreter import engine_python
from engine.matrix import HERE, driver_environment
from vllm_graft.cache import cache_dir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KINDS = ("llama", "eagle")


def tiny_models() -> dict[str, str]:
    """The folders of the tiny models by kind, made in the cache if need be."""
    root = cache_dir("models")
    done = subprocess.run(
        [engine_python(), "-m", "engine.models", root, *KINDS],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"the tiny models could not be made\n{done.stderr}")
    found: dict[str, str] = json.loads(done.stdout)
    # An embedding model is the same weights, asked for its last hidden state.
    return {**found, "embed": found["llama"]}


def run_driver(
    configs: Sequence[Mapping[str, Any]],
    folder: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = 900,
) -> dict[str, Any]:
    """Run configurations in one driver process; its results by name.

    Args:
        configs: See ``engine.driver``.
        folder: Where the files of the exchange and the log go.
        env: The environment, by default ``engine.matrix.driver_environment()``.
        timeout: Seconds after which the driver is killed.

    Raises:
        RuntimeError: The driver failed; the message has the end of its log.
        subprocess.TimeoutExpired: It took too long.
    """
    config, result = folder / "config.json", folder / "result.json"
    config.write_text(json.dumps(list(configs)))
    with (folder / "log").open("w") as log:
        done = subprocess.run(
            [engine_python(), "-m", "engine.driver", config, result],
            env=driver_environment() if env is None else dict(env),
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
