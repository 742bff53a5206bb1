"""Base and grafted vLLM as two processes that are asked in turn.

Both stay up, so that a round takes a sample of each within a second or so, on a
machine in the same mood.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import SERIES
from benchmarks.timing import Failed, Sample
from vllm_graft.cpu import environment
from vllm_graft.engine_env import cpu_engine, ensure
from vllm_graft.proof.configurations import driver_environment

BASE: Final = "base"
GRAFTED: Final = "grafted"
_PATIENCE: Final = 30  # seconds for a process to end by itself


class Side:
    """A process of :mod:`vllm_graft.proof.cost`.

    Args:
        process: It, just started.
        log: Where its messages go.
    """

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self.about: dict[str, Any] = self._read()["ready"]

    def ask(self, request: Mapping[str, Any]) -> Sample:
        """What a request took; the side is stopped before and afterwards."""
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        self._signal(signal.SIGSTOP)
        return Sample(answer["wall"], answer["cpu"])

    def _signal(self, number: int) -> None:
        # Idle workers look for work in a busy loop, at the expense of the other side.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"a side ended:\n{self._log.read_text()[-2000:]}")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def sides(kind: str, executor: str, scheduling: str) -> Iterator[dict[str, Side]]:
    """Base and grafted, by name; both end with the context.

    Args:
        kind: ``rpc`` or ``steps``.
        executor: ``uni`` or ``mp``.
        scheduling: ``sync`` or ``async``.

    Raises:
        Failed: One of them ended early, or both run the same runner.
    """
    named = os.environ.get("VLLM_GRAFT_ENGINE_PYTHON")
    python = named or str(ensure(cpu_engine()).python)
    words = ["-m", "vllm_graft.proof.cost", kind, executor, scheduling]
    graft = [sys.executable, "-m", "vllm_graft", "run", "--cpu", "--series", SERIES]
    commands = {
        BASE: [python, *words],
        GRAFTED: [*graft, "--", python, *words],
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = {
            name: stack.enter_context(_started(command, name, folder))
            for name, command in commands.items()
        }
        found = {
            name: Side(process, folder / f"{name}.log")
            for name, process in started.items()
        }
        resolves = {name: side.about["runner_resolves"] for name, side in found.items()}
        if resolves != {BASE: True, GRAFTED: False}:
            raise Failed(f"not base and grafted: {resolves}")
        yield found


@contextmanager
def _started(
    command: list[str], name: str, folder: Path
) -> Iterator[subprocess.Popen[str]]:
    env = driver_environment(os.environ) | {"VLLM_RPC_BASE_PATH": str(folder)}
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(env),
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
        process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def contestants(
    found: Mapping[str, Side], request: Mapping[str, Any]
) -> dict[str, Callable[[], Sample]]:
    """For :func:`benchmarks.timing.interleave`."""
    return {name: lambda s=side: s.ask(request) for name, side in found.items()}  # type: ignore[misc]
