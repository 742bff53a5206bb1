"""Stops a program at its n-th operation on the files of a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

_OPERATIONS = {
    "open": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
}
_armed: list[Callable[[str], None]] = []


def _audit(event: str, args: tuple[object, ...]) -> None:
    if _armed and event in _OPERATIONS:
        _armed[-1](os.fsdecode(str(args[_OPERATIONS[event] - 1])))


sys.addaudithook(_audit)


class Counter:
    """Counts operations, and does something before the n-th."""

    def __init__(self, folder: Path, at: int, action: Callable[[], None]) -> None:
        self._folder = str(folder.resolve())
        self._at = at
        self._action = action
        self.count = 0

    def __call__(self, path: str) -> None:
        """Counts one operation."""
        if path.startswith(self._folder):
            self.count += 1
            if self.count == self._at:
                self._action()


@contextmanager
def stop_at(folder: Path, at: int, action: Callable[[], None]) -> Iterator[Counter]:
    """Does something before the n-th operation on files below a folder.

    Args:
        folder: The folder.
        at: The number of the operation, from 1.
        action: Raises, or ends the process.

    Returns:
        What counts; its ``count`` is less than ``at`` where nothing happened.
    """
    counter = Counter(folder, at, action)
    _armed.append(counter)
    try:
        yield counter
    finally:
        _armed.pop()


def killed_in_child(
    folder: Path, at: int, work: Callable[..., object], *args: object
) -> bool:
    """Works in a child process that is killed before its n-th operation.

    Args:
        folder: The folder whose operations count.
        at: The number of the operation, from 1.
        work: What to do.
        args: Its arguments.

    Returns:
        Whether it was killed; else it did the work.
    """
    child = os.fork()
    if not child:
        try:
            with stop_at(folder, at, lambda: os.kill(os.getpid(), SIGKILL)):
                work(*args)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False
