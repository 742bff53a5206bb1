"""The stand-in streams and events: when queued work runs, and when it lands."""

from __future__ import annotations

import threading

import pytest

from vllm_graft.cpu import streams
from vllm_graft.cpu.streams import Event, Stream


class Note:
    """Work that notes in a list when it runs and when it lands."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log = log
        self.name = name

    def run(self) -> bool:
        self.log.append(f"run {self.name}")
        return True

    def land(self) -> None:
        self.log.append(f"land {self.name}")

    def touches(self, storages: set[int]) -> bool:
        return False


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def main() -> Stream:
    return Stream(eager=True)


def test_a_side_stream_does_nothing_by_itself(log: list[str]) -> None:
    Stream().enqueue(Note(log, "a"))
    assert log == []


def test_the_main_stream_runs_at_once_and_lands_later(
    log: list[str], main: Stream
) -> None:
    main.enqueue(Note(log, "a"))
    assert log == ["run a"]
    main.synchronize()
    assert log == ["run a", "land a"]


def test_an_event_completes_what_came_before_it_and_no_more(log: list[str]) -> None:
    stream = Stream()
    stream.enqueue(Note(log, "a"))
    event = stream.record_event()
    stream.enqueue(Note(log, "b"))
    event.synchronize()
    assert log == ["run a", "land a"]


def test_an_event_waited_for_late_keeps_the_order(log: list[str]) -> None:
    stream = Stream()
    for name in "abc":
        stream.enqueue(Note(log, name))
    stream.record_event().synchronize()
    assert [entry for entry in log if entry.startswith("land")] == [
        "land a",
        "land b",
        "land c",
    ]


def test_waiting_twice_lands_once(log: list[str]) -> None:
    stream = Stream()
    stream.enqueue(Note(log, "a"))
    event = stream.record_event()
    event.synchronize()
    event.synchronize()
    assert log.count("land a") == 1


def test_an_event_recorded_again_means_the_later_place(log: list[str]) -> None:
    stream = Stream()
    event = stream.record_event()
    stream.enqueue(Note(log, "a"))
    event.record(stream)
    event.synchronize()
    assert "land a" in log


def test_an_event_never_recorded_is_complete() -> None:
    event = Event()
    event.synchronize()
    assert event.query()


@pytest.mark.parametrize("wait", ["wait_stream", "wait_event"])
def test_a_device_side_wait_runs_but_does_not_land(
    log: list[str], main: Stream, wait: str
) -> None:
    side = Stream()
    side.enqueue(Note(log, "a"))
    if wait == "wait_stream":
        main.wait_stream(side)
    else:
        main.wait_event(side.record_event())
    assert log == ["run a"]


def test_the_host_waiting_for_main_lands_what_main_waited_for(
    log: list[str], main: Stream
) -> None:
    side = Stream()
    side.enqueue(Note(log, "a"))
    main.wait_stream(side)
    main.synchronize()
    assert log == ["run a", "land a"]


def test_a_wait_between_side_streams_orders_them(log: list[str]) -> None:
    first, second = Stream(), Stream()
    first.enqueue(Note(log, "a"))
    second.wait_stream(first)
    second.enqueue(Note(log, "b"))
    assert log == []
    second.synchronize()
    assert log == ["run a", "run b", "land a", "land b"]


def test_waiting_on_itself_is_no_deadlock(log: list[str]) -> None:
    stream = Stream()
    stream.enqueue(Note(log, "a"))
    stream.wait_stream(stream)
    stream.synchronize()
    assert log == ["run a", "land a"]


def test_polling_sees_unfinished_work_once_and_then_ends(log: list[str]) -> None:
    stream = Stream()
    stream.enqueue(Note(log, "a"))
    event = stream.record_event()
    assert not event.query()
    assert log == []
    assert event.query()
    assert "land a" in log


def test_a_long_queue_finishes_its_oldest_entries(log: list[str]) -> None:
    stream = Stream()
    for number in range(streams.PENDING_LIMIT + 3):
        stream.enqueue(Note(log, str(number)))
    assert [entry for entry in log if entry.startswith("land")] == [
        "land 0",
        "land 1",
        "land 2",
    ]


def test_device_synchronize_reaches_every_stream(log: list[str]) -> None:
    first, second = Stream(), Stream()
    first.enqueue(Note(log, "a"))
    second.enqueue(Note(log, "b"))
    streams.synchronize()
    assert {"land a", "land b"} <= set(log)


def test_the_current_stream_is_a_matter_of_the_thread() -> None:
    side, seen = Stream(), []
    with side:
        assert streams.current_stream() is side
        thread = threading.Thread(target=lambda: seen.append(streams.current_stream()))
        thread.start()
        thread.join()
    assert seen == [streams.MAIN]
    assert streams.current_stream() is streams.MAIN


def test_contexts_nest_and_restore() -> None:
    outer, inner = Stream(), Stream()
    with outer, inner, outer:
        assert streams.current_stream() is outer
    assert streams.current_stream() is streams.MAIN


def test_record_without_a_stream_means_the_current_one(log: list[str]) -> None:
    side = Stream()
    side.enqueue(Note(log, "a"))
    event = Event()
    with side:
        event.record()
    event.synchronize()
    assert "land a" in log


def test_switches_hear_of_going_to_a_side_stream_and_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bool] = []
    monkeypatch.setattr(streams, "switches", [heard.append])
    side, other = Stream(), Stream()
    with side, other:
        pass
    assert heard == [True, False]


def test_threads_that_wait_for_the_same_event_land_it_once(log: list[str]) -> None:
    stream = Stream()
    for number in range(200):
        stream.enqueue(Note(log, str(number)))
    event = stream.record_event()
    threads = [threading.Thread(target=event.synchronize) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry for entry in log if entry.startswith("land")] == [
        f"land {number}" for number in range(200)
    ]
