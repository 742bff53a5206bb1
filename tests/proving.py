"""Runs a proof in the engine environment, on a tree as it is or with a series."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from engine.interpreter import engine_python
from vllm_graft.cpu import environment
from vllm_graft.proof.configurations import driver_environment
from vllm_graft.proof.records import Case, Record, read_records

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


def prove_faults(
    jobs: Mapping[str, Callable[..., dict[str, Any]]], folder: Path
) -> dict[str, dict[Case, Record]]:
    """The records of several runs of ``faults``, by the run's name and by case.

    Args:
        jobs: Each is :func:`prove` but for ``output``.
        folder: For the results.
    """
    # Two at a time: they mostly wait.
    with ThreadPoolExecutor(2) as pool:
        started = {
            name: pool.submit(job, output=folder / f"{name}.json")
            for name, job in jobs.items()
        }
        found = {name: read_records(f.result()) for name, f in started.items()}
    return {name: {r.case: r for r in records} for name, records in found.items()}
