"""The files of the hardening series in miniature, and what must be true of them.

They run in one process: a queue that can break in each way that matters, and a worker
whose methods are written in many ways.
"""

from __future__ import annotations

import contextlib
import textwrap
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

from drifted import Output
from vllm_graft import MemoryTree, Tree

EXECUTOR = "vllm/v1/executor/multiproc_executor.py"
QUEUE = "vllm/distributed/device_communicators/shm_broadcast.py"

_QUEUE = '''
"""A queue of blocks; what is larger than 99 bytes goes by socket."""
import contextlib
import pickle


class MessageQueue:
    def __init__(self, broken="", remote=0):
        self.broken = broken
        self.n_remote_reader = remote
        self.current_idx = 0
        self.blocks = []
        self.socket_messages = []
        self.local_socket = self

    def fail(self, where):
        if self.broken == where:
            raise OSError(where)

    def send_multipart(self, message, copy=True):
        self.fail("socket")
        self.socket_messages += message

    def notify(self):
        self.fail("notify")

    @contextlib.contextmanager
    def acquire_write(self, timeout):
        self.fail("block")
        block = [None, None]
        yield block
        self.blocks.append(block)
        self.current_idx += 1

    def enqueue(self, obj, timeout=None):
        message = pickle.dumps(obj)
        if len(message) > 99:
            with self.acquire_write(timeout) as place:
                place[0] = 1
            self.local_socket.send_multipart([message], copy=False)
        else:
            with self.acquire_write(timeout) as place:
                place[:] = 0, message
        self.notify()

    def received(self):
        by_socket = iter(self.socket_messages)
        return [pickle.loads(b[1] or next(by_socket)) for b in self.blocks]
'''

_WORKER = """
class Failed(Exception):
    text = "more"


class ResponseStatus:
    SUCCESS, FAILURE, OTHER = "success", "failure", "other"


class WorkerProc:
    ResponseStatus = ResponseStatus

    def __init__(self, queue):
        self.worker_response_mq = queue
        self.lock = threading.Lock()
        self.stopped = False
        self.worker = SimpleNamespace(device="device 0")

    def resolve(self, given):
        if isinstance(given, AsyncModelRunnerOutput):
            return given.get_output()
        return given

    def enqueue_output(self, given):
        ENQUEUE

    def handle_output(self, given):
        self.enqueue_output(given)

    def async_output_busy_loop(self):
        THREAD
"""

ENQUEUE = """
if isinstance(given, AsyncModelRunnerOutput):
    given = given.get_output()
if isinstance(given, Exception):
    reply = (WorkerProc.ResponseStatus.FAILURE, str(given))
else:
    reply = (WorkerProc.ResponseStatus.SUCCESS, given)
if (queue := self.worker_response_mq) is not None:
    queue.enqueue(reply)
"""
THREAD = """
if hasattr(self.worker, "device"):
    current_platform.set_device(self.worker.device)
while True:
    given = self.async_output_queue.get()
    self.enqueue_output(given)
"""


def miniature(enqueue: str = ENQUEUE, thread: str = THREAD) -> MemoryTree:
    """A tree of the two files, with two methods of the worker written as given."""
    worker = _WORKER
    for name, body in (("ENQUEUE", enqueue), ("THREAD", thread)):
        code = textwrap.indent(body.strip("\n"), " " * 8)
        worker = worker.replace(f"        {name}", code)
    files = {"vllm/__init__.py": "", QUEUE: _QUEUE, EXECUTOR: worker}
    return MemoryTree({p: text.encode() for p, text in files.items()}, "0.0.0")


class Stopped(BaseException):
    """Ends a loop that nothing else ends."""


class Items:
    """What a thread is given, until it stops."""

    def __init__(self, items: Sequence[object]) -> None:
        self.items = list(items)

    def get(self) -> object:
        if not self.items:
            raise Stopped
        return self.items.pop(0)


class World:
    """A miniature as it runs.

    Args:
        tree: The tree.
        device_fails: Whether setting a device does.
    """

    def __init__(self, tree: Tree, *, device_fails: bool = False) -> None:
        self.ended: list[str] = []
        self.space: dict[str, Any] = {
            "AsyncModelRunnerOutput": Output,
            "SimpleNamespace": SimpleNamespace,
            "current_platform": SimpleNamespace(set_device=self._set_device),
            "log": bool,
            "logger": SimpleNamespace(exception=bool),
            "os": SimpleNamespace(getpid=int, kill=self._end, _exit=self._exit),
            "signal": SimpleNamespace(SIGTERM="term"),
            "threading": threading,
        }
        self._device_fails = device_fails
        for path in (QUEUE, EXECUTOR):
            exec(compile(tree.read(path) or b"", path, "exec"), self.space)

    def _set_device(self, device: str) -> None:
        if self._device_fails:
            raise RuntimeError(f"no {device}")

    def _end(self, *how: object) -> None:
        self.ended.append(str(how))

    def _exit(self, how: object) -> NoReturn:
        self._end(how)
        raise Stopped

    def send(self, outputs: Sequence[object], **queue: Any) -> tuple[Any, bool]:
        """What a reader gets of some outputs, and whether sending ended the worker."""
        mq = self.space["MessageQueue"](**queue)
        worker = self.space["WorkerProc"](mq)
        try:
            for output in outputs:
                worker.enqueue_output(output)
        except SystemExit:
            return mq.received(), True
        return mq.received(), False

    def loop(self, outputs: Sequence[object], **queue: Any) -> tuple[Any, bool]:
        """The same of the thread, and whether it ended the worker."""
        mq = self.space["MessageQueue"](**queue)
        worker = self.space["WorkerProc"](mq)
        worker.async_output_queue = Items(outputs)
        with contextlib.suppress(Stopped):
            worker.async_output_busy_loop()
        return mq.received(), bool(self.ended)


def _error() -> Exception:
    error = ValueError("no copy")
    error.__cause__ = KeyError("device")
    return error


_SAID = "ValueError: no copy, caused by KeyError: 'device'"
_LARGE = "x" * 999
#: What is sent, through which queue; what a reader must get, and whether it ends.
_SENT: list[tuple[list[Any], dict[str, Any], list[Any], bool]] = [
    ([1, Output(2)], {}, [("success", 1), ("success", 2)], False),
    ([Output(error=_error()), 3], {}, [("failure", _SAID), ("success", 3)], False),
    ([_error(), 3], {}, [("failure", _SAID), ("success", 3)], False),
    (
        [threading.Lock(), 4],
        {},
        [("failure", "TypeError: cannot pickle '_thread.lock' object"), ("success", 4)],
        False,
    ),
    (
        [_LARGE, 5],
        {"broken": "socket"},
        [("failure", "OSError: socket"), ("success", 5)],
        False,
    ),
    ([6, 7], {"broken": "notify"}, [("success", 6)], True),
    ([8, 9], {"broken": "block"}, [], True),
    ([threading.Lock(), 10], {"remote": 1}, [], True),
]


def sends_once(tree: Tree) -> bool:
    """Each output is answered once, by itself or by its failure, or the worker ends."""
    try:
        return all(
            World(tree).send(outputs, **queue) == (received, ended)
            for outputs, queue, received, ended in _SENT
        )
    except Exception:  # noqa: BLE001 - whatever it is, it ends a thread
        return False


def suppresses_context(tree: Tree) -> bool:
    """Of what an error hides, a caller is not told; of what it came from, it is."""
    shown, hidden = ValueError("shown"), ValueError("hidden")
    for error in (shown, hidden):
        error.__context__ = OSError("before")
    hidden.__suppress_context__ = True
    received, _ = World(tree).send([shown, hidden])
    return [text for _, text in received] == [
        "ValueError: shown, caused by OSError: before",
        "ValueError: hidden",
    ]


def thread_answers(tree: Tree) -> bool:
    """The thread answers each output, or ends the worker and sends nothing more."""
    try:
        fine = World(tree).loop([1, Output(2)])
        lost = World(tree).loop([1, 2], broken="notify")
        spread = World(tree, device_fails=True).loop([1, Output(2), _error()])
    except BaseException:  # noqa: BLE001 - whatever it is, it ends a thread
        return False
    no_device = ("failure", "RuntimeError: no device 0")
    said = [("success", 1), no_device, ("failure", _SAID)]
    has_device = "set_device" in str(tree.read(EXECUTOR))
    return (
        fine == ([("success", 1), ("success", 2)], False)
        and lost == ([("success", 1)], True)
        and (not has_device or spread == (said, False))
    )
