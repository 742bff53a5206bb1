"""Run a module on base and grafted vLLM, each with a Ray cluster of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from vllm_graft import DirTree, cpu
from vllm_graft import run as runner
from vllm_graft.engine_env import cpu_engine, ensure
from vllm_graft.proof import ray_cluster
from vllm_graft.proof.configurations import driver_environment

SERIES: Final = {"base": [], "grafted": ["mrv2-async-output"]}
SIDES: Final = tuple(SERIES)


class Side(NamedTuple):
    """What one tree gave.

    Args:
        found: The result that the module wrote.
        left: Processes that outlived the run.
        home: What was written to the home folder.
    """

    found: dict[str, Any]
    left: list[int]
    home: list[str]


class _Run(NamedTuple):
    process: subprocess.Popen[bytes]
    short: Path
    folder: Path


def on_both_sides(module: ModuleType, folder: Path, *before: Path) -> dict[str, Side]:
    """Run it on both trees at the same time.

    Args:
        module: Takes a folder for the cluster, what is in ``before``, and the file
            for its result.
        folder: Where logs, results and homes go.
        before: More arguments.
    """
    with contextlib.ExitStack() as stack:
        begun = {
            name: stack.enter_context(_running(name, module, folder / name, before))
            for name in SIDES
        }
        return {name: _finish(run) for name, run in begun.items()}


@contextlib.contextmanager
def _running(
    name: str, module: ModuleType, folder: Path, before: tuple[Path, ...]
) -> Iterator[_Run]:
    engine = ensure(cpu_engine())
    bundle = runner.bundle(DirTree(engine.site_packages), SERIES[name], [])
    env = cpu.environment(runner.environment(os.environ, bundle, None))
    # The names of sockets must be short.
    short = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    home = folder / "home"
    home.mkdir(parents=True)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [engine.python, "-m", module.__name__, short, *before, folder / "result"],
            env={**driver_environment(env), "HOME": str(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _Run(process, short, folder)
    finally:
        process.kill()
        process.wait()
        for pid in ray_cluster.marked(str(short)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(short, ignore_errors=True)


def _finish(run: _Run) -> Side:
    code = run.process.wait(timeout=ray_cluster.LIMIT)
    assert code == 0, (run.folder / "log").read_text()[-4000:]
    written = [path.name for path in (run.folder / "home").iterdir()]
    found = json.loads((run.folder / "result").read_text())
    return Side(found, ray_cluster.marked(str(run.short)), written)
