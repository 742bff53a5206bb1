from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from changes import changes, crash, finished, litter, make_world
from faults import killed_in_child
from miniature import AFTER, BEFORE, World
from vllm_graft import TreeError, status
from vllm_graft.journal import JOURNAL, open_journal
from vllm_graft.write import recover, write_changes


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(tmp_path, monkeypatch)


def test_killed_at_any_operation_recovers_every_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = 0
    for at in count(1):
        world = make_world(tmp_path / str(at), monkeypatch)
        tree, before = world.tree, world.snapshot()
        if not killed_in_child(world.root, at, write_changes, tree, changes()):
            break
        if (world.root / JOURNAL).exists():
            interrupted += 1
            with pytest.raises(TreeError, match="was interrupted") as caught:
                status(tree, world.loaded)
            assert "vllm-graft recover" in str(caught.value)
            recover(tree)
            assert world.snapshot() == before
        elif not finished(world):
            assert world.snapshot().items() >= before.items()
            write_changes(tree, changes())
            assert finished(world)
        recover(tree)
        assert not litter(world)
    assert interrupted > 10


def test_recovery_that_is_killed_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in count(1):
        world = make_world(tmp_path / str(at), monkeypatch)
        before = world.snapshot()
        crash(world)
        killed = killed_in_child(world.root, at, recover, world.tree)
        recover(world.tree)
        assert world.snapshot() == before
        if not killed:
            break
    assert at > 5


def test_recover_says_what_it_restored(world: World) -> None:
    crash(world)
    restored = recover(world.tree)
    assert set(restored) == {change.path for change in changes()}


def test_recover_without_a_journal_does_nothing(world: World) -> None:
    before = world.snapshot()
    assert recover(world.tree) == []
    assert world.snapshot() == before


def test_a_tree_that_was_moved_recovers(world: World) -> None:
    before = world.snapshot()
    crash(world)
    world.root = world.root.rename(world.folder / "elsewhere")
    recover(world.tree)
    assert world.snapshot() == before


def test_recover_leaves_alone_what_was_edited_since(world: World) -> None:
    crash(world)
    world.write({"vllm/number.py": b"mine\n"})
    with pytest.raises(TreeError, match="changed by something else") as caught:
        recover(world.tree)
    assert JOURNAL in str(caught.value)
    assert world.files()["vllm/number.py"] == b"mine\n"
    assert world.files()["vllm/sub/word.py"] == BEFORE["vllm/sub/word.py"]


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b"vllm-graft journal 1\nx\n", b"vllm-graft journal 1\nx y z"]
)
def test_a_damaged_manifest_is_an_error(damage: bytes, world: World) -> None:
    crash(world)
    (world.root / JOURNAL / "manifest").write_bytes(damage)
    before = world.snapshot()
    with pytest.raises(TreeError, match="journal is damaged"):
        recover(world.tree)
    assert world.snapshot() == before


def test_a_missing_original_is_an_error(world: World) -> None:
    crash(world)
    (world.root / JOURNAL / "0").unlink()
    with pytest.raises(TreeError, match="original is missing"):
        recover(world.tree)


def test_a_manifest_cannot_lead_out_of_the_tree(world: World) -> None:
    crash(world)
    outside = world.folder / "outside.py"
    outside.write_bytes(AFTER["vllm/number.py"])
    manifest = world.root / JOURNAL / "manifest"
    text = manifest.read_text().replace("vllm/number.py", "../outside.py")
    manifest.write_text(text)
    with pytest.raises(TreeError, match="leads out of the tree"):
        recover(world.tree)
    assert outside.read_bytes() == AFTER["vllm/number.py"]


def test_a_second_writer_is_turned_away(world: World) -> None:
    before = world.snapshot()
    with open_journal(world.tree, []):
        for attempt in (write_changes, lambda tree, _: recover(tree)):
            with pytest.raises(TreeError, match="another run is writing"):
                attempt(world.tree, changes())
        with pytest.raises(TreeError, match="another run is writing"):
            status(world.tree, world.loaded)
    assert world.snapshot() == before


@pytest.mark.parametrize("_", range(10))
def test_writers_at_the_same_time_do_not_mix(world: World, _: int) -> None:
    ready, go = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if not child:
            try:
                os.close(go)
                os.read(ready, 1)
                write_changes(world.tree, changes())
                os._exit(0)
            except TreeError:
                os._exit(2)
            finally:
                os._exit(1)
        children.append(child)
    os.close(go)
    os.close(ready)
    codes = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]
    assert set(codes) <= {0, 2}
    # One that comes too late finds the work done, one that comes too early is turned
    # away, and nobody sweeps away what another one is about to lock.
    assert codes.count(0) == 1
    assert finished(world)
    assert not litter(world)


def test_a_draft_that_is_not_locked_yet_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def and_then_another(path: Path, *args: object, **kwargs: object) -> None:
        mkdir(path)
        if path.name.startswith(f"{JOURNAL}."):
            for attempt in (write_changes, lambda tree, _: recover(tree)):
                with pytest.raises(TreeError, match="another run is writing"):
                    attempt(world.tree, changes())

    monkeypatch.setattr(Path, "mkdir", and_then_another)
    with open_journal(world.tree, []):
        assert (world.root / JOURNAL).is_dir()


def test_a_file_system_without_hard_links(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    before = world.snapshot()
    crash(world)
    recover(world.tree)
    assert world.snapshot() == before
