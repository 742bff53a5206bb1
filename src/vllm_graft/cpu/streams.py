"""Streams and events that finish a transfer as late as CUDA's rules allow.

The model, and what it promises:

- The *main* stream is eager: the CPU runs its work when it is called, so it never
  lags behind the host. A *side* stream keeps its transfers in a queue.
- A transfer has two moments. It is **run** in stream order: it reads its source.
  A transfer to the host is **landed** later still: it writes its destination,
  which until then holds poison. Running is forced by device-side waits
  (``wait_event``, ``wait_stream``), landing only by the host waiting
  (``Event.synchronize``, ``Stream.synchronize``, ``torch.cuda.synchronize``).
- Whoever reads the destination before waiting reads poison; whoever lets the main
  stream overwrite a source that nothing orders after the copy gets the later
  value; a source that was freed, though its memory was neither allocated on the
  copying stream nor given to it by ``record_stream``, gives poison too.

Each is a schedule that CUDA permits. What it cannot show: the main stream lagging
behind the host, and kernels (not transfers) on a side stream, which run at once.
A queue longer than ``PENDING_LIMIT`` finishes its oldest entries, also permitted.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from vllm_graft.cpu.storage import StorageSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PENDING_LIMIT = 256

# One lock for the whole stand-in device: queues of several streams depend on each
# other, and an output thread waits for events while the main thread enqueues.
DEVICE_LOCK = threading.RLock()

# How often each thing happened: evidence that a run really was deferred.
counts: Counter[str] = Counter()

# Called when a thread goes to a side stream (True) or back to main (False).
switches: list[Callable[[bool], None]] = []

# All there ever were: work goes on when the last reference to its stream goes.
_streams: list[Stream] = []
_current = threading.local()


class Work(Protocol):
    """One entry of a queue."""

    def run(self) -> bool:
        """Do the device side, in stream order; True if something has to land."""

    def land(self) -> None:
        """Make the result visible to the host."""

    def touches(self, storages: set[int]) -> bool:
        """Whether it reads or writes one of these device storages."""


class _Wait:
    """Entry that orders what follows it after another stream's work."""

    def __init__(self, stream: Stream, position: int) -> None:
        self.stream = stream
        self.position = position

    def run(self) -> bool:
        self.stream.run_until(self.position)
        return not self.stream.landed(self.position)

    def land(self) -> None:
        self.stream.land_until(self.position)

    def touches(self, storages: set[int]) -> bool:  # noqa: ARG002
        return False


class Stream:
    """Stand-in for ``torch.cuda.Stream``.

    Positions count the entries ever queued; an event is a stream and a position.
    """

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        eager: bool = False,
        **_ignored: Any,
    ) -> None:
        self.device = device
        self.priority = priority
        self.eager = eager
        self.issued = 0
        # Storages that outlive their last reference for this stream's sake:
        # allocated on it, or passed to record_stream.
        self.kept = StorageSet()
        self._queued: deque[tuple[int, Work]] = deque()
        self._landing: deque[tuple[int, Work]] = deque()
        self._outer: list[Stream] = []
        _streams.append(self)

    def enqueue(self, work: Work) -> None:
        """Append work; an eager stream runs it at once (but does not land it)."""
        with DEVICE_LOCK:
            self.issued += 1
            self._queued.append((self.issued, work))
            if self.eager:
                self.run_until(self.issued)
            excess = self.issued - PENDING_LIMIT
            if self._oldest() <= excess:
                counts["finished by limit"] += 1
                self.land_until(excess)

    def _oldest(self) -> int:
        for entries in (self._landing, self._queued):
            if entries:
                return entries[0][0]
        return self.issued + 1

    def run_until(self, position: int) -> None:
        """Run the entries up to ``position``, in order."""
        with DEVICE_LOCK:
            while self._queued and self._queued[0][0] <= position:
                entry = self._queued.popleft()
                if entry[1].run():
                    self._landing.append(entry)

    def land_until(self, position: int) -> None:
        """Run and land the entries up to ``position``, in order."""
        with DEVICE_LOCK:
            self.run_until(position)
            while self._landing and self._landing[0][0] <= position:
                self._landing.popleft()[1].land()

    def pending(self) -> Iterator[Work]:
        """The entries that have not run yet, oldest first."""
        return iter([work for _, work in self._queued])

    def landed(self, position: int) -> bool:
        """Whether the host can see everything up to ``position``."""
        return self._oldest() > position

    # The interface of torch.cuda.Stream.

    def wait_event(self, event: Event) -> None:
        """What is queued from now on runs after what the event recorded."""
        if event.stream is not None and event.stream is not self:
            self.enqueue(_Wait(event.stream, event.position))

    def wait_stream(self, stream: Stream) -> None:
        """What is queued from now on runs after the other stream's work so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this stream's present end."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Let the host wait for all of this stream's work."""
        self.land_until(self.issued)

    def query(self) -> bool:
        """Whether the host can see all of this stream's work."""
        return self.landed(self.issued)

    def __enter__(self) -> Stream:  # noqa: PYI034 - Self is 3.11
        self._outer.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        set_stream(self._outer.pop())


class Event:
    """Stand-in for ``torch.cuda.Event``; timing is not measured."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.stream: Stream | None = None
        self.position = 0
        self._polled = False

    def __reduce__(self) -> NoReturn:
        """An event belongs to its process: a result that holds one is unresolved."""
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def record(self, stream: Stream | None = None) -> None:
        """Remember the stream's (by default the current one's) present end."""
        self.stream = stream or current_stream()
        self.position = self.stream.issued
        self._polled = False

    def wait(self, stream: Stream | None = None) -> None:
        """Let the stream (by default the current one) wait for this event."""
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Let the host wait; an event never recorded is complete, as in CUDA."""
        if self.stream is not None:
            if not self.stream.landed(self.position):
                counts["waits that landed something"] += 1
            self.stream.land_until(self.position)

    def query(self) -> bool:
        """False at the first look at unfinished work, then it finishes.

        A loop that polls ends, and one that assumes completion does not pass.
        """
        if self.stream is None or self.stream.landed(self.position):
            return True
        if not self._polled:
            self._polled = True
            return False
        self.synchronize()
        return True

    def elapsed_time(self, _end: Event) -> float:
        """Zero milliseconds: there is no device clock to read."""
        return 0.0


MAIN = Stream(eager=True)


def current_stream(_device: Any = None) -> Stream:
    """The thread's current stream; the main stream unless it was set."""
    stream: Stream = getattr(_current, "stream", MAIN)
    return stream


def default_stream(_device: Any = None) -> Stream:
    """The main stream."""
    return MAIN


def set_stream(stream: Stream) -> None:
    """Make a stream this thread's current one."""
    was_side = not current_stream().eager
    _current.stream = stream
    if was_side == stream.eager:
        for switch in switches:
            switch(not stream.eager)


def stream_context(stream: Stream | None) -> Stream:
    """Stand-in for ``torch.cuda.stream``: a context that makes it current."""
    return stream if stream is not None else current_stream()


def synchronize(_device: Any = None) -> None:
    """Let the host wait for every stream."""
    for stream in _streams:
        stream.synchronize()
