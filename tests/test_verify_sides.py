"""Tests of verify/sides.py and verify/overlay.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines import stand_in
from miniature import AFTER, World, write_files
from vllm_graft.errors import GraftError, TreeError
from vllm_graft.verify.overlay import check_fits, is_built, lay_over
from vllm_graft.verify.sides import NothingToCompareError, find_engine, make_sides

INSTALLED = {
    "__init__.py": b"installed",
    "_version.py": b"installed",
    "gone.py": b"installed",
    "_C.abi3.so": b"compiled",
    "deep/er/_D.so": b"compiled",
    "deep/er/d.py": b"installed",
    "third_party/made/x.py": b"built",
}
SOURCES = {
    "__init__.py": b"tree",
    "deep/er/d.py": b"tree",
    "deep/e.py": b"tree",
    "plain/p.py": b"tree",
    "third_party/own.py": b"tree",
    "_C.abi3.so.txt": b"tree",
}


def read(root: Path) -> dict[str, bytes]:
    found = {}
    for folder, _, names in os.walk(root, followlinks=True):
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path / "world", monkeypatch)


def test_an_overlay_has_the_trees_sources_and_what_a_build_adds(tmp_path: Path) -> None:
    tree, installed, root = tmp_path / "t", tmp_path / "i", tmp_path / "root"
    write_files(tree, SOURCES)
    write_files(installed, INSTALLED)
    root.mkdir()
    lay_over(tree, installed, root)
    built = ("_version.py", "_C.abi3.so", "deep/er/_D.so", "third_party/made/x.py")
    assert read(root / "vllm") == {**SOURCES, **{n: INSTALLED[n] for n in built}}
    assert read(tree) == SOURCES
    assert read(installed) == INSTALLED


def test_a_tree_with_extensions_of_its_own_is_built(tmp_path: Path) -> None:
    write_files(tmp_path, SOURCES)
    assert not is_built(tmp_path)
    write_files(tmp_path, {"_C.abi3.so": b""})
    assert is_built(tmp_path)


@pytest.mark.parametrize(
    "version", [None, "0.23.0", "v0.23.1", "0.23.1rc1.dev5+g12", "0.23.0-4-gabc"]
)
def test_extensions_of_the_same_minor_version_fit(version: str | None) -> None:
    check_fits("tree", version, "0.23.0+cpu", Path("python"))


def test_extensions_of_another_minor_version_do_not(
    world: World, tmp_path: Path
) -> None:
    world.write({"vllm/_version.py": b"__version__ = '0.24.0'\n"})
    with pytest.raises(TreeError, match=r"vLLM 0\.24\.0 without .* of vLLM 0\.23"):
        make_sides(stand_in(world), world.root, [str(world.series)], tmp_path)


def said(env: dict[str, str]) -> str:
    code = "from vllm.sub.word import Word; print(Word().say(), end='')"
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("carried", [False, True])
def test_the_sides_differ_in_the_series_alone(
    world: World, tmp_path: Path, carried: bool
) -> None:
    if carried:
        world.write(AFTER)
    engine = stand_in(world)
    sides = make_sides(engine, world.root, [str(world.series)], tmp_path)
    assert sides.carried is carried
    assert (said(sides.base), said(sides.grafted)) == ("a", "b")
    different = {k for k, v in sides.base.items() if sides.grafted.get(k) != v}
    different |= sides.grafted.keys() - sides.base.keys()
    assert different == {"VLLM_GRAFT_HOOK"}


def test_a_series_that_changes_nothing_leaves_nothing_to_compare(
    world: World, tmp_path: Path
) -> None:
    (world.series / "series").write_text("0003-test.spatch\n")
    with pytest.raises(NothingToCompareError):
        make_sides(stand_in(world), world.root, [str(world.series)], tmp_path)


def test_a_built_tree_is_imported_as_it_is(world: World, tmp_path: Path) -> None:
    world.write({"vllm/_C.so": b""})
    sides = make_sides(stand_in(world), world.root, [str(world.series)], tmp_path)
    assert str(world.root) in sides.base["PYTHONPATH"].split(os.pathsep)
    assert not (tmp_path / "overlay").exists()


def fake_python(folder: Path, answer: str) -> str:
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("/no/such/python", "auto", "no such program"),
        (sys.executable, "cpu", "has no vLLM"),
    ],
)
def test_a_python_without_vllm_is_no_engine(
    name: str, device: str, message: str
) -> None:
    with pytest.raises(GraftError, match=message):
        find_engine(name, device)


@pytest.mark.parametrize(
    ("cuda", "device", "wanted"),
    [
        ("true", "auto", "cuda"),
        ("true", "cuda", "cuda"),
        ("true", "cpu", "cpu"),
        ("false", "auto", "cpu"),
    ],
)
def test_the_device_is_the_machines_unless_named(
    tmp_path: Path, cuda: str, device: str, wanted: str
) -> None:
    answer = f'{{"package": "/x/vllm/__init__.py", "version": "1.2", "cuda": {cuda}}}'
    engine = find_engine(fake_python(tmp_path, answer), device)
    assert engine.device == wanted
    assert (engine.package, engine.version) == (Path("/x/vllm"), "1.2")


def test_cuda_without_a_gpu_is_refused(tmp_path: Path) -> None:
    answer = '{"package": "/x/vllm/__init__.py", "cuda": false}'
    with pytest.raises(GraftError, match="no CUDA device"):
        find_engine(fake_python(tmp_path, answer), "cuda")


def test_without_any_engine_the_one_in_the_cache_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = '{"package": "/x/vllm/__init__.py", "version": "1.2", "cpu": true}'
    made = fake_python(tmp_path, answer)

    class Made:
        python = Path(made)

    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("vllm_graft.engine_env.cpu_engine", lambda: None)
    monkeypatch.setattr("vllm_graft.engine_env.ensure", lambda _: Made)
    engine = find_engine(None, "auto")
    assert (engine.python, engine.device) == (Path(made), "cpu")
