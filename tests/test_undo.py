from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from miniature import AFTER, BEFORE, World
from vllm_graft import DirTree, Outcome, apply, plan, revert, undo
from vllm_graft.planner import make_plan
from vllm_graft.undo import UndoStore

GUESSED = b"def number():  # the loneliest\n    return one\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def applied(world: World) -> list[Path]:
    """Applies the series; gives the records."""
    apply(world.tree, world.loaded)
    assert world.files() == AFTER
    return sorted((world.folder / "cache" / "undo").iterdir())


def reverted(world: World) -> Outcome:
    return revert(world.tree, world.loaded)


def assert_guessed(world: World) -> None:
    """Reverts, without a record of the file whose layout matters."""
    outcome = reverted(world)
    assert outcome.inexact == ("0001-number.spatch",)
    assert world.files() == {**BEFORE, "vllm/number.py": GUESSED}


def number_record(world: World) -> Path:
    """The record of the file whose layout the reverse patch cannot know."""
    original = BEFORE["vllm/number.py"]
    records = {zlib.decompress(r.read_bytes()): r for r in applied(world)}
    return records[original]


def test_layout_comes_back(world: World) -> None:
    applied(world)
    outcome = reverted(world)
    assert world.files() == BEFORE
    assert outcome.inexact == ()


def test_without_records_the_patch_tells(world: World) -> None:
    for record in applied(world):
        record.unlink()
    outcome = reverted(world)
    assert outcome.inexact == ("0002-word.spatch", "0001-number.spatch")
    assert world.files() == {**BEFORE, "vllm/number.py": GUESSED}


WRONG = {
    "empty": b"",
    "damaged": b"not compressed",
    "cut off": zlib.compress(BEFORE["vllm/number.py"])[:-3],
    "of an empty file": zlib.compress(b""),
    "no Python": zlib.compress(b"def number(:\n"),
    "not UTF-8": zlib.compress(b"# \xe9\n"),
    "of a conflict": zlib.compress(b"def number():\n    return three\n"),
    "of other comments": zlib.compress(b"def number():  # two\n    return one\n"),
    "of the patched file": zlib.compress(AFTER["vllm/number.py"]),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_a_wrong_record_is_not_used(content: bytes, world: World) -> None:
    number_record(world).write_bytes(content)
    assert_guessed(world)


def test_a_record_that_cannot_be_read_is_not_used(world: World) -> None:
    record = number_record(world)
    record.unlink()
    record.mkdir()
    assert_guessed(world)


def test_a_record_is_not_used_once_the_file_was_edited(world: World) -> None:
    applied(world)
    edited = AFTER["vllm/number.py"] + b"# more\n"
    world.write({"vllm/number.py": edited})
    assert reverted(world).inexact == ("0001-number.spatch",)
    assert world.files()["vllm/number.py"] == GUESSED + b"# more\n"


def test_a_record_of_a_half_applied_file_is_not_used(world: World) -> None:
    half = b"def number():\n    return two\n\n\ndef other():\n    return  one\n"
    whole = half.replace(b"return  one", b"return two")
    none = half.replace(b"two", b"one").replace(b"  one", b" one")
    world.patch("0001-number.spatch", "+return two\n", HUNK)
    world.write({"vllm/number.py": half})
    applied_to = apply(world.tree, world.loaded).status.series[0].patches[0]
    assert applied_to.verdict == "partial"
    assert world.files()["vllm/number.py"] == whole
    assert "0001-number.spatch" in reverted(world).inexact
    assert world.files()["vllm/number.py"].replace(b"  one", b" one") == none


HUNK = """\
+return two
@@ other
-return one
+return two
"""


def test_the_oldest_records_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "MOST", 2)
    first = applied(world)
    for record in first:
        os.utime(record, (1, 1))
    reverted(world)
    world.write({"vllm/number.py": b"def number():\n    return (one)\n"})
    apply(world.tree, world.loaded)
    left = sorted((world.folder / "cache" / "undo").iterdir())
    assert len(left) == 2


@pytest.mark.parametrize("problem", ["a file in the way", "read-only home"])
def test_without_a_cache_folder_nothing_fails(
    problem: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.folder / "file").write_bytes(b"")
    place = "/proc/nowhere" if problem == "read-only home" else world.folder / "file"
    monkeypatch.setenv("VLLM_GRAFT_CACHE", f"{place}/cache")
    apply(world.tree, world.loaded)
    assert world.files() == AFTER
    assert reverted(world).inexact == ("0002-word.spatch", "0001-number.spatch")


def test_planning_forward_asks_for_no_record(world: World) -> None:
    applied(world)
    planned = plan(DirTree(world.root), world.loaded)
    assert planned.changes == ()


def test_a_store_in_a_folder_of_its_own(world: World, tmp_path: Path) -> None:
    store = UndoStore(tmp_path)
    before = make_plan(world.tree, world.loaded)
    for step in before.steps:
        store.remember(step.patch, step.changes)
    number = before.steps[0]
    recalled = store.recall(number.patch, "vllm/number.py", AFTER["vllm/number.py"])
    assert recalled == BEFORE["vllm/number.py"]
