"""Evidence from inside the workers: what they returned, and when it was resolved."""

from __future__ import annotations

# ruff: noqa: PLC0415 - vLLM is there once a worker has loaded this
import sys
import threading
from typing import Any


class Probe:
    """Worker extension; the engine calls its methods by ``collective_rpc``.

    The trace is a list of ``[event, number, detail]``: ``execute`` and ``sample``
    or ``pool`` with the step's number and the type returned, ``resolve`` with the
    number of the output whose ``get_output`` was called and the thread's name.
    """

    model_runner: Any

    def probe_start(self) -> None:
        """Begin to record."""
        from vllm.v1.worker.gpu import async_utils

        if hasattr(self, "probe_trace"):
            self.probe_trace.clear()
            return
        self.probe_trace: list[list[Any]] = []
        self._probe_step = 0
        numbers: dict[int, int] = {}
        runner = self.model_runner
        for name in ("execute_model", "sample_tokens", "pool"):
            self._watch(runner, name)
        for kind in (async_utils.AsyncOutput, async_utils.AsyncPoolingOutput):
            self._watch_output(kind, numbers)

    def _watch(self, runner: Any, name: str) -> None:
        original = getattr(runner, name)
        event = name.split("_", maxsplit=1)[0]

        def watched(*args: Any, **kwargs: Any) -> Any:
            if event == "execute":
                self._probe_step += 1
            result = original(*args, **kwargs)
            self.probe_trace.append([event, self._probe_step, type(result).__name__])
            return result

        setattr(runner, name, watched)

    def _watch_output(self, kind: Any, numbers: dict[int, int]) -> None:
        begin, resolve = kind.__init__, kind.get_output

        def watched_begin(output: Any, *args: Any, **kwargs: Any) -> None:
            begin(output, *args, **kwargs)
            numbers[id(output)] = self._probe_step

        def watched_resolve(output: Any) -> Any:
            number = numbers.pop(id(output), -1)
            thread = threading.current_thread().name
            self.probe_trace.append(["resolve", number, thread])
            return resolve(output)

        kind.__init__ = watched_begin
        kind.get_output = watched_resolve

    def probe_report(self) -> dict[str, Any]:
        """The summary: types returned, how late outputs were resolved, copies."""
        types: dict[str, int] = {}
        late = latest_by = elsewhere = resolved = latest = 0
        numbers = [
            number for event, number, _ in self.probe_trace if event == "resolve"
        ]
        for event, number, detail in self.probe_trace:
            if event == "resolve":
                resolved += 1
                late += latest > number
                latest_by = max(latest_by, latest - number)
                elsewhere += detail != "MainThread"
            else:
                latest = max(latest, number)
                key = f"{event}:{detail}"
                types[key] = types.get(key, 0) + 1
        streams = sys.modules.get("vllm_graft.cpu.streams")
        return {
            "types": types,
            "resolved": resolved,
            # Resolved only after a later step's execute_model had returned.
            "resolved_late": late,
            "steps_late_at_most": latest_by,
            "in_order": numbers == sorted(numbers),
            # Resolved by the output thread, while the main thread goes on.
            "resolved_elsewhere": elsewhere,
            "copies": dict(streams.counts) if streams else {},
            "runner": type(self.model_runner).__mro__[1].__module__,
        }
