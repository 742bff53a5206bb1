"""Which tree a command would import vLLM from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vllm_graft import TreeError
from vllm_graft.launch import command_tree

HERE = Path(sys.executable)


def holds_vllm(folder: Path) -> Path:
    """Makes a folder that vLLM can be imported from."""
    package = folder / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return folder


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Some trees: the current folder, that of a script, one on PYTHONPATH."""
    found = {
        name: holds_vllm(tmp_path / name) for name in ("current", "script", "named")
    }
    (found["script"] / "run.py").touch()
    monkeypatch.chdir(found["current"])
    monkeypatch.setenv("PYTHONPATH", str(found["named"]))
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-c", "pass"], "current"),
        (["-m", "vllm"], "current"),
        ([], "current"),
        (["-X", "dev", "-c", "pass"], "current"),
        (["-Wc", "-m", "x"], "current"),
        (["{script}/run.py"], "script"),
        (["-u", "-X", "dev", "{script}/run.py", "-c"], "script"),
        (["{script}"], "script"),
        (["-Wignore::DeprecationWarning", "{script}/run.py"], "script"),
        (["-uX", "dev", "{script}/run.py"], "script"),
        (["--", "{script}/run.py"], "script"),
        (["-", "{script}/run.py"], "current"),
    ],
)
def test_python_imports_from_the_folder_of_its_script(
    words: list[str], expected: str, folders: dict[str, Path]
) -> None:
    command = [sys.executable, *(w.format(**folders) for w in words)]
    assert command_tree(command).root.resolve() == folders[expected]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no safe path before 3.11")
@pytest.mark.parametrize(("own", "options"), [(False, []), (True, []), (False, ["-P"])])
def test_a_safe_path_has_no_folder_of_the_script(
    own: bool,
    options: list[str],
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "" if options else "1")
    other = tmp_path / "python-of-another-place"
    other.symlink_to(HERE)
    command = [str(HERE if own else other), *options, "-c", "pass"]
    code = f"from vllm_graft.launch import *; print(command_tree({command}).root)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == folders["named"]


def test_a_console_script_does_not_import_from_the_current_folder(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    script = tmp_path / "bin" / "serve"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    # Another interpreter by its name, so that it is asked, in its environment.
    other = tmp_path / "bin" / "python-of-another-place"
    other.symlink_to(HERE)
    script.write_text(f"#!{other}\n")
    assert command_tree([str(script)]).root == folders["named"]


def test_a_link_to_a_script_counts_as_the_script(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(folders["script"] / "run.py")
    assert command_tree([sys.executable, str(link)]).root == folders["script"]


@pytest.mark.parametrize("line", ["#!/bin/sh\n", "", "\x7fELF"])
def test_what_is_no_python_gets_the_usual_tree(
    line: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    script = tmp_path / "tool"
    script.write_text(line)
    script.chmod(0o755)
    tree = command_tree([str(script)])
    assert tree.root.resolve() == folders["current"]


def test_a_python_without_vllm_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "path", ["", os.fspath(tmp_path)])
    with pytest.raises(TreeError, match="has no vLLM") as found:
        command_tree([sys.executable, "-c", "pass"])
    assert found.value.hint is not None
    assert "--tree" in found.value.hint
