"""Progress bars, on terminals only. Importing this imports rich."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def download_bar(label: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A callback that draws a bar on stderr; None where stderr is no terminal.

    Args:
        label: What is being downloaded.
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _bar(*columns) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield update


@contextmanager
def count_bar(label: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """The same for things that are counted: done, how many, the name of the last.

    Args:
        label: What is being done to them.
    """
    if not sys.stderr.isatty():
        yield None
        return
    with _bar(MofNCompleteColumn(), TextColumn("{task.fields[name]}")) as bar:
        task = bar.add_task(label, total=None, name="")

        def update(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, name=name)

        yield update


def _bar(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=Console(stderr=True),
        transient=True,
    )
