from __future__ import annotations

import sys
from pathlib import Path

import pytest

from miniature import BEFORE, World
from vllm_graft import DirTree, MemoryTree, TreeError, find_tree


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def error(call: object, *args: object) -> TreeError:
    assert callable(call)
    with pytest.raises(TreeError) as caught:
        call(*args)
    assert caught.value.hint
    return caught.value


def test_reads_files_and_sees_folders(world: World) -> None:
    assert world.tree.read("vllm/number.py") == BEFORE["vllm/number.py"]
    assert world.tree.read("vllm/nothing.py") is None
    assert world.tree.read("vllm/number.py/nothing.py") is None
    assert world.tree.has_folder("tests")
    assert not world.tree.has_folder("vllm/number.py")


def test_memory_reads_files_and_sees_folders() -> None:
    tree = MemoryTree(BEFORE, version="1.2")
    assert tree.read("vllm/number.py") == BEFORE["vllm/number.py"]
    assert tree.read("vllm/nothing.py") is None
    assert tree.has_folder("vllm/sub")
    assert not tree.has_folder("vllm/number.py")


def test_no_such_folder(tmp_path: Path) -> None:
    assert error(DirTree, tmp_path / "no").message == "no such folder"


def test_a_file_is_no_tree(world: World) -> None:
    assert "a file" in error(DirTree, world.root / "vllm/number.py").message


def test_a_folder_without_vllm_is_no_tree(tmp_path: Path) -> None:
    assert "no vllm/__init__.py" in error(DirTree, tmp_path).message


@pytest.mark.parametrize("path", ["tree/vllm", "tree/vllm/../vllm", "link"])
def test_the_package_itself_is_no_tree(path: str, world: World) -> None:
    (world.folder / "link").symlink_to(world.root / "vllm")
    caught = error(DirTree, world.folder / path)
    assert "the package itself" in caught.message
    assert caught.hint is not None
    assert caught.hint.endswith(str(world.root.resolve()))


def test_the_package_as_the_current_folder_is_no_tree(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root / "vllm")
    assert "the package itself" in error(DirTree, Path()).message


@pytest.mark.parametrize("target", ["../../outside.py", "/etc/hostname"])
def test_a_link_out_of_the_tree(target: str, world: World) -> None:
    (world.folder / "outside.py").write_bytes(b"")
    (world.root / "vllm/link.py").symlink_to(target)
    assert "out of the tree" in error(world.tree.read, "vllm/link.py").message


def test_a_folder_with_the_same_beginning_is_outside(world: World) -> None:
    (world.folder / "tree2").mkdir()
    (world.folder / "tree2/x.py").write_bytes(b"")
    (world.root / "vllm/link.py").symlink_to(world.folder / "tree2/x.py")
    assert "out of the tree" in error(world.tree.read, "vllm/link.py").message


def test_a_link_within_the_tree(world: World) -> None:
    (world.root / "vllm/link.py").symlink_to("sub/word.py")
    assert world.tree.read("vllm/link.py") == BEFORE["vllm/sub/word.py"]
    assert world.tree.real("vllm/link.py") == "vllm/sub/word.py"


def test_a_tree_behind_a_link(world: World) -> None:
    (world.folder / "link").symlink_to(world.root)
    tree = DirTree(world.folder / "link")
    assert tree.read("vllm/number.py") == BEFORE["vllm/number.py"]
    assert tree.real("vllm/number.py") == "vllm/number.py"
    assert tree.name == str(world.folder / "link")


def test_a_link_to_itself(world: World) -> None:
    (world.root / "vllm/loop.py").symlink_to("loop.py")
    assert "cannot be read" in error(world.tree.read, "vllm/loop.py").message


def test_a_folder_in_place_of_a_file(world: World) -> None:
    (world.root / "vllm/folder.py").mkdir()
    assert "cannot be read" in error(world.tree.read, "vllm/folder.py").message


def test_finds_the_named_tree(world: World) -> None:
    assert find_tree(world.root).root == world.root
    assert find_tree(str(world.root)).root == world.root


def test_finds_the_current_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    assert find_tree().root.resolve() == world.root.resolve()


@pytest.mark.parametrize("folder", ["vllm", "vllm/sub", "tests"])
def test_does_not_guess_inside_a_tree(
    folder: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root / folder)
    caught = error(find_tree)
    assert "inside a vLLM tree" in caught.message
    assert caught.hint is not None
    assert caught.hint.endswith(str(world.root))


def test_finds_the_installed_vllm(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(world.root)
    assert find_tree().root == world.root
    assert "vllm" not in sys.modules


def test_a_folder_that_is_no_package_is_not_installed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "vllm/__init__.py").unlink()
    monkeypatch.chdir(world.folder)
    monkeypatch.syspath_prepend(world.root)
    caught = error(find_tree)
    assert "none is installed" in caught.message
    assert caught.where == str(world.folder)
