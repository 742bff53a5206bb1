"""The import-time graft in a process: all of it, or an error that says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from miniature import World
from vllm_graft.run import bundle, environment

IMPORT = "import vllm.number, vllm.sub.word; print('imported')"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture
def folder(world: World) -> Path:
    """The bundle."""
    made = bundle(world.tree, [str(world.series)], [])
    assert made is not None
    return made


def start(
    code: str, folder: Path, tree: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs code in a process with the graft's environment."""
    env = environment({**os.environ, **variables}, folder, tree)
    return subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_that_changed_after_the_plan_fails_the_first_import(
    folder: Path, world: World
) -> None:
    world.write({"vllm/sub/word.py": b"class Word: ...\n"})
    # The other file did not change: still, neither is grafted alone.
    code = "import vllm.other\ntry:\n    import vllm.number\n"
    code += "except ImportError as e:\n    print(e)"
    world.write({"vllm/other.py": b""})
    done = start(code, folder, world.root)
    assert str(world.root / "vllm/sub/word.py") in done.stdout
    assert "has changed since the graft was planned" in done.stdout
    assert "'vllm-graft run' again" in done.stdout


def test_a_damaged_content_fails_the_import(folder: Path, world: World) -> None:
    (content,) = (p for p in folder.iterdir() if b"return two" in p.read_bytes())
    content.write_bytes(b"import os\n")
    done = start(IMPORT, folder, world.root)
    assert done.returncode == 1
    assert f"{content} is damaged" in done.stderr


def test_a_lost_content_fails_the_import(folder: Path, world: World) -> None:
    for file in folder.iterdir():
        if file.name != "manifest.json":
            file.unlink()
    done = start(IMPORT, folder, world.root)
    assert "GraftImportError" in done.stderr
    assert "cannot be read (No such file" in done.stderr
    assert "imported" not in done.stdout


@pytest.mark.parametrize("damage", ["", "{", '{"root": "/"}', None])
def test_a_damaged_manifest_ends_every_process(
    damage: str | None, folder: Path, world: World
) -> None:
    manifest = folder / "manifest.json"
    if damage is None:
        manifest.unlink()
    else:
        manifest.write_text(damage)
    done = start("print('started')", folder, world.root)
    assert (done.returncode, done.stdout) == (70, "")
    assert "bundle cannot be read" in done.stderr
    assert "start-up failed, ending the process" in done.stderr


def test_a_module_from_elsewhere_is_refused(
    folder: Path, world: World, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "vllm").mkdir(parents=True)
    for name in ("__init__.py", "number.py"):
        (other / "vllm" / name).touch()
    done = start(IMPORT, folder, other)
    assert done.returncode == 1
    assert f"vllm.number is imported from {other}/vllm/number.py" in done.stderr
    assert f"planned for {world.root}/vllm/number.py" in done.stderr


def test_the_same_tree_by_another_path_is_the_same(
    folder: Path, world: World, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(world.root)
    assert start(IMPORT, folder, link).stdout == "imported\n"


def test_a_module_imported_too_early_is_an_error(folder: Path, world: World) -> None:
    # By a sitecustomize of the user's own that the graft's chains to, say.
    code = "import vllm.number, vllm_graft.hook, sys\n"
    code += f"sys.meta_path.pop(0)\nvllm_graft.hook.install({str(folder)!r})"
    done = start(code, folder, world.root)
    assert done.returncode == 1
    assert "too late to graft: vllm.number was imported already" in done.stderr


def test_a_missing_module_gets_pythons_own_message(folder: Path, world: World) -> None:
    (world.root / "vllm/number.py").unlink()
    done = start("import vllm.number", folder, world.root)
    assert "No module named 'vllm.number'" in done.stderr


def test_another_sitecustomize_still_runs(
    folder: Path, world: World, tmp_path: Path
) -> None:
    other = tmp_path / "site"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins; builtins.mark = 5\n")
    done = start(f"{IMPORT}; print(mark)", folder, world.root, PYTHONPATH=str(other))
    assert done.stdout == "imported\n5\n"


def test_it_works_where_the_tool_is_not_installed(folder: Path, world: World) -> None:
    env = environment(os.environ, folder, world.root)
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sitecustomize\n{IMPORT}"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "imported\n"


def test_the_package_it_loads_is_a_whole_one(folder: Path, world: World) -> None:
    code = "import vllm_graft, importlib.util as u\n"
    code += "print(vllm_graft.DirTree.__module__, u.find_spec('vllm_graft').origin)\n"
    code += "print(vllm_graft.__file__)"
    found, file = start(code, folder, world.root).stdout.splitlines()
    assert found.split() == ["vllm_graft.tree", file]


def test_it_loads_little(folder: Path, world: World) -> None:
    code = "import sys; print(*sys.modules)"
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = set(start(code, folder, world.root).stdout.split())
    modules -= set(plain.stdout.split())
    assert "vllm_graft.hook" in modules
    assert not modules & {"typing", "hashlib", "linecache", "importlib.util", "vllm"}


def test_the_manifest_names_each_change(folder: Path, world: World) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["root"] == str(world.root)
    assert sorted(manifest["files"]) == ["vllm.number", "vllm.sub.word"]
