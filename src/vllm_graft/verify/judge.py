"""Judges what the processes of a verification left: a verdict for each property."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from vllm_graft.proof import records
from vllm_graft.proof.compare import first_difference
from vllm_graft.verify.results import FaultPair, Property, Timing
from vllm_graft.verify.run import Done

#: Steps that an output is held for, at least, where a configuration holds them.
HELD: Final = 3
_UNRESOLVED: Final = ("AsyncOutput", "AsyncPoolingOutput")
_RUNS: Final = ("sample", "pool")

Config = Mapping[str, Any]
Results = Mapping[tuple[str, str], Done]


def by_name(done: Sequence[Done]) -> dict[tuple[str, str], Done]:
    """The jobs that have ended, by name and side."""
    return {(one.job.name, one.job.side): one for one in done}


def engine_properties(
    process: str, configs: Sequence[Config], done: Results, *, contract: bool
) -> Iterator[Property]:
    """Everything that the engines of one process show.

    Args:
        process: The jobs' name.
        configs: What they ran.
        done: All jobs.
        contract: Whether the series are to make the runner return unresolved
            outputs in every mode.
    """
    base, grafted = done[process, "base"], done[process, "grafted"]
    for config in configs:
        name = config["name"]
        for workload in config["workloads"]:
            yield _same("results", f"{name}: {workload}", base, grafted)
        if config["asynchronous"]:
            for one in (base, grafted):
                yield _asynchronous(config, one)
        if config.get("in_flight"):
            yield _held(config, grafted)
        elif contract:
            yield _contract(config, grafted)


def again_properties(
    configs: Sequence[Config], base: Done, again: Done
) -> Iterator[Property]:
    """Whether a second run of base gave the same."""
    for config in configs:
        for workload in config["workloads"]:
            name = f"{config['name']}: {workload}"
            yield _same("determinism", name, base, again)


def _same(group: str, name: str, base: Done, other: Done) -> Property:
    config, workload = name.split(": ")
    values, seconds = [], 0.0
    for one in (base, other):
        ran = (one.result or {}).get(config, {})
        if workload not in ran.get("results", {}):
            return _unknown(group, name, one, ran)
        values.append(ran["results"][workload])
        seconds += ran["seconds"].get(workload, 0.0)
    found = first_difference(values[0], values[1], workload)
    return Property(group, name, found is None, str(found or ""), round(seconds, 2))


def _unknown(group: str, name: str, one: Done, ran: Mapping[str, Any]) -> Property:
    why = ran.get("error") or one.error or "it left no result"
    return Property(group, name, False, f"{one.job.side}: {why}", ran=False)


def _evidence(config: Config, one: Done) -> Mapping[str, Any] | None:
    ran = (one.result or {}).get(config["name"], {})
    found: Mapping[str, Any] | None = ran.get("evidence")
    complete = found and set(config["workloads"]) <= found["workloads"].keys()
    return found if complete else None


def _asynchronous(config: Config, one: Done) -> Property:
    name = f"{config['name']}, {one.job.side}"
    evidence = _evidence(config, one)
    if evidence is None:
        ran = (one.result or {}).get(config["name"], {})
        return _unknown("asynchrony", name, one, ran)
    engine = evidence["engine"]
    if engine["batch_queue_size"] < 2 or engine["scheduler"] != "AsyncScheduler":
        said = f"{engine['scheduler']}, {engine['batch_queue_size']} in flight"
        return Property("asynchrony", name, False, said)
    late = resolved = 0
    for workload, seen in evidence["workloads"].items():
        for worker in seen["workers"]:
            resolved += worker["resolved"]
            late += max(worker["resolved_late"], worker["resolved_elsewhere"])
            if not worker["in_order"]:
                said = f"{workload}: outputs were resolved out of order"
                return Property("asynchrony", name, False, said)
    said = (
        f"{late} of {resolved} outputs resolved while a later step ran, or by the "
        "output thread"
    )
    return Property("asynchrony", name, late > 0, said)


def _held(config: Config, grafted: Done) -> Property:
    evidence = _evidence(config, grafted)
    if evidence is None:
        ran = (grafted.result or {}).get(config["name"], {})
        return _unknown("held", config["name"], grafted, ran)
    workers = [w for seen in evidence["workloads"].values() for w in seen["workers"]]
    late = max(worker["steps_late_at_most"] for worker in workers)
    holds = late >= HELD and all(worker["in_order"] for worker in workers)
    said = f"resolved up to {late} steps late{'' if holds else f', not {HELD}'}"
    return Property("held", f"{config['name']}: how late", holds, said)


def held_values(plain: Config, held: Config, done: Done) -> Iterator[Property]:
    """Whether outputs held in flight have the values of those resolved at once.

    Args:
        plain: A configuration that holds none.
        held: The same, but for the outputs that it holds.
        done: The grafted job that ran both.
    """
    ran = done.result or {}
    for workload in held["workloads"]:
        if workload not in plain["workloads"]:
            continue
        name = f"{held['name']}: {workload}"
        both = [ran.get(c["name"], {}).get("results", {}) for c in (plain, held)]
        if not all(workload in one for one in both):
            yield _unknown("held", name, done, ran.get(held["name"], {}))
            continue
        found = first_difference(both[0][workload], both[1][workload], workload)
        said = str(found or "").replace("base", "at once").replace("grafted", "late")
        yield Property("held", name, found is None, said)


def _contract(config: Config, grafted: Done) -> Property:
    evidence = _evidence(config, grafted)
    if evidence is None:
        ran = (grafted.result or {}).get(config["name"], {})
        return _unknown("contract", config["name"], grafted, ran)
    # The ranks of earlier stages of a pipeline have no output.
    staged = config.get("options", {}).get("pipeline_parallel_size", 1) > 1
    returned: set[str] = set()
    for seen in evidence["workloads"].values():
        for worker in seen["workers"][-1 if staged else 0 :]:
            pairs = (one.split(":") for one in worker["types"])
            returned.update(kind for method, kind in pairs if method in _RUNS)
    holds = bool(returned & {*_UNRESOLVED}) and returned <= {*_UNRESOLVED, "NoneType"}
    said = f"returned {', '.join(sorted(returned)) or 'nothing'}"
    return Property("contract", config["name"], holds, said)


def fault_pairs(done: Results) -> tuple[list[FaultPair], list[Property]]:
    """The matrix of faults, and a property for each of its rows."""
    base, grafted = done["faults", "base"], done["faults", "grafted"]
    for one in (base, grafted):
        if not one.result:
            return [], [_unknown("faults", "all", one, {})]
    ours, theirs = (records.read_records(one.result) for one in (base, grafted))
    try:
        different = {d.case: d for d in records.compare(ours, theirs)}
    except ValueError as error:
        return [], [Property("faults", "all", False, str(error), ran=False)]
    other = {record.case: record for record in theirs}
    pairs, properties = [], []
    for record in ours:
        found = different.get(record.case)
        direction = found.direction if found else "same"
        match = other[record.case]
        pairs.append(
            FaultPair(*record.case, direction, record._asdict(), match._asdict())
        )
        seconds = round(record.seconds + match.seconds, 2)
        holds = direction != "worse"
        said = str(found).partition(": ")[2] if found else ""
        properties.append(Property("faults", str(record.case), holds, said, seconds))
    return pairs, properties


def stress_properties(one: Done) -> Iterator[Property]:
    """Whether each request under stress got its response, in either mode."""
    if not one.result:
        yield _unknown("stress", "all", one, {})
        return
    for run in one.result["runs"]:
        name = f"mp, {run['scheduling']}"
        if "error" in run:
            yield Property("stress", name, False, str(run["error"]), ran=False)
            continue
        said = f"{run['right']} of {run['calls']} answers right"
        if run["strays"]:
            said += f", {run['strays']} responses that nobody waits for"
        if not run["alive"]:
            said += ", the executor is gone"
        said += "".join(f"; {wrong}" for wrong in run["wrong"][:1])
        yield Property("stress", name, bool(run["ok"]), said, float(run["seconds"]))


def test_property(one: Done, report: Path) -> Property:
    """What pytest's report says."""
    try:
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - our own file
    except (OSError, ET.ParseError):
        return _unknown("tests", "shipped with the series", one, {})
    bad = [
        c for c in cases if c.find("failure") is not None or c.find("error") is not None
    ]
    skipped = [c for c in cases if c.find("skipped") is not None]
    said = f"{len(cases) - len(bad) - len(skipped)} passed"
    if skipped:
        said += f", {len(skipped)} skipped"
    if bad:
        names = ", ".join(str(case.get("name")) for case in bad)
        said += f", {len(bad)} failed: {names}"
    holds = one.code == 0 and not bad and len(cases) > len(skipped)
    return Property("tests", "shipped with the series", holds, said, one.seconds)


def clean_property(done: Sequence[Done]) -> Property:
    """Whether the jobs left processes behind."""
    left = [f"{d.job.side} {d.job.name}: {c[:80]}" for d in done for c in d.left]
    return Property("clean", "processes", not left, "; ".join(left))


def timings(configs: Sequence[Config], base: Done, grafted: Done) -> list[Timing]:
    """How long each step took on either side."""
    found = []
    for config in configs:
        name = config["name"]
        both = [
            (d.result or {}).get(name, {}).get("seconds", {}) for d in (base, grafted)
        ]
        found += [
            Timing(name, step, both[0].get(step), both[1].get(step))
            for step in ("start", *config["workloads"])
            if step in both[0] or step in both[1]
        ]
    return found
