"""Tokens a second of real engines with a tiny model, base against grafted.

Without a GPU the kernels run in Triton's interpreter: the step is slow, and the
refactor's share of it smaller than on a GPU. ``rpc`` measures that share alone.
"""

from __future__ import annotations

from typing import Final

from benchmarks.sides import BASE, GRAFTED, contestants, sides
from benchmarks.table import Table, goal
from benchmarks.timing import Samples, interleave, spread
from vllm_graft.proof.cost import PROMPTS

ROUNDS = 15
_TOKENS: Final = 24  # of each prompt, in a sample


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    found: dict[str, Samples] = {}
    for executor in ("uni", "mp"):
        for mode in ("sync", "async"):
            with sides("steps", executor, mode) as pair:
                request = {"tokens": _TOKENS}
                samples = interleave(contestants(pair, request), rounds, base=BASE)
            found[f"{executor}, {mode}"] = samples
    return Table(
        f"Tokens a second of real engines, {rounds} interleaved pairs",
        ("executor, scheduling", "base", "grafted", "ratio of times"),
        [
            [
                name,
                *(_rate(samples, side) for side in (BASE, GRAFTED)),
                spread(samples.ratios(GRAFTED, "wall")),
            ]
            for name, samples in found.items()
        ],
        [
            goal(f"{name}, median ratio", samples.ratio(GRAFTED, "wall"), 1.02)
            for name, samples in found.items()
        ],
        {name: samples.raw() for name, samples in found.items()},
    )


def _rate(samples: Samples, side: str) -> str:
    tokens = PROMPTS * _TOKENS
    return spread([tokens / value for value in samples.values(side, "wall")])
