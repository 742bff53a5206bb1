"""Which processes a verification runs: the same ones on both sides."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_graft.proof.configurations import configurations, driver_environment
from vllm_graft.series import Series
from vllm_graft.verify.run import Job
from vllm_graft.verify.sides import Sides

SIDES: Final = ("base", "grafted")

Config = Mapping[str, Any]

#: The short run: the workloads of each configuration.
#: One process a side, because to import vLLM takes longest.
QUICK: Final[Mapping[str, Sequence[str]]] = {
    "generate-uni-sync": ("logprobs", "structured"),
    "generate-uni-async": ("logprobs", "structured"),
    "embed-uni-sync": ("embed",),
    "generate-mp-async": ("logprobs", "structured"),
}
_QUICK_FAULTS: Final = (
    "get-output-raises",
    "unpicklable",
    "worker-killed",
)
_CALLS: Final = 10_000  # RPCs under stress

# Seconds; generous, for machines that do other work too. Nothing waits for ever.
_ENGINE_LIMIT: Final = 240
_STEP_LIMIT: Final = 120
_STUB_LIMIT: Final = 900
_TESTS_LIMIT: Final = 1200


class Scope(NamedTuple):
    """What to run.

    Args:
        quick: The most telling part only.
        device: ``cpu`` or ``cuda``.
    """

    quick: bool
    device: str


def groups(scope: Scope) -> dict[str, list[dict[str, Any]]]:
    """The engines' configurations, by the process that runs them in turn."""
    every = {one["name"]: one for one in configurations(scope.device)}
    if scope.quick:
        return {"quick": [{**every[n], "workloads": list(w)} for n, w in QUICK.items()]}
    found: dict[str, list[dict[str, Any]]] = {}
    for one in every.values():
        # Few processes, because to import vLLM takes long; more than one, so that
        # an engine that hangs does not take all the others with it.
        ranks = any(name.endswith("parallel_size") for name in one.get("options", {}))
        process = "ranks" if ranks else str(one["executor"])
        found.setdefault(process, []).append(one)
    return found


class Maker(NamedTuple):
    """Makes the jobs of a verification.

    Args:
        sides: What they run.
        scope: How much of it.
        scratch: The folder for their files.
    """

    sides: Sides
    scope: Scope
    scratch: Path

    def engines(self, chosen: Mapping[str, Sequence[Config]]) -> Iterator[Job]:
        """Both sides of each process that runs engines, and base once more.

        Args:
            chosen: The configurations by process.
        """
        for process, configs in chosen.items():
            yield from (self._driver(side, process, configs) for side in SIDES)
        if not self.scope.quick:
            yield self._driver("again", "uni", chosen["uni"])

    def faults(self) -> Iterator[Job]:
        """Faults on stub workers, both sides; stress on them, grafted."""
        only = _QUICK_FAULTS if self.scope.quick else ()
        words = [word for name in only for word in ("--only", name)]
        for side in SIDES:
            yield self._stub(side, "faults", words)
        if not self.scope.quick:
            yield self._stub("grafted", "stress", ["--calls", str(_CALLS)])

    def tests(self, series: Sequence[Series]) -> Iterator[Job]:
        """The tests that ship with the series, on grafted; none where none do."""
        if self.scope.quick:
            return
        root = self.scratch / "shipped"
        for one in series:
            tests = one.folder / "files" / "tests"
            if tests.is_dir():
                skip = shutil.ignore_patterns("__pycache__")
                shutil.copytree(tests, root / "tests", ignore=skip, dirs_exist_ok=True)
        if not root.exists():
            return
        # In vLLM's tree every folder of tests is a package; workers import them.
        for folder in [root / "tests", *(p for p in root.rglob("*") if p.is_dir())]:
            (folder / "__init__.py").touch()
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={root}"]
        words += [f"--junitxml={self.report}", str(root / "tests")]
        job = self._job("grafted", "tests", words)
        path = os.pathsep.join([job.env["PYTHONPATH"], str(root)])
        yield job._replace(env={**job.env, "PYTHONPATH": path}, limit=_TESTS_LIMIT)

    @property
    def report(self) -> Path:
        """Where pytest leaves its report on the shipped tests."""
        return self.scratch / "shipped.xml"

    def _driver(self, side: str, process: str, configs: Sequence[Config]) -> Job:
        config = self.scratch / f"{process}.{side}.config.json"
        config.write_text(json.dumps(list(configs)), encoding="utf-8")
        steps = sum(len(one["workloads"]) for one in configs)
        limit = _ENGINE_LIMIT * len(configs) + _STEP_LIMIT * steps
        output = self.scratch / f"{process}.{side}.json"
        words = ["-m", "vllm_graft.proof.driver", str(config), str(output)]
        job = self._job(side, process, words)
        env = driver_environment(job.env)
        # Ranks wait for each other in busy loops: beside others they take for ever.
        slots = 2 if process == "ranks" else 1
        return job._replace(
            env=env, output=output, limit=limit, steps=steps, slots=slots
        )

    def _stub(self, side: str, name: str, more: Sequence[str]) -> Job:
        output = self.scratch / f"{name}.{side}.json"
        words = ["-m", f"vllm_graft.proof.{name}", "--output", str(output), *more]
        return self._job(side, name, words)._replace(output=output, limit=_STUB_LIMIT)

    def _job(self, side: str, name: str, words: Sequence[str]) -> Job:
        env = self.sides.grafted if side == "grafted" else self.sides.base
        command = [str(self.sides.engine.python), *words]
        return Job(name, side, command, env, output=None, limit=_STEP_LIMIT)
