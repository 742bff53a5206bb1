"""Runs jobs side by side, bounded, and leaves nothing running.

Every process that a job starts has a token in its environment, and is found by it
wherever it put itself (sessions and process groups of its own included).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_graft.errors import GraftError

TOKEN: Final = "VLLM_GRAFT_VERIFY"  # noqa: S105 - the name of a variable
_GRACE: Final = 10.0  # seconds to clean up in, once told to end
_SETTLE: Final = 3.0  # seconds in which what a job started may end with it
_POLL: Final = 0.1
_STEP: Final = re.compile(r"^(\S+): (\S+) took ([0-9.]+) s$")
_PROC: Final = Path("/proc")

Progress = Callable[[str], None]


class Job(NamedTuple):
    """One process to run.

    Args:
        name: What it does.
        side: ``base``, ``grafted`` or ``again``.
        command: The program and its arguments.
        env: Its environment.
        output: The file in which it leaves its result, as JSON; None for none.
        limit: Seconds after which it is ended.
        steps: How many steps it announces in its log; without any, it is one.
        slots: How many of the slots it takes while it runs.
    """

    name: str
    side: str
    command: Sequence[str]
    env: Mapping[str, str]
    output: Path | None
    limit: float
    steps: int = 0
    slots: int = 1


class Done(NamedTuple):
    """A job that has ended.

    Args:
        job: The job.
        code: Its exit code; None where it was ended for being late.
        result: What it left in its output file; None where it left nothing.
        log: The file with what it printed.
        seconds: How long it ran.
        left: The command lines of the processes that it left behind.
    """

    job: Job
    code: int | None
    result: Any
    log: Path
    seconds: float
    left: Sequence[str]

    @property
    def error(self) -> str | None:
        """Why it has no result, or None where it went well."""
        if self.code == 0:
            return None
        if self.code is None:
            return f"not done after {self.job.limit:.0f} s"
        last = _last_error(self.log)
        return f"ended with {self.code}{f': {last}' if last else ''}"


class _Log:
    """The steps that a growing log announces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0

    def steps(self) -> Iterator[str]:
        """Those that are new since the last call."""
        with self.path.open("rb") as stream:
            stream.seek(self.place)
            new = stream.read()
        whole = new[: new.rfind(b"\n") + 1]
        self.place += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if _STEP.match(line):
                yield line


class _Running(NamedTuple):
    job: Job
    process: subprocess.Popen[bytes]
    log: _Log
    token: str
    began: float


def run_jobs(
    jobs: Sequence[Job], slots: int, scratch: Path, tell: Progress
) -> list[Done]:
    """Runs every job; in what order they end does not matter.

    Args:
        jobs: Started in this order.
        slots: How many run at the same time; one that takes more runs alone.
        scratch: A folder for logs; the jobs' current folder too.
        tell: Called with a line for each step that has been made.

    Raises:
        BaseException: Whatever interrupted it, once every process has ended.
    """
    waiting, done = list(jobs)[::-1], []
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and _fits(waiting[-1], running, slots):
                running.append(_start(waiting.pop(), scratch))
            time.sleep(_POLL)
            for one in list(running):
                code = one.process.poll()
                for step in one.log.steps():
                    tell(f"{one.job.side} {step}")
                if code is None and time.monotonic() - one.began < one.job.limit:
                    continue
                done.append(_end(one, code))
                running.remove(one)
                if not one.job.steps:
                    seconds = done[-1].seconds
                    tell(f"{one.job.side} {one.job.name} took {seconds:.1f} s")
    finally:
        for one in running:
            _stop(one)
    return done


def _fits(job: Job, running: Sequence[_Running], slots: int) -> bool:
    taken = sum(one.job.slots for one in running)
    return not running or taken + job.slots <= slots


def _start(job: Job, scratch: Path) -> _Running:
    log = scratch / f"{job.name}.{job.side}.log"
    token = uuid.uuid4().hex
    folder = scratch / f"{job.name}.{job.side}"
    folder.mkdir()
    try:
        with log.open("wb") as out:
            process = subprocess.Popen(
                list(job.command),
                env={**job.env, TOKEN: token},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                start_new_session=True,
            )
    except OSError as error:
        raise GraftError(
            f"cannot be started: {error.strerror}",
            where=job.command[0],
            hint="name a Python with vLLM with --python",
        ) from error
    return _Running(job, process, _Log(log), token, time.monotonic())


def _end(one: _Running, code: int | None) -> Done:
    seconds = time.monotonic() - one.began
    if code is None:
        _stop(one)
    left = list(_with_token(one.token, settle=_SETTLE).values())
    _stop(one)
    result = None
    if one.job.output is not None:
        with contextlib.suppress(OSError, ValueError):
            result = json.loads(one.job.output.read_text(encoding="utf-8"))
    return Done(one.job, code, result, one.log.path, round(seconds, 2), left)


def _stop(one: _Running) -> None:
    """Ends a job and all that it started: politely, then not."""
    if one.process.poll() is None:
        # An interrupt lets Python clean up; a second one would break into that.
        one.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(_GRACE)
    if one.process.poll() is None:
        one.process.kill()
        one.process.wait()
    deadline = time.monotonic() + _GRACE
    # Again: one may have started another in the meantime.
    while (left := _with_token(one.token)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL)


def _with_token(token: str, settle: float = 0.0) -> dict[int, str]:
    """The living processes of a job, their command lines by process id."""
    wanted = f"{TOKEN}={token}".encode()
    deadline = time.monotonic() + settle
    while True:
        found = dict(_find(wanted))
        if not found or time.monotonic() >= deadline:
            return found
        time.sleep(_POLL)


def _find(wanted: bytes) -> Iterator[tuple[int, str]]:
    if not _PROC.is_dir():
        return
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # Of a zombie, nothing is left but its number: it has no environment.
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, UnicodeDecodeError):
            continue  # it has ended meanwhile, or is somebody else's
        if "resource_tracker" not in command:
            yield int(folder.name), command.strip()


def _last_error(log: Path) -> str:
    """The last line of a log that names an exception, else its last line."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [
        x for x in lines if re.match(r"^(\(\S+ .*\) )?[\w.]+(Error|Exception)\b", x)
    ]
    return (named or lines or [""])[-1][:300]


def steps_of(jobs: Iterable[Job]) -> int:
    """How often ``tell`` will be called if all goes well."""
    return sum(job.steps or 1 for job in jobs)
