"""What a verification found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

#: The groups of properties, in the order of reports, and what each says.
GROUPS: Mapping[str, str] = {
    "results": "base and grafted give the same results, bit for bit",
    "determinism": "base gives the same results twice",
    "asynchrony": "asynchronous runs are asynchronous",
    "contract": "the runner returns unresolved outputs in every scheduling mode",
    "held": "outputs resolved late, while later steps run, keep their values",
    "faults": "after a fault, the caller is served as well as by base, or better",
    "stress": "each request gets exactly one response, in order",
    "tests": "the tests that ship with the series pass",
    "clean": "no process of the engines outlives them",
}


class Property(NamedTuple):
    """One property, and whether it holds.

    Args:
        group: A key of ``GROUPS``.
        name: Where it was looked at.
        holds: Whether it holds; what could not be found out does not.
        detail: Why it does not, or what else a person should know.
        seconds: How long it took to find out; 0 where nobody measured.
        ran: Whether it could be found out.
    """

    group: str
    name: str
    holds: bool
    detail: str = ""
    seconds: float = 0.0
    ran: bool = True

    @property
    def verdict(self) -> str:
        """``holds``, ``fails`` or ``error`` (it could not be found out)."""
        return "holds" if self.holds else "fails" if self.ran else "error"

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            "group": self.group,
            "name": self.name,
            "verdict": self.verdict,
            "detail": self.detail,
            "seconds": self.seconds,
        }


class Timing(NamedTuple):
    """How long one step of a run took on either side; None where it did not run."""

    run: str
    step: str
    base: float | None
    grafted: float | None

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return dict(self._asdict())


class FaultPair(NamedTuple):
    """What one fault led to on either side.

    Args:
        fault: Its name.
        scheduling: ``sync`` or ``async``.
        executor: ``uni`` or ``mp``.
        direction: ``same``, ``better``, ``worse`` or ``other``: how grafted differs.
        base: The record of base; see ``proof.records.Record``.
        grafted: The record of grafted.
    """

    fault: str
    scheduling: str
    executor: str
    direction: str
    base: Mapping[str, Any]
    grafted: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {
            **self._asdict(),
            "base": dict(self.base),
            "grafted": dict(self.grafted),
        }


class Verification(NamedTuple):
    """Everything about one verification.

    Args:
        tree: The tree's name.
        version: The version of vLLM that it says it is.
        series: The names of the series.
        carried: Whether the tree carries them: then base is the reverse.
        device: ``cpu`` or ``cuda``.
        python: The Python that ran.
        quick: Whether it was the short run.
        made: When it began, in UTC.
        seconds: How long it took.
        properties: What was found out.
        faults: The matrix of faults.
        timings: How long the steps of the runs took.
        notes: What a person should know although nothing is wrong.
    """

    tree: str
    version: str | None
    series: Sequence[str]
    carried: bool
    device: str
    python: str
    quick: bool
    made: datetime
    seconds: float
    properties: Sequence[Property]
    faults: Sequence[FaultPair] = ()
    timings: Sequence[Timing] = ()
    notes: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        """Whether every property does, and there is one."""
        return bool(self.properties) and all(p.holds for p in self.properties)

    @property
    def broken(self) -> list[Property]:
        """The properties that do not hold."""
        return [one for one in self.properties if not one.holds]

    @property
    def sides(self) -> tuple[str, str]:
        """What base and grafted are, in words."""
        names = ", ".join(self.series)
        if self.carried:
            return f"{names} taken out in memory", "the tree as it is"
        return "the tree as it is", f"{names} grafted in memory"

    @property
    def headline(self) -> str:
        """The outcome as one sentence without a full stop."""
        count = len(self.properties)
        bad = len(self.broken)
        if not bad:
            return f"all {count} properties hold"
        return f"{bad} of {count} properties {'does' if bad == 1 else 'do'} not hold"

    def grouped(self) -> dict[str, list[Property]]:
        """The properties by group, in the order of ``GROUPS``, none empty."""
        found = {g: [p for p in self.properties if p.group == g] for g in GROUPS}
        return {group: some for group, some in found.items() if some}

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        base, grafted = self.sides
        return {
            "schema": 1,
            "made": self.made.isoformat(timespec="seconds"),
            "tree": self.tree,
            "vllm_version": self.version,
            "series": list(self.series),
            "device": self.device,
            "python": self.python,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "base": base,
            "grafted": grafted,
            "holds": self.holds,
            "properties": [one.to_json() for one in self.properties],
            "faults": [one.to_json() for one in self.faults],
            "timings": [one.to_json() for one in self.timings],
            "notes": list(self.notes),
        }
