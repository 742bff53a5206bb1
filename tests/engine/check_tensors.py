"""Checks of the tensor stand-ins; run by the engine's Python, which has torch.

    python check_tensors.py [NAME...]

Prints one JSON object: for each check its name and null, or the traceback. Half of
the checks write an ordering error on purpose and assert that it shows.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback

import torch

from vllm_graft.cpu import streams, tensors

tensors.install()


def side() -> streams.Stream:
    stream: streams.Stream = torch.cuda.Stream()
    return stream


def main() -> streams.Stream:
    return streams.current_stream()


def copied(
    source: torch.Tensor, stream: streams.Stream
) -> tuple[torch.Tensor, streams.Event]:
    """Start a copy to the host as vLLM does; the target and its event."""
    event = torch.cuda.Event()
    stream.wait_stream(main())
    with torch.cuda.stream(stream):
        target = source.to("cpu", non_blocking=True)
        event.record()
    return target, event


# What is right: nothing may go wrong.


def check_a_copy_is_there_after_its_event() -> None:
    source = torch.arange(5)
    target, event = copied(source, side())
    event.synchronize()
    assert target.tolist() == [0, 1, 2, 3, 4]


def check_a_view_taken_before_the_event_sees_the_copy() -> None:
    source = torch.arange(6.0).reshape(2, 3)
    target, event = copied(source, side())
    rows, array = list(target.unbind(dim=0)), target.numpy()
    event.synchronize()
    assert rows[1].tolist() == [3.0, 4.0, 5.0]
    assert array[0].tolist() == [0.0, 1.0, 2.0]


def check_the_target_is_a_copy_and_no_alias() -> None:
    source = torch.arange(5)
    target, event = copied(source, side())
    event.synchronize()
    source.fill_(9)
    assert target.tolist() == [0, 1, 2, 3, 4]


def check_a_conversion_on_the_way() -> None:
    with torch.cuda.stream(side()):
        target = torch.tensor([1.5]).to("cpu", torch.int64, non_blocking=True)
    torch.cuda.synchronize()
    assert target.tolist() == [1]


def check_work_goes_on_when_nobody_holds_its_stream() -> None:
    source = torch.arange(3)
    target, event = copied(source, side())
    event.stream = None
    torch.cuda.synchronize()
    assert target.tolist() == [0, 1, 2]


def check_a_copy_on_the_main_stream_is_ordered_before_later_writes() -> None:
    source = torch.arange(3)
    target = source.to("cpu", non_blocking=True)
    event = main().record_event()
    source.fill_(7)
    event.synchronize()
    assert target.tolist() == [0, 1, 2]


def check_main_waiting_for_the_copy_protects_the_source() -> None:
    source, stream = torch.arange(3), side()
    target, event = copied(source, stream)
    main().wait_stream(stream)
    source.fill_(7)
    event.synchronize()
    assert target.tolist() == [0, 1, 2]


def check_record_stream_keeps_the_source() -> None:
    source, stream = torch.arange(4) + 0, side()
    source.record_stream(stream)
    target, event = copied(source, stream)
    del source
    event.synchronize()
    assert target.tolist() == [0, 1, 2, 3]


def check_record_stream_after_the_copy_keeps_the_source() -> None:
    source, stream = torch.arange(4) + 0, side()
    target, event = copied(source, stream)
    source.record_stream(stream)
    del source
    event.synchronize()
    assert target.tolist() == [0, 1, 2, 3]


def check_what_the_copying_stream_allocated_is_kept() -> None:
    source, stream = torch.arange(4), side()
    with torch.cuda.stream(stream):
        target = (source * 2).to("cpu", non_blocking=True)
    stream.synchronize()
    assert target.tolist() == [0, 2, 4, 6]


def check_a_view_keeps_the_source() -> None:
    source = torch.arange(4) + 0
    view = source[1:]
    target, event = copied(source, side())
    del source
    event.synchronize()
    assert target.tolist() == [0, 1, 2, 3]
    assert view.tolist() == [1, 2, 3]


def check_a_copy_to_the_device_is_there_once_main_waits() -> None:
    stream, target = side(), torch.zeros(3)
    with torch.cuda.stream(stream):
        target.copy_(torch.ones(3), non_blocking=True)
    main().wait_stream(stream)
    assert target.tolist() == [1, 1, 1]


def check_pageable_memory_may_be_reused_at_once() -> None:
    stream, target, host = side(), torch.zeros(3), torch.ones(3)
    with torch.cuda.stream(stream):
        target.copy_(host, non_blocking=True)
    host.fill_(5)
    main().wait_stream(stream)
    assert target.tolist() == [1, 1, 1]


def check_a_dropped_pinned_tensor_is_still_copied() -> None:
    stream, target = side(), torch.zeros(2, dtype=torch.int32)
    with torch.cuda.stream(stream):
        host = torch.tensor([3, 4], dtype=torch.int32, device="cpu", pin_memory=True)
        target.copy_(host, non_blocking=True)
        del host
    main().wait_stream(stream)
    assert target.tolist() == [3, 4]


def check_a_side_stream_is_in_order_with_itself() -> None:
    stream, target = side(), torch.zeros(2)
    with torch.cuda.stream(stream):
        target.copy_(torch.ones(2), non_blocking=True)
        doubled = target * 2
    assert doubled.tolist() == [2, 2]


def check_a_blocking_copy_waits_for_its_stream() -> None:
    source = torch.arange(3)
    first = source.to("cpu", non_blocking=True)
    source.cpu()
    assert first.tolist() == [0, 1, 2]


def check_another_thread_may_wait() -> None:
    with torch.inference_mode():
        source = torch.arange(3)
        target, event = copied(source, side())
    thread = threading.Thread(target=event.synchronize)
    thread.start()
    thread.join()
    assert target.tolist() == [0, 1, 2]


def check_pinned_memory_is_accepted_by_every_factory() -> None:
    made = [
        torch.zeros(2, pin_memory=True),
        torch.empty(2, pin_memory=True),
        torch.full((2,), 1, pin_memory=True),
        torch.tensor([1, 2], pin_memory=True),
        torch.zeros_like(torch.ones(2), pin_memory=True),
        torch.ones(2).pin_memory(),
    ]
    assert all(tensor in tensors.pinned for tensor in made)


def check_device_contexts_still_work() -> None:
    with torch.device("meta"):
        assert torch.empty(2).device.type == "meta"
        assert torch.zeros(2).device.type == "meta"


def check_set_stream_and_back_leaves_no_mode() -> None:
    stream = side()
    torch.cuda.set_stream(stream)
    torch.cuda.set_stream(streams.MAIN)
    assert torch.overrides._len_torch_function_stack() == 0


# What is wrong, and must not go unnoticed.


def check_reading_too_early_shows() -> None:
    target, event = copied(torch.arange(3), side())
    assert target.tolist() == [-24680] * 3
    event.synchronize()


def check_reading_too_early_shows_for_every_type() -> None:
    for dtype in (
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.float32,
        torch.float16,
        torch.bfloat16,
    ):
        source = torch.tensor([0, 1, 1]).to(dtype)
        target, event = copied(source, side())
        assert not torch.equal(target, source), dtype
        event.synchronize()
        assert torch.equal(target, source), dtype


def check_an_event_recorded_before_the_copy_does_not_help() -> None:
    stream = side()
    event = stream.record_event()
    with torch.cuda.stream(stream):
        target = torch.arange(3).to("cpu", non_blocking=True)
    event.synchronize()
    assert target.tolist() == [-24680] * 3


def check_waiting_for_the_wrong_stream_does_not_help() -> None:
    target, _ = copied(torch.arange(3), side())
    main().synchronize()
    assert target.tolist() == [-24680] * 3


def check_a_device_side_wait_is_no_wait_of_the_host() -> None:
    stream = side()
    target, _ = copied(torch.arange(3), stream)
    main().wait_stream(stream)
    assert target.tolist() == [-24680] * 3


def check_overwriting_the_source_too_soon_shows() -> None:
    source = torch.arange(3)
    target, event = copied(source, side())
    source.fill_(7)
    event.synchronize()
    assert target.tolist() == [7, 7, 7]


def check_freeing_the_source_too_soon_shows() -> None:
    target, event = copied(torch.arange(3) + 0, side())
    event.synchronize()
    assert target.tolist() == [-24680] * 3


def check_a_target_used_again_too_soon_shows() -> None:
    host = torch.zeros(3, dtype=torch.int64, pin_memory=True)
    one, two = torch.full((3,), 1), torch.full((3,), 2)
    stream = side()
    with torch.cuda.stream(stream):
        host.copy_(one, non_blocking=True)
        first = stream.record_event()
        host.copy_(two, non_blocking=True)
    first.synchronize()
    assert host.tolist() != [2, 2, 2]
    stream.synchronize()
    assert host.tolist() == [2, 2, 2]


def check_using_a_device_buffer_before_main_waits_shows() -> None:
    stream, target = side(), torch.zeros(3)
    with torch.cuda.stream(stream):
        target.copy_(torch.ones(3), non_blocking=True)
    assert target.tolist() == [0, 0, 0]


def check_changing_pinned_memory_too_soon_shows() -> None:
    stream, target = side(), torch.zeros(3)
    host = torch.ones(3, pin_memory=True)
    with torch.cuda.stream(stream):
        target.copy_(host, non_blocking=True)
    host.fill_(5)
    main().wait_stream(stream)
    assert target.tolist() == [5, 5, 5]


CHECKS = {
    name.removeprefix("check_"): function
    for name, function in list(globals().items())
    if name.startswith("check_")
}


def run(name: str) -> str | None:
    """None if the check passes, else its traceback."""
    try:
        CHECKS[name]()
    except Exception:  # noqa: BLE001 - its traceback is the result
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    print(json.dumps({name: run(name) for name in sys.argv[1:] or CHECKS}))  # noqa: T201
