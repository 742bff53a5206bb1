"""What one fault led to, and how two trees differ in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

Direction = Literal["better", "worse", "other"]
ANSWERED = "answered"


class Case(NamedTuple):
    """One fault in one configuration.

    Args:
        fault: Its name; see ``faults.FAULTS``.
        scheduling: ``sync`` or ``async``.
        executor: ``uni`` or ``mp``.
    """

    fault: str
    scheduling: str
    executor: str

    def __str__(self) -> str:
        return f"{self.fault} ({self.scheduling}, {self.executor})"


class Record(NamedTuple):
    """What was seen.

    Args:
        fault: The fault's name.
        scheduling: ``sync`` or ``async``.
        executor: ``uni`` or ``mp``.
        caller: What reached the caller: ``answered``, ``wrong answer: …``, or the
            exception's type and message.
        seconds: How long that took.
        goes_on: Whether executor and workers were still alive afterwards.
        next_call: What the next two calls gave: ``answered``, or the worse.
        left_processes: Processes left after the executor's shutdown.
        left_segments: Shared-memory segments left after shutdown and a garbage
            collection, while the executor's process lives.
        exit_processes: Processes left after the executor's process ended.
        exit_segments: Segments left after it ended.
    """

    fault: str
    scheduling: str
    executor: str
    caller: str
    seconds: float
    goes_on: bool
    next_call: str
    left_processes: int
    left_segments: int
    exit_processes: int = 0
    exit_segments: int = 0

    @property
    def case(self) -> Case:
        """Where it was seen."""
        return Case(self.fault, self.scheduling, self.executor)


_COMPARED = (
    "caller",
    "goes_on",
    "next_call",
    "left_processes",
    "exit_processes",
    "exit_segments",
)


class Difference(NamedTuple):
    """How a record of the grafted tree differs from the one of the base.

    Args:
        case: Where.
        direction: Whether grafted is ``better`` or ``worse``, or only ``other``: it
            says something else, and serves its caller as well.
        fields: What differs: the name, what base gave, what grafted gave.
    """

    case: Case
    direction: Direction
    fields: tuple[tuple[str, Any, Any], ...]

    def __str__(self) -> str:
        changes = "; ".join(f"{name}: {a} -> {b}" for name, a, b in self.fields)
        return f"{self.case}: grafted is {self.direction}: {changes}"


def read_records(result: Mapping[str, Any]) -> list[Record]:
    """The records of a result of ``faults``, as it stands in its JSON."""
    return [Record(**record) for record in result["records"]]


def compare(base: Iterable[Record], grafted: Iterable[Record]) -> list[Difference]:
    """The records that differ, in the order of ``base``.

    Two fields do not count, because they differ from run to run of the same tree:
    ``seconds`` (a wait for the timeout shows in ``caller``, as ``TimeoutError``), and
    ``left_segments`` (a worker that is told to end may or may not get to unlink its
    own; the resource tracker does so when the executor's process ends).

    Raises:
        ValueError: The two do not have the same cases.
    """
    other = {record.case: record for record in grafted}
    ours = {record.case: record for record in base}
    if ours.keys() != other.keys():
        odd = sorted(map(str, ours.keys() ^ other.keys()))
        raise ValueError(f"only one of the two has: {', '.join(odd)}")
    found = (_difference(record, other[case]) for case, record in ours.items())
    return [one for one in found if one is not None]


def _difference(base: Record, grafted: Record) -> Difference | None:
    pairs = [(n, _shown(base, n), _shown(grafted, n)) for n in _COMPARED]
    fields = tuple(pair for pair in pairs if pair[1] != pair[2])
    if not fields:
        return None
    before, after = _merit(base), _merit(grafted)
    direction: Direction = "other"
    if before != after:
        direction = "better" if after > before else "worse"
    return Difference(base.case, direction, fields)


def _shown(record: Record, name: str) -> Any:
    """A field without what differs from run to run of the same tree."""
    value = getattr(record, name)
    if name == "next_call" and not record.goes_on and worth(value):
        # Which of its errors an executor gives depends on how far its end has come.
        return "none: it has ended"
    return value


def _merit(record: Record) -> tuple[int, ...]:
    """The more, the better; what comes first counts most.

    A wrong answer is worse than none, and an error at once better than a wait for
    the timeout.
    """
    return (
        worth(record.caller),
        worth(record.next_call),
        int(record.goes_on),
        -(record.exit_processes + record.exit_segments),
        -record.left_processes,
    )


def worth(outcome: str) -> int:
    """The more, the better an outcome serves the caller."""
    if outcome.startswith(("wrong", "no outcome")):
        return 0
    if outcome.startswith("TimeoutError"):
        return 1
    # Who cancels a future gets what was asked for.
    return 3 if outcome == ANSWERED or outcome.startswith("CancelledError") else 2
