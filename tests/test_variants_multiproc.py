"""How forks may write the worker's busy loop, and what is true of each."""

from typing import Any

import pytest

from drifted import Miniature, Output, Variant, read_variants

FRAME = """
class Lock:
    def __enter__(self): ...
    def __exit__(self, *error): ...


class watchdog:
    @staticmethod
    def feed(): ...


def record_function(name):
    return Lock()


def log(*words): ...


class WorkerProc:
    def __init__(self, requests):
        self.requests = requests
        self.sent = []
        self.rank = 0
        self._lock = Lock()

    def dequeue(self):
        if not self.requests:
            raise KeyboardInterrupt
        return self.requests.pop(0)

    def handle_output(self, output):
        if isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()
        if isinstance(output, Exception):
            self.sent.append(("FAILURE", str(output)))
        else:
            self.sent.append(("SUCCESS", output))

    def send_quietly(self, output):
        self.handle_output(output)

    def worker_busy_loop(self):
        while True:
            func, args, kwargs, output_rank = self.dequeue()
            BODY
"""


def works(space: dict[str, Any]) -> bool:
    """Each request of this rank gets one response, in order; no error ends the loop."""
    error = RuntimeError("broken")

    def fails() -> None:
        raise error

    requests: list[Any] = [
        (lambda: "plain", (), {}, None),
        (Output, (), {}, 0),
        (lambda x: x, (), {"x": 5}, 1),  # another rank's
        (fails, (), {}, None),
        (lambda: Output(error=error), (), {}, 0),
        (fails, (), {}, 1),
        (lambda: Output("last"), (), {}, None),
    ]
    worker = space["WorkerProc"](requests)
    try:
        worker.worker_busy_loop()
    except KeyboardInterrupt:
        pass
    except RuntimeError:
        return False
    sent: list[tuple[str, object]] = worker.sent
    return sent == [
        ("SUCCESS", "plain"),
        ("SUCCESS", "tokens"),
        ("FAILURE", "broken"),
        ("FAILURE", "broken"),
        ("SUCCESS", "last"),
    ]


MINIATURE = Miniature("0002-multiproc-executor.spatch", FRAME, works)

VARIANTS = read_variants("multiproc")


@pytest.mark.parametrize("case", VARIANTS, ids=lambda v: v.name)
def test_variant(case: Variant) -> None:
    MINIATURE.check(case)
