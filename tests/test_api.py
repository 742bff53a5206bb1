from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vllm_graft
from miniature import AFTER, BEFORE, World
from vllm_graft import (
    DirTree,
    DoesNotApplyError,
    MemoryTree,
    TreeError,
    apply,
    check,
    plan,
    revert,
    status,
)

CONFLICT = b"class Word:\n    def say(self):\n        return 1\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_status_of_files_in_memory(world: World) -> None:
    found = status(MemoryTree(BEFORE, "0.23.0", "mine"), world.loaded)
    assert (found.tree, found.vllm_version) == ("mine", "0.23.0")
    assert found.ok


def test_apply_and_revert(world: World) -> None:
    outcome = apply(world.tree, world.loaded)
    assert outcome.status.series[0].verdict == "applies"
    assert outcome.changed
    assert outcome.commits == ()
    assert world.files() == AFTER
    revert(world.tree, world.loaded)
    assert world.files() == BEFORE


def test_a_plan_changes_nothing_until_it_is_applied(world: World) -> None:
    planned = plan(world.tree, world.loaded)
    assert [c.path for c in planned.changes] == [
        "vllm/number.py",
        "vllm/sub/word.py",
        "tests/sub/test_word.py",
    ]
    assert world.files() == BEFORE


def test_a_refusal_carries_the_plan(world: World) -> None:
    world.write({"vllm/sub/word.py": CONFLICT})
    for action in (apply, lambda *args: check(args[0], plan(*args))):
        with pytest.raises(DoesNotApplyError) as caught:
            action(world.tree, world.loaded)
        assert caught.value.plan.status.series[0].patches[1].verdict == "conflict"
        assert "0002-word.spatch (conflict)" in caught.value.message


def test_a_refusal_to_revert_says_so(world: World) -> None:
    apply(world.tree, world.loaded)
    world.write({"vllm/sub/word.py": CONFLICT})
    with pytest.raises(DoesNotApplyError, match="cannot be reverted"):
        revert(world.tree, world.loaded)


def test_a_plan_that_is_out_of_date_is_refused(world: World) -> None:
    planned = plan(world.tree, world.loaded)
    edited = BEFORE["vllm/number.py"] + b"# more\n"
    world.write({"vllm/number.py": edited})
    with pytest.raises(TreeError, match="was changed"):
        check(world.tree, planned)
    assert world.files()["vllm/number.py"] == edited


def test_everything_public_can_be_imported() -> None:
    for name in vllm_graft.__all__:
        assert getattr(vllm_graft, name).__module__.startswith("vllm_graft.")
    assert set(vllm_graft.__all__) <= set(dir(vllm_graft))
    assert set(vllm_graft.__all__) == set(vllm_graft._HOMES)


def test_what_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frob'"):
        getattr(vllm_graft, "frob")  # noqa: B009


def test_a_function_is_not_hidden_by_a_module() -> None:
    names = {path.stem for path in Path(vllm_graft.__file__).parent.glob("*.py")}
    assert not names & set(vllm_graft.__all__)


PROGRAM = """\
from pathlib import Path

from vllm_graft import (
    DirTree,
    DoesNotApplyError,
    FileChange,
    GraftError,
    Outcome,
    Plan,
    Series,
    TreeStatus,
    Verdict,
    apply,
    check,
    load_series,
    plan,
    revert,
    status,
)


def carry(root: Path, names: list[str]) -> Outcome | None:
    tree = DirTree(root)
    series: list[Series] = [load_series(name) for name in names]
    found: TreeStatus = status(tree, series)
    if all(one.verdict is Verdict.APPLIED for one in found.series):
        return None
    planned: Plan = plan(tree, series)
    changes: tuple[FileChange, ...] = planned.changes
    try:
        check(tree, planned, commit=True)
        outcome = apply(tree, series, commit=True, signoff=True)
    except DoesNotApplyError as error:
        reasons: list[str] = [p.reason for p in error.plan.status.series[0].patches]
        raise SystemExit("; ".join(reasons)) from error
    except GraftError as error:
        raise SystemExit(error.message) from error
    assert {change.path for change in changes} == set(outcome.changed)
    revert(tree, series)
    return outcome
"""


def test_a_program_that_uses_it_passes_strict_mypy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    cache = ["--cache-dir", str(tmp_path / "cache"), "--config-file="]
    done = subprocess.run(
        [*command, *cache, str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_the_program_runs(world: World) -> None:
    world.commit_base()
    names: dict[str, object] = {}
    exec(compile(PROGRAM, "program.py", "exec"), names)
    carry = names["carry"]
    assert callable(carry)
    outcome = carry(world.root, [str(world.series)])
    assert len(outcome.commits) == 3
    assert world.files() == BEFORE
    assert isinstance(DirTree(world.root), DirTree)
