"""Runs base against grafted on the real engine, and judges what came out."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_graft.series import load_series
from vllm_graft.verify import judge
from vllm_graft.verify.jobs import Maker, Scope, groups
from vllm_graft.verify.results import GROUPS, FaultPair, Property, Timing, Verification
from vllm_graft.verify.run import Done, Job, run_jobs, steps_of
from vllm_graft.verify.sides import Sides, find_engine, make_sides

# The series whose point it is that the runner returns unresolved outputs.
_UNRESOLVING: Final = "mrv2-async-output"

#: Called with how many steps are done, of how many, and what the last one was.
Progress = Callable[[int, int, str], None]


class Options(NamedTuple):
    """What to verify.

    Args:
        tree: The tree; None for the vLLM that the engine's Python imports.
        series: The series by name or folder.
        python: The Python that has vLLM; None to find one.
        device: ``auto``, ``cpu`` or ``cuda``.
        quick: Only the most telling part.
    """

    tree: Path | None
    series: Sequence[str]
    python: str | None = None
    device: str = "auto"
    quick: bool = False


def verify(options: Options, on_progress: Progress | None = None) -> Verification:
    """Runs everything; takes minutes.

    However it ends, no process that it started is left. Its logs are kept where some
    property does not hold, and a note says where.

    Args:
        options: What to verify.
        on_progress: See :data:`Progress`.

    Raises:
        NotRunnableError: A series neither applies to the tree nor can be taken out.
        NothingToCompareError: The series change nothing in this tree.
        GraftError: There is no engine, or the tree is none.
    """
    made, began = datetime.now(timezone.utc), time.monotonic()
    engine = find_engine(options.python, options.device)
    scratch = Path(tempfile.mkdtemp(prefix="vllm-graft-verify-"))
    keep = False
    try:
        sides = make_sides(engine, options.tree, options.series, scratch)
        found = _run(options, sides, scratch, on_progress or _ignore)
        keep = not all(one.holds for one in found.properties)
    finally:
        if not keep:
            shutil.rmtree(scratch, ignore_errors=True)
    notes = [f"the logs are in {scratch}"] if keep else []
    return Verification(
        tree=sides.tree.name,
        version=sides.version,
        series=[Path(name).name for name in options.series],
        carried=sides.carried,
        device=engine.device,
        python=str(engine.python),
        quick=options.quick,
        made=made,
        seconds=time.monotonic() - began,
        properties=found.properties,
        faults=found.faults,
        timings=found.timings,
        notes=notes,
    )


class _Found(NamedTuple):
    properties: list[Property]
    faults: list[FaultPair]
    timings: list[Timing]


def _run(
    options: Options, sides: Sides, scratch: Path, on_progress: Progress
) -> _Found:
    scope = Scope(options.quick, sides.engine.device)
    chosen = groups(scope)
    maker = Maker(sides, scope, scratch)
    series = [load_series(name) for name in options.series]
    jobs = [*maker.engines(chosen), *maker.faults(), *maker.tests(series)]
    done = run_jobs(jobs, _slots(scope.device), scratch, _counter(jobs, on_progress))
    return _judge(options, chosen, done, maker.report)


def _judge(
    options: Options,
    chosen: Mapping[str, Sequence[Mapping[str, Any]]],
    done: Sequence[Done],
    report: Path,
) -> _Found:
    results = judge.by_name(done)
    contract = any(Path(n).name.startswith(_UNRESOLVING) for n in options.series)
    properties: list[Property] = []
    timings: list[Timing] = []
    for process, configs in chosen.items():
        properties += judge.engine_properties(
            process, configs, results, contract=contract
        )
        base, grafted = results[process, "base"], results[process, "grafted"]
        properties += _held(configs, grafted)
        timings += judge.timings(configs, base, grafted)
    if ("uni", "again") in results:
        base, again = results["uni", "base"], results["uni", "again"]
        properties += judge.again_properties(chosen["uni"], base, again)
    faults, more = judge.fault_pairs(results)
    properties += more
    if ("stress", "grafted") in results:
        properties += judge.stress_properties(results["stress", "grafted"])
    if ("tests", "grafted") in results:
        tests = results["tests", "grafted"]
        properties.append(judge.test_property(tests, report))
    properties.append(judge.clean_property(done))
    order = list(GROUPS)
    properties.sort(key=lambda one: order.index(one.group))
    return _Found(properties, faults, timings)


def _held(configs: Sequence[Mapping[str, Any]], grafted: Done) -> Iterator[Property]:
    """What was held late, against the same work of the same executor held never."""
    for held in configs:
        if held.get("in_flight"):
            plain = next(
                one
                for one in configs
                if one["name"].startswith("generate") and not one["asynchronous"]
            )
            yield from judge.held_values(plain, held, grafted)


def _counter(jobs: Sequence[Job], on_progress: Progress) -> Callable[[str], None]:
    total, done = steps_of(jobs), 0

    def tell(line: str) -> None:
        nonlocal done
        done += 1
        on_progress(min(done, total), total, line)

    return tell


def _slots(device: str) -> int:
    """How many processes run side by side.

    Base and grafted always do on a CPU. A GPU is theirs alone: vLLM looks at how
    much of its memory is free.
    """
    if device == "cuda":
        return 1
    return max(2, min((os.cpu_count() or 2) // 2, 8))


def _ignore(*_: object) -> None:
    pass
