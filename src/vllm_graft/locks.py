"""Locks on folders, which end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lock(folder: Path) -> Iterator[bool]:
    """Locks a folder for this process; gives whether no other one had it."""
    handle = os.open(folder, os.O_RDONLY)
    free = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        free = False
    except OSError:
        pass  # a file system without locks; then nothing tells
    try:
        yield free
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Whether some process has locked a folder; no where it is gone."""
    try:
        with lock(folder) as free:
            return not free
    except OSError:
        return False
