"""A verification as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from vllm_graft.page import page
from vllm_graft.verify.plot import fault_plot, timing_plot
from vllm_graft.verify.results import GROUPS, FaultPair, Property, Verification
from vllm_graft.verify.words import Word, word_for

_COLUMNS = [(s, e) for e in ("uni", "mp") for s in ("sync", "async")]
_VERDICTS = {
    "holds": ("✓", "applied"),
    "fails": ("✗", "conflict"),
    "error": ("!", "partial"),
}
_DIRECTIONS = {"better": "applied", "worse": "conflict", "other": "partial"}


def render_html(done: Verification) -> str:
    """The page, complete from ``<!DOCTYPE html>`` on.

    It reads without scripts, on narrow screens, in light and dark, and without
    telling colours apart.
    """
    return page(
        f"vllm-graft verify: {done.headline}",
        ["matrix.css", "verify.css"],
        [
            *_header(done),
            *_summary(done),
            *_properties(done),
            *_faults(done.faults),
            *_latency(done),
        ],
        _footer(done),
    )


def _header(done: Verification) -> Iterator[str]:
    names = ", ".join(done.series)
    version = f" on vLLM {done.version}" if done.version else ""
    mark, kind = ("✓", "well") if done.holds else ("!", "ill")
    yield "<header>"
    yield '<p class="tool">vllm-graft verify</p>'
    yield f"<h1>{escape(names)}{escape(version)}</h1>"
    text = done.headline[0].upper() + done.headline[1:]
    yield (
        f'<p class="outcome {kind}"><span aria-hidden="true">{mark}</span> '
        f"{escape(text)}.</p>"
    )
    yield "</header>"


def _summary(done: Verification) -> Iterator[str]:
    base, grafted = done.sides
    kind = "the quick part" if done.quick else "everything"
    facts = [
        ("Tree", f"<code>{_path(done.tree)}</code>"),
        ("Base", _side("base", escape(base))),
        ("Grafted", _side("grafted", escape(grafted))),
        ("Engine", f"<code>{_path(done.python)}</code> on {escape(done.device)}"),
        ("Run", f"{kind}, {done.seconds:.0f} s"),
    ]
    yield '<dl class="card facts">'
    yield from (f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts)
    yield "</dl>"


def _side(side: str, text: str) -> str:
    return f'<i class="key {side}" aria-hidden="true"></i>{text}'


def _properties(done: Verification) -> Iterator[str]:
    yield '<section aria-labelledby="properties">'
    yield '<h2 id="properties">Properties</h2>'
    for group, properties in done.grouped().items():
        bad = sum(not one.holds for one in properties)
        good = len(properties) - bad
        mark = _badge("fails" if bad else "holds")
        count = f"{good} of {len(properties)}" if bad else f"{good}"
        yield f"<details{' open' if bad else ''}>"
        yield (
            f'<summary><b>{group}</b> {mark} <span class="count">{count}</span>'
            f'<span class="claim">{escape(GROUPS[group])}</span></summary>'
        )
        yield '<ul class="inside list">'
        # What is wrong comes first.
        yield from map(_property, sorted(properties, key=lambda one: one.holds))
        yield "</ul></details>"
    yield "</section>"


def _property(one: Property) -> str:
    detail = f' <span class="why">{_path(one.detail)}</span>' if one.detail else ""
    return f"<li>{_badge(one.verdict)} <b>{escape(one.name)}</b>{detail}</li>"


def _badge(verdict: str) -> str:
    glyph, kind = _VERDICTS[verdict]
    return (
        f'<span class="v badge {kind}"><span class="glyph" aria-hidden="true">{glyph}'
        f'</span><span class="word">{verdict}</span></span>'
    )


def _faults(faults: Sequence[FaultPair]) -> Iterator[str]:
    if not faults:
        return
    found = {(f.fault, f.scheduling, f.executor): f for f in faults}
    yield '<section aria-labelledby="faults">'
    yield '<h2 id="faults">Faults</h2>'
    yield "<p>What reaches the caller, after how many seconds, and whether the engine "
    yield "goes on. Both sides are shown where they differ.</p>"
    yield '<div class="wide"><table class="faults">'
    yield '<thead><tr><th scope="col">Fault</th>'
    for scheduling, executor in _COLUMNS:
        yield f'<th scope="col">{executor} {scheduling}</th>'
    yield "</tr></thead><tbody>"
    for fault in dict.fromkeys(one.fault for one in faults):
        yield f'<tr><th scope="row">{escape(fault)}</th>'
        for column in _COLUMNS:
            yield _fault_cell(found.get((fault, *column)))
        yield "</tr>"
    yield "</tbody></table></div>"
    yield from _fault_details(faults)
    yield "</section>"


def _fault_cell(pair: FaultPair | None) -> str:
    if pair is None:
        return '<td class="none">&ndash;</td>'
    label = f'<span class="where">{pair.executor} {pair.scheduling}</span>'
    if pair.direction == "same":
        return f"<td>{label}{_outcome(pair.grafted)}</td>"
    both = "".join(
        f'<div class="both"><i class="key {side}"></i><small>{side}</small>'
        f"{_outcome(record)}</div>"
        for side, record in (("base", pair.base), ("grafted", pair.grafted))
    )
    kind = _DIRECTIONS[pair.direction]
    return (
        f'<td class="differs">{label}{both}'
        f'<span class="v badge {kind}">grafted: {pair.direction}</span></td>'
    )


def _outcome(record: Mapping[str, Any]) -> str:
    word = word_for(record)
    return (
        f'<span class="v said {word.kind}" title="{escape(word.full)}">'
        f'<span class="glyph" aria-hidden="true">{word.glyph}</span>{escape(word.text)}'
        f"</span><small>{word.seconds:.2f} s, {word.after}</small>"
    )


def _fault_details(faults: Sequence[FaultPair]) -> Iterator[str]:
    yield "<details><summary><b>In full</b></summary>"
    yield '<ul class="inside list">'
    for pair in faults:
        name = f"{pair.fault}, {pair.scheduling}, {pair.executor}"
        sides = [("base", pair.base), ("grafted", pair.grafted)]
        lines = [f"{side}: {_full(word_for(record))}" for side, record in sides]
        if pair.direction == "same":
            lines = [f"both: {_full(word_for(pair.grafted))}"]
        text = "<br>".join(escape(line) for line in lines)
        yield f'<li><b>{escape(name)}</b><span class="why">{text}</span></li>'
    yield "</ul></details>"


def _full(word: Word) -> str:
    return f"{word.full}; then {word.following}{word.left}"


def _latency(done: Verification) -> Iterator[str]:
    if not done.faults and not done.timings:
        return
    yield '<section aria-labelledby="latency">'
    yield '<h2 id="latency">Latency</h2>'
    yield (
        f'<p class="keys"><b>{_side("base", "base")}</b> '
        f"<b>{_side('grafted', 'grafted')}</b> "
        "<span>Measured side by side on a machine that does both: an impression, not "
        "a benchmark.</span></p>"
    )
    if done.faults:
        yield "<h3>From a fault to its caller</h3>"
        yield from fault_plot(done.faults)
    if done.timings:
        yield "<h3>Steps of the engines</h3>"
        yield from timing_plot(done.timings)
    yield "</section>"


def _footer(done: Verification) -> Iterator[str]:
    made = done.made.strftime("%Y-%m-%d %H:%M UTC")
    yield f"<footer><p>Made by vllm-graft on {made}</p>"
    yield from (f"<p>Note: {escape(note)}.</p>" for note in done.notes)
    yield "</footer>"


def _path(text: str) -> str:
    return escape(text).replace("/", "/<wbr>")
