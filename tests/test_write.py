from __future__ import annotations

import os
import resource
from contextlib import suppress
from errno import EACCES, EFBIG, ENOSPC
from itertools import count
from pathlib import Path

import pytest

from changes import REMOVED, changes, finished, litter, make_world
from faults import stop_at
from miniature import AFTER, BEFORE, World
from vllm_graft import DirTree, FileChange, TreeError
from vllm_graft.write import check_recovered, write_changes


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(tmp_path, monkeypatch)


def test_makes_all_changes(world: World) -> None:
    write_changes(world.tree, changes())
    assert world.files() == AFTER


def test_keeps_file_modes(world: World) -> None:
    write_changes(world.tree, changes())
    snapshot = world.snapshot()
    assert snapshot["vllm/number.py"][1] == 0o640
    assert snapshot["vllm/sub/word.py"][1] == 0o755


def test_removes_the_folders_that_it_empties(world: World) -> None:
    world.write({"vllm/deep/er/x.py": b""})
    write_changes(world.tree, [FileChange("vllm/deep/er/x.py", b"", None)])
    assert not (world.root / "vllm/deep").exists()
    assert (world.root / "vllm").is_dir()


def test_nothing_to_write_leaves_the_folder_alone(world: World) -> None:
    before = world.root.stat().st_mtime_ns
    write_changes(world.tree, [])
    assert world.root.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "problem",
    [OSError(ENOSPC, "No space left"), OSError(EACCES, "Denied"), KeyboardInterrupt()],
    ids=["full", "denied", "interrupted"],
)
def test_failing_at_any_operation_leaves_the_tree_as_it_was(
    problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise problem

    expected = TreeError if isinstance(problem, OSError) else KeyboardInterrupt
    for at in count(1):
        world = make_world(tmp_path / str(at), monkeypatch)
        tree, before = world.tree, world.snapshot()
        with stop_at(world.root, at, fail) as counter, suppress(expected):
            write_changes(tree, changes())
        if counter.count < at:
            break
        check_recovered(tree)
        # The very last operations come after the point of no return.
        assert world.snapshot() == before or finished(world)
        assert not litter(world)
    assert at > 20


def test_a_full_disk_in_the_middle_of_a_file(world: World) -> None:
    before = world.snapshot()
    big = FileChange("tests/big.py", None, b"#" * 100_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(TreeError, match="nothing was changed") as caught:
            write_changes(world.tree, [*changes(), big])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.strerror(EFBIG) in str(caught.value)
    assert world.snapshot() == before


def test_restores_when_a_file_does_not_read_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.snapshot()
    real = DirTree.read

    def read(self: DirTree, path: str) -> bytes | None:
        data = real(self, path)
        return b"rot" if data == AFTER["vllm/sub/word.py"] else data

    monkeypatch.setattr(DirTree, "read", read)
    with pytest.raises(TreeError, match="did not read back"):
        write_changes(world.tree, changes())
    assert world.snapshot() == before


def test_a_symbolic_link_in_the_tree_stays(world: World) -> None:
    link, target = world.root / "vllm/number.py", world.root / "vllm/real.py"
    link.rename(target)
    link.symlink_to("real.py")
    write_changes(world.tree, changes())
    assert link.readlink() == Path("real.py")
    assert target.read_bytes() == AFTER["vllm/number.py"]


def test_a_linked_folder_in_the_tree_stays(world: World) -> None:
    (world.root / "vllm/sub").rename(world.root / "words")
    (world.root / "vllm/sub").symlink_to("../words")
    write_changes(world.tree, changes())
    assert (world.root / "vllm/sub").is_symlink()
    assert (world.root / "words/word.py").read_bytes() == AFTER["vllm/sub/word.py"]


def test_the_other_name_of_a_hard_linked_file_keeps_its_content(world: World) -> None:
    other = world.folder / "cache.py"
    other.hardlink_to(world.root / "vllm/number.py")
    write_changes(world.tree, changes())
    assert other.read_bytes() == BEFORE["vllm/number.py"]


def test_a_symbolic_link_out_of_the_tree_is_an_error(world: World) -> None:
    path, outside = world.root / "vllm/number.py", world.folder / "outside.py"
    path.rename(outside)
    path.symlink_to(outside)
    before = world.snapshot()
    with pytest.raises(TreeError, match="leads out of the tree"):
        write_changes(world.tree, changes())
    assert world.snapshot() == before
    assert outside.read_bytes() == BEFORE["vllm/number.py"]


@pytest.mark.parametrize(
    ("path", "mode"), [("vllm/number.py", 0o444), ("vllm/old.py", 0o400)]
)
def test_a_read_only_file_is_an_error(path: str, mode: int, world: World) -> None:
    (world.root / path).chmod(mode)
    before = world.snapshot()
    with pytest.raises(TreeError, match="read-only") as caught:
        write_changes(world.tree, changes())
    assert path in str(caught.value)
    assert world.snapshot() == before


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("vllm/sub/word.py", b"mine\n", "was changed"),
        ("vllm/sub/word.py", None, "vanished"),
        ("tests/sub/test_word.py", b"mine\n", "was changed"),
        (REMOVED, None, "vanished"),
    ],
)
@pytest.mark.parametrize("at", [1, 12, 18])
def test_a_file_that_changes_before_its_turn_is_an_error(
    path: str, data: bytes | None, said: str, at: int, world: World
) -> None:
    def edit() -> None:
        if data is None:
            (world.root / path).unlink()
        else:
            world.write({path: data})

    with stop_at(world.root, at, edit), pytest.raises(TreeError, match=said):
        write_changes(world.tree, changes())
    expected = {**BEFORE, REMOVED: b"gone soon\n", path: data}
    assert world.files() == {k: v for k, v in expected.items() if v is not None}


def test_a_folder_in_the_way_of_a_new_file_is_an_error(world: World) -> None:
    (world.root / "tests/sub/test_word.py").mkdir(parents=True)
    with pytest.raises(TreeError, match="Is a directory"):
        write_changes(world.tree, changes())
    assert world.files() == {**BEFORE, REMOVED: b"gone soon\n"}


def test_a_file_in_the_way_of_a_new_folder_is_an_error(world: World) -> None:
    world.write({"tests/sub": b"a file\n"})
    before = world.snapshot()
    with pytest.raises(TreeError, match="nothing was changed"):
        write_changes(world.tree, changes())
    assert world.snapshot() == before
