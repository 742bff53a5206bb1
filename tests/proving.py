"""Runs a proof in the engine environment, on a tree as it is or with a series."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.interpreter import engine_python
from vllm_graft.cpu import environment
from vllm_graft.proof.configurations import driver_environment

TIMEOUT = 800  # seconds; most of it is room for a busy machine


def prove(
    module: str,
    *words: str,
    series: str | Path | Sequence[str] | None,
    output: Path,
) -> dict[str, Any]:
    """The result of a module of ``vllm_graft.proof``.

    Args:
        module: Its name.
        words: Its arguments, besides ``--output``.
        series: What is grafted by ``vllm-graft run``: a name, a folder or several
            names; None for the tree as it is.
        output: The file for the result; its log gets the same name and ``.log``.
    """
    command = [engine_python(), "-m", f"vllm_graft.proof.{module}", *words]
    command += ["--output", str(output)]
    # Means nothing to stub workers.
    env = driver_environment(os.environ) | {"VLLM_LOGGING_LEVEL": "CRITICAL"}
    if series is None:
        env = environment(env)
    else:
        graft = [sys.executable, "-m", "vllm_graft", "run", "--cpu"]
        several = [series] if isinstance(series, str | Path) else series
        command = [*graft, *(f"--series={one}" for one in several), "--", *command]
    log = output.with_suffix(".log")
    with log.open("w") as stream:
        subprocess.run(
            command,
            env=env,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=TIMEOUT,
        )
    assert output.is_file(), log.read_text()[-3000:]
    result: dict[str, Any] = json.loads(output.read_text())
    return result
