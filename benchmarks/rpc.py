"""Round trips through real executors with stub workers, base against grafted.

Small results fit a chunk of the message queue; large ones go by a socket. The
grafted worker resolves in ``handle_output`` what the base runner resolves itself.
"""

from __future__ import annotations

from typing import Final

from benchmarks.sides import BASE, GRAFTED, contestants, sides
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, Samples, interleave, spread

ROUNDS = 11
#: Pairs of processes: how one happens to lie in memory would be taken for a cost.
_PAIRS: Final = 3
#: Calls in a sample: about a fifth of a second.
_CALLS: Final = {
    ("mp", False): 1000,
    ("mp", True): 20,
    ("uni", False): 20_000,
}


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    found = {
        name: one
        for executor in ("mp", "uni")
        for mode in ("sync", "async")
        for name, one in _measure(executor, mode, rounds).items()
    }
    return Table(
        f"Round trips with stub workers, {_PAIRS} times {rounds} interleaved pairs",
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


def _measure(executor: str, mode: str, rounds: int) -> dict[str, tuple[int, Samples]]:
    """The samples of an executor in a mode: of small and of large results."""
    wanted = {
        large: calls for (kind, large), calls in _CALLS.items() if kind == executor
    }
    taken: dict[bool, dict[str, list[Sample]]] = {
        large: {BASE: [], GRAFTED: []} for large in wanted
    }
    for _ in range(_PAIRS):
        with sides("rpc", executor, mode) as pair:
            for large, calls in wanted.items():
                request = {"calls": calls, "large": large}
                new = interleave(contestants(pair, request), rounds, base=BASE)
                for side, samples in new.taken.items():
                    taken[large][side] += samples
    return {
        f"{executor}, {'large' if large else 'small'}, {mode}": (
            wanted[large],
            Samples(samples, BASE),
        )
        for large, samples in taken.items()
    }


def _micro(samples: Samples, side: str, calls: int) -> str:
    return spread([1e6 * value / calls for value in samples.values(side, "wall")])
