from __future__ import annotations

from pathlib import Path

import pytest

from miniature import AFTER, BEFORE, World, write_files
from vllm_graft import MemoryTree, Plan, SourceError, Verdict, load_series
from vllm_graft.planner import FileChange, make_plan


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def planned(world: World, files: dict[str, bytes], *, reverse: bool = False) -> Plan:
    return make_plan(MemoryTree(files), world.loaded, reverse=reverse)


def verdicts(plan: Plan) -> list[str]:
    return [str(patch.verdict) for patch in plan.status.series[0].patches]


def test_forward(world: World) -> None:
    plan = planned(world, BEFORE)
    assert verdicts(plan) == ["applies"] * 3
    assert plan.ok
    assert {c.path: c.after for c in plan.changes}.items() <= AFTER.items()


def test_nothing_to_do(world: World) -> None:
    plan = planned(world, AFTER)
    assert verdicts(plan) == ["applied"] * 3
    assert plan.ok
    assert plan.changes == ()


def test_back(world: World) -> None:
    plan = planned(world, AFTER, reverse=True)
    assert verdicts(plan) == ["applies"] * 3
    assert plan.steps[0].result.file == "0003-test.spatch"
    assert FileChange("tests/sub/test_word.py", b'"""Words."""\n', None) in plan.changes


def test_back_from_before_is_nothing_to_do(world: World) -> None:
    plan = planned(world, BEFORE, reverse=True)
    assert plan.ok
    assert plan.changes == ()


@pytest.mark.parametrize("reverse", [False, True])
def test_one_conflict_refuses_the_plan(reverse: bool, world: World) -> None:
    odd = {"vllm/sub/word.py": b"class Word:\n    def say(self):\n        return 1\n"}
    plan = planned(world, {**(AFTER if reverse else BEFORE), **odd}, reverse=reverse)
    assert verdicts(plan) == ["applies", "conflict", "applies"]
    assert not plan.ok
    assert plan.status.series[0].verdict is Verdict.CONFLICT


def test_partial_series(world: World) -> None:
    plan = planned(world, {**BEFORE, "vllm/number.py": AFTER["vllm/number.py"]})
    assert verdicts(plan) == ["applied", "applies", "applies"]
    assert plan.status.series[0].verdict is Verdict.PARTIAL
    assert plan.ok


def test_a_missing_target_is_absent(world: World) -> None:
    files = {k: v for k, v in BEFORE.items() if k != "vllm/number.py"}
    plan = planned(world, files)
    assert verdicts(plan)[0] == "absent"
    assert "no vllm/number.py" in plan.status.series[0].patches[0].reason
    assert not plan.ok


def test_a_missing_required_file_is_absent(world: World) -> None:
    world.patch("0001-number.spatch", "From: ", "Requires: vllm/v2.py\nFrom: ")
    plan = planned(world, BEFORE)
    assert verdicts(plan)[0] == "absent"
    assert plan.status.series[0].patches[0].reason == "this tree has no vllm/v2.py"
    assert verdicts(planned(world, {**BEFORE, "vllm/v2.py": b""}))[0] == "applies"


def test_an_installed_package_needs_no_tests(world: World) -> None:
    files = {k: v for k, v in BEFORE.items() if not k.startswith("tests/")}
    plan = planned(world, files)
    assert verdicts(plan) == ["applies", "applies", "absent"]
    assert plan.ok
    assert plan.status.series[0].verdict is Verdict.APPLIES
    assert "tests/sub/test_word.py" not in {c.path for c in plan.changes}


def test_a_new_file_at_the_top_needs_no_folder(world: World) -> None:
    world.patch("0003-test.spatch", "tests/sub/test_word.py", "NEW.md")
    write_files(world.series, {"files/NEW.md": b"new\n"})
    assert FileChange("NEW.md", None, b"new\n") in planned(world, BEFORE).changes


@pytest.mark.parametrize("reverse", [False, True])
def test_a_new_file_with_other_content_is_a_conflict(
    reverse: bool, world: World
) -> None:
    files = {**AFTER, "tests/sub/test_word.py": b"mine\n"}
    plan = planned(world, files, reverse=reverse)
    assert verdicts(plan)[2] == "conflict"
    assert "other content" in plan.status.series[0].patches[2].reason
    assert not plan.ok


def test_a_new_file_in_the_line_endings_of_windows_is_applied(world: World) -> None:
    files = {**AFTER, "tests/sub/test_word.py": b'"""Words."""\r\n'}
    assert verdicts(planned(world, files)) == ["applied"] * 3


class TestRemoval:
    """A patch that removes a file."""

    OLD = b"gone\n"

    @pytest.fixture
    def world(self, world: World) -> World:
        pair = "--- /dev/null\n+++ b/tests/sub/test_word.py"
        world.patch("0003-test.spatch", pair, "--- a/vllm/old.py\n+++ /dev/null")
        write_files(world.series, {"files/vllm/old.py": self.OLD})
        return world

    def test_applies_where_the_file_is(self, world: World) -> None:
        plan = planned(world, {**BEFORE, "vllm/old.py": self.OLD})
        assert verdicts(plan)[2] == "applies"
        assert FileChange("vllm/old.py", self.OLD, None) in plan.changes

    def test_is_applied_where_it_is_not(self, world: World) -> None:
        assert verdicts(planned(world, BEFORE))[2] == "applied"

    def test_conflicts_where_it_differs(self, world: World) -> None:
        plan = planned(world, {**BEFORE, "vllm/old.py": b"kept\n"})
        assert verdicts(plan)[2] == "conflict"

    def test_reverts(self, world: World) -> None:
        plan = planned(world, BEFORE, reverse=True)
        assert FileChange("vllm/old.py", None, self.OLD) in plan.changes


def test_two_series_on_one_file(world: World, tmp_path: Path) -> None:
    again = world.loaded[0].folder.parent / "again"
    text = (world.series / "0001-number.spatch").read_text()
    text = (
        text.replace("two", "three")
        .replace("one\n", "two\n")
        .replace("no one", "no two")
    )
    write_files(again, {"series": b"0001.spatch\n", "0001.spatch": text.encode()})
    both = [*world.loaded, load_series(again)]
    tree = MemoryTree(BEFORE)

    forward = make_plan(tree, both)
    assert [str(s.verdict) for s in forward.status.series] == ["applies", "applies"]
    (number,) = (c for c in forward.changes if c.path == "vllm/number.py")
    assert number.before == BEFORE["vllm/number.py"]
    assert number.after == b"def number():  # the loneliest\n    return three\n"

    after = {**AFTER, "vllm/number.py": number.after}
    back = make_plan(MemoryTree(after), both, reverse=True)
    assert back.ok
    assert back.steps[0].result.file == "0001.spatch"
    assert [s.name for s in back.status.series] == ["mini", "again"]


@pytest.mark.parametrize("data", [b"def number(:\n", b"# \xe9\nnumber = 1\n"])
def test_a_target_that_is_no_python_is_an_error(data: bytes, world: World) -> None:
    with pytest.raises(SourceError) as caught:
        planned(world, {**BEFORE, "vllm/number.py": data})
    assert caught.value.where is not None
    assert caught.value.where.startswith("vllm/number.py:1")
    assert caught.value.hint
