"""What an executor left behind: processes and shared-memory segments.

Linux only: it reads ``/proc`` and ``/dev/shm``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel has it


def in_session(session: int, trackers: bool = False) -> dict[int, str]:
    """The living processes of a session, their command lines by process id.

    Dead ones that nobody has waited for yet (zombies) do not count: they hold
    nothing. Neither, unless asked for, do the resource trackers of
    :mod:`multiprocessing`: one ends after all processes that may write to it, and
    unlinks what they left.

    Args:
        session: The process id of the session's leader, which is left out.
        trackers: Whether resource trackers count.
    """
    found = {}
    for folder in _PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == session:
            continue
        try:
            # The name may hold anything, parentheses too.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended meanwhile
        state, owner = fields[0], int(fields[3])
        if owner != session or state in "ZX":
            continue
        if trackers or "resource_tracker" not in command:
            found[int(folder.name)] = command.strip()
    return found


def segments_of(queues: Collection[Any]) -> list[str]:
    """The names of the shared-memory segments of vLLM's message queues."""
    handles = [queue.handle.buffer_handle for queue in queues]
    return [handle[3].lstrip("/") for handle in handles if handle is not None]


def mapped(session: int) -> list[str]:
    """The names of the shared-memory segments that a session's processes map."""
    prefix = f"{_SHARED_MEMORY}/psm_"
    found = set()
    for pid in (session, *in_session(session)):
        try:
            lines = (_PROC / str(pid) / "maps").read_text().splitlines()
        except OSError:
            continue  # it has ended meanwhile
        paths = (line.split(maxsplit=5)[-1] for line in lines)
        found |= {Path(path).name for path in paths if path.startswith(prefix)}
    return sorted(found)


def existing(segments: Collection[str]) -> list[str]:
    """Those of the segments that still exist."""
    return [name for name in segments if (_SHARED_MEMORY / name).exists()]


def remove(segments: Collection[str]) -> None:
    """Unlink segments that nobody else will."""
    for name in segments:
        (_SHARED_MEMORY / name).unlink(missing_ok=True)


def settle(count: Callable[[], Collection[Any]], seconds: float) -> int:
    """How many are left once none is, or once the time is over.

    Args:
        count: Gives what is left at the moment.
        seconds: How long to wait for it to become empty.
    """
    deadline = time.monotonic() + seconds
    while (left := count()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(left)


def lead_session() -> int:
    """Make this process the leader of a new session; its id."""
    os.setsid()
    return os.getpid()
