"""How forks may write the worker's busy loop, and what is true of each."""

from typing import Any

import pytest

from miniatures import Miniature, Output, Variant, variant

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
    return worker.sent == [
        ("SUCCESS", "plain"),
        ("SUCCESS", "tokens"),
        ("FAILURE", "broken"),
        ("FAILURE", "broken"),
        ("SUCCESS", "last"),
    ]


MINIATURE = Miniature("0002-multiproc-executor.spatch", FRAME, works)

VARIANTS = [
    variant(
        "upstream",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            log("failed")
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue

        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "renamed and annotated",
        "applies",
        """
        try:
            result: object = func(*args, **kwargs)
        except Exception as err:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(err)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(result)
    """,
    ),
    variant(
        "watchdog and logging",
        "applies",
        """
        try:
            watchdog.feed()
            output = func(*args, **kwargs)
            watchdog.feed()  # once more
        except Exception as e:
            # log it
            log("failed", e)
            if output_rank is None or self.rank == output_rank:
                log("telling")
                self.handle_output(e)
                log("told")
            continue

        # Tell the engine.
        if output_rank is None or self.rank == output_rank:
            log("sending")
            self.handle_output(output)  # the result
            # sent
    """,
    ),
    variant(
        "rank on the left",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or output_rank == self.rank:
                self.handle_output(e)
            continue
        if output_rank is None or output_rank == self.rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "rank in a tuple",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank in (None, self.rank):
                self.handle_output(e)
            continue
        if output_rank in (None, self.rank):
            self.handle_output(output)
    """,
    ),
    variant(
        "tuple of a rank",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank in (output_rank,):
                self.handle_output(e)
            continue
        if output_rank is None or self.rank in (output_rank,):
            self.handle_output(output)
    """,
    ),
    variant(
        "two tests",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank in (None, self.rank):
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "under a lock",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                with self._lock:
                    self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            with self._lock:
                self.handle_output(output)
    """,
    ),
    variant(
        "call under record_function",
        "applies",
        """
        try:
            with record_function("rpc"):
                output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            with record_function("send"):
                self.handle_output(output)
    """,
    ),
    variant(
        "all under record_function",
        "applies",
        """
        with record_function("request"):
            try:
                output = func(*args, **kwargs)
            except Exception as e:
                if output_rank is None or self.rank == output_rank:
                    self.handle_output(e)
                continue
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
    """,
    ),
    variant(
        "another except clause",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except SystemExit:
            raise
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "in an else clause",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
        else:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
    """,
    ),
    variant(
        "base exceptions too",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except (Exception, GeneratorExit) as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "something after it",
        "applies",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        log("succeeded")
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
        log("sent")
    """,
    ),
    variant(
        "odd formatting",
        "applies",
        """
        try:

            output = func(
                *args, # positional
                **kwargs)   # the rest
        except (Exception) as e:
            if (output_rank is None
                    or self.rank == output_rank):  # ours
                self.handle_output(
                    e)
            continue;


        if (output_rank is None
                or self.rank == output_rank):  # ours
            self.handle_output(output = output) if 0 else self.handle_output(output)
    """,
    ),
    variant(
        "on one line",
        "applies",
        """
        try: output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank: self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank: self.handle_output(output)
    """,
    ),
    variant(
        "done",
        "applied",
        """
        try:
            output = func(*args, **kwargs)

            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
    """,
    ),
    variant(
        "done with a watchdog under a lock",
        "applied",
        """
        try:
            watchdog.feed()
            output = func(*args, **kwargs)
            watchdog.feed()
            if output_rank in (None, self.rank):
                with self._lock:
                    self.handle_output(output)
        except Exception as e:
            log("failed")
            if output_rank in (None, self.rank):
                self.handle_output(e)
        log("next")
    """,
    ),
    variant(
        "done another way",
        "superseded",
        """
        try:
            output = func(*args, **kwargs)
            if output_rank is not None and self.rank != output_rank:
                continue
            self.handle_output(output)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
    """,
    ),
    # Nothing below is done, and much of it looks as if it were.
    variant(
        "sent twice",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "error swallowed",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
        except Exception as e:
            log(e)
    """,
    ),
    variant(
        "error of another kind",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
        except KeyError as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
    """,
    ),
    variant(
        "an inner try",
        "conflict",
        """
        try:
            try:
                output = func(*args, **kwargs)
            except Exception as e:
                output = e
        finally:
            log("called")
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "sent before the call",
        "conflict",
        """
        output = None
        try:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(output)
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
    """,
    ),
    variant(
        "something else sent",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
            status = "ok"
            if output_rank is None or self.rank == output_rank:
                self.handle_output(status)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.handle_output(output)
    """,
    ),
    variant(
        "sent by a helper after the try",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
            continue
        if output_rank is None or self.rank == output_rank:
            self.send_quietly(output)
    """,
    ),
    variant(
        "sent only when it is worth it",
        "conflict",
        """
        try:
            output = func(*args, **kwargs)
            if kwargs and (output_rank is None or self.rank == output_rank):
                self.handle_output(output)
        except Exception as e:
            if output_rank is None or self.rank == output_rank:
                self.handle_output(e)
    """,
    ),
]


@pytest.mark.parametrize("case", VARIANTS, ids=lambda v: v.name)
def test_variant(case: Variant) -> None:
    MINIATURE.check(case)
