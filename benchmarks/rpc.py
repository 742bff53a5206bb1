"""Round trips through real executors with stub workers, base against grafted.

Small results fit a chunk of the message queue; large ones go by a socket. The
grafted worker resolves in ``handle_output`` what the base runner resolves itself.
"""

from __future__ import annotations

from typing import Final

from benchmarks.sides import BASE, GRAFTED, contestants, sides
from benchmarks.table import Table, goal
from benchmarks.timing import Samples, interleave, spread

ROUNDS = 31
#: Calls in a sample: about a fifth of a second.
_CALLS: Final = {
    ("mp", False): 1000,
    ("mp", True): 20,
    ("uni", False): 20_000,
}


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    found: dict[str, tuple[int, Samples]] = {}
    for executor in ("mp", "uni"):
        for mode in ("sync", "async"):
            with sides("rpc", executor, mode) as pair:
                for (kind, large), calls in _CALLS.items():
                    if kind != executor:
                        continue
                    request = {"calls": calls, "large": large}
                    samples = interleave(contestants(pair, request), rounds, base=BASE)
                    size = "large" if large else "small"
                    found[f"{executor}, {size}, {mode}"] = calls, samples
    return Table(
        f"Round trips with stub workers, {rounds} interleaved pairs",
        ("executor, result, scheduling", "base µs", "grafted µs", "ratio"),
        [
            [
                name,
                *(_micro(samples, side, calls) for side in (BASE, GRAFTED)),
                spread(samples.ratios(GRAFTED, "wall")),
            ]
            for name, (calls, samples) in found.items()
        ],
        [
            goal(f"{name}, median ratio", samples.ratio(GRAFTED, "wall"), 1.02)
            for name, (_, samples) in found.items()
        ],
        {name: samples.raw() for name, (_, samples) in found.items()},
    )


def _micro(samples: Samples, side: str, calls: int) -> str:
    return spread([1e6 * value / calls for value in samples.values(side, "wall")])
