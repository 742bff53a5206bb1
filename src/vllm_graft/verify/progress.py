"""How far a verification is: a bar on a terminal, else a plain line a step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from vllm_graft.progress import count_bar
from vllm_graft.verify.verification import Progress


@contextmanager
def verify_progress() -> Iterator[Progress]:
    """A callback that says on standard error what was done, and of how much."""
    with count_bar("verify") as bar:
        if bar is not None:
            bar(0, 1, "starting the engines")
            yield bar
            return
        began = time.monotonic()

        def tell(done: int, total: int, line: str) -> None:
            seconds = time.monotonic() - began
            _say(f"[{done:>{len(str(total))}}/{total}] {seconds:4.0f} s  {line}")

        _say("starting the engines; this takes minutes")
        yield tell


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - progress
