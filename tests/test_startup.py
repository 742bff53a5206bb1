"""What a command loads, and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from miniature import World

# ru_maxrss would count the memory of the process that started this one, too.
PROBE = """\
import json, sys
from vllm_graft.cli import main
code = main(sys.argv[1:])
sys.stdout.flush()
with open("/proc/self/status") as status:
    (peak,) = (int(x.split()[1]) for x in status if x.startswith("VmHWM:"))
record = {"code": code, "modules": sorted(sys.modules), "peak": peak}
sys.stderr.write(json.dumps(record))
"""
#: Not to be loaded: of other distributions, and slow parts of the standard library.
HEAVY = {
    "packaging",
    "pypi_simple",
    "remotezip",
    "requests",
    "rich",
    "torch",
    "urllib3",
    "vllm",
}
SLOW = {"hashlib", "importlib.metadata", "random", "shutil", "subprocess", "tempfile"}
ENGINE = {"vllm_graft.engine.evaluate", "vllm_graft.engine.match", "vllm_graft.planner"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def probe(*args: object) -> tuple[set[str], float]:
    """Runs a command; gives the modules it loaded and its peak memory in MB."""
    # What Python's own start and the probe load is taken off.
    plain = subprocess.run(
        [sys.executable, "-c", "import json, sys; print(list(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
    )
    record = json.loads(done.stderr)
    assert record["code"] == 0, done.stdout
    site = set(plain.stdout[2:-3].split("', '"))
    return set(record["modules"]) - site, record["peak"] / 1024


def tops(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


@pytest.mark.parametrize("command", ["status", "apply", "revert"])
def test_commands_on_a_tree_load_little(command: str, world: World) -> None:
    modules, _ = probe(command, world.root, "--series", world.series)
    assert "vllm_graft.planner" in modules
    assert not tops(modules) & HEAVY
    assert not modules & SLOW


@pytest.mark.parametrize("command", [["diff"], ["export", "-o", "out"]])
def test_commands_that_start_git_load_nothing_of_others(
    command: list[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    modules, _ = probe(*command, "--series", world.series)
    assert not tops(modules) & HEAVY


@pytest.mark.parametrize("command", ["check", "recover"])
def test_commands_without_a_series_load_nothing_of_others(
    command: str, world: World
) -> None:
    modules, _ = probe(command, world.series if command == "check" else world.root)
    assert not tops(modules) & HEAVY


def test_importing_the_package_loads_no_engine() -> None:
    code = "import sys, vllm_graft, vllm_graft.errors; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "vllm_graft.errors" in modules
    assert not modules & ENGINE


def test_memory_does_not_grow_with_the_tree(world: World) -> None:
    _, small = probe("status", world.root, "--series", world.series)
    block = b"# " + b"x" * 77 + b"\n"
    for number in range(20):
        world.write({f"vllm/big{number}.py": block * 50_000})  # 4 MB each
    _, large = probe("status", world.root, "--series", world.series)
    assert large < small + 8
    assert large < 80


def test_memory_with_a_large_target(world: World) -> None:
    lines = b"".join(b"def f%d(x):\n    return x + %d\n" % (n, n) for n in range(4000))
    source = (world.root / "vllm/number.py").read_bytes()
    world.write({"vllm/number.py": lines + source})  # 150 kB, as large as vLLM's
    _, peak = probe("status", world.root, "--series", world.series)
    assert peak < 80
