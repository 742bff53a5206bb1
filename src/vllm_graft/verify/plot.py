"""Latencies as bars: a row each, base above grafted.

The labels are text of the page and the bars inline SVG in per cent of its width, so
that both stay readable on any screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import ceil, log10
from typing import Final

from vllm_graft.verify.results import FaultPair, Timing

_LEAST: Final = 0.01  # seconds; the left end of a logarithmic axis
_BAR: Final = 7  # pixels
_SIDES: Final = ("base", "grafted")


def fault_plot(faults: Sequence[FaultPair]) -> Iterator[str]:
    """How long each fault took to reach its caller; a logarithmic axis."""
    times = [
        (
            f"{one.fault}, {one.executor} {one.scheduling}",
            float(one.base["seconds"]),
            float(one.grafted["seconds"]),
        )
        for one in faults
    ]
    most = max(second for _, *both in times for second in both)
    decades = max(1, ceil(log10(max(most, _LEAST) / _LEAST)))
    ticks = [(_LEAST * 10**n, n / decades) for n in range(decades + 1)]

    def place(seconds: float) -> float:
        return max(0.0, log10(max(seconds, _LEAST) / _LEAST)) / decades

    yield from _axis(ticks)
    for name, *both in times:
        yield _row(name, both, [place(s) for s in both], [at for _, at in ticks])
    yield "</div>"


def timing_plot(timings: Sequence[Timing]) -> Iterator[str]:
    """How long each step of a run took; a linear axis for each run."""
    for run in dict.fromkeys(one.run for one in timings):
        rows = [one for one in timings if one.run == run]
        most = max((s for one in rows for s in (one.base, one.grafted) if s), default=1)
        yield "<details>" if run != timings[0].run else "<details open>"
        yield f"<summary><b>{escape(run)}</b> {_total(rows)}</summary>"
        yield '<div class="plot inside">'
        for one in rows:
            both = [one.base, one.grafted]
            yield _row(one.step, both, [(s or 0) / most for s in both], [])
        yield "</div></details>"


def _total(rows: Iterable[Timing]) -> str:
    pairs = [(r.base, r.grafted) for r in rows if r.base and r.grafted]
    if not pairs:
        return ""
    base, grafted = (sum(pair[n] for pair in pairs) for n in (0, 1))
    return f'<span class="count">{base:.1f} s base, {grafted:.1f} s grafted</span>'


def _axis(ticks: Iterable[tuple[float, float]]) -> Iterator[str]:
    yield '<div class="plot card">'
    labels = "".join(
        f'<span style="left:{at * 100:.1f}%">{seconds:g}</span>'
        for seconds, at in ticks
    )
    yield '<div class="row axis" aria-hidden="true"><span>seconds</span>'
    yield f"<b>{labels}</b></div>"


def _row(
    name: str,
    seconds: Sequence[float | None],
    places: Sequence[float],
    grid: Sequence[float],
) -> str:
    said = ", ".join(
        f"{side} {'not run' if s is None else f'{s:.2f} s'}"
        for side, s in zip(_SIDES, seconds, strict=True)
    )
    lines = "".join(
        f'<line x1="{at * 100:.1f}%" x2="{at * 100:.1f}%" y1="0" y2="100%"/>'
        for at in grid
    )
    bars = "".join(
        f'<rect class="{side}" y="{2 + number * (_BAR + 1)}" height="{_BAR}" rx="2" '
        f'width="{max(at * 100, 0.4):.2f}%"/>'
        for number, (side, at) in enumerate(zip(_SIDES, places, strict=True))
    )
    numbers = "".join(
        f'<small class="{side}">{"&ndash;" if s is None else f"{s:.2f}"}</small>'
        for side, s in zip(_SIDES, seconds, strict=True)
    )
    return (
        f'<div class="row"><span>{escape(name)}</span>'
        f'<svg role="img" aria-label="{escape(said)}" height="{2 * _BAR + 5}">'
        f"<title>{escape(name)}: {said}</title>{lines}{bars}</svg>"
        f'<span class="numbers" aria-hidden="true">{numbers}</span></div>'
    )
