from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changes import changes, crash
from miniature import AFTER, BEFORE, World
from running import Run
from vllm_graft.journal import open_journal

CONFLICT = b"class Word:\n    def say(self):\n        return 1\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    return world


@pytest.fixture
def run(world: World, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the miniature tree with the miniature series."""

    def run(command: str, *options: object) -> Run:
        return Run(capsys, command, world.root, "--series", world.series, *options)

    return run


def test_status(run: Any) -> None:
    done = run("status", "--json")
    record = done.json("status")
    assert done.code == 0
    assert record["vllm_version"] == "0.23.0"
    (series,) = record["series"]
    assert (series["name"], series["verdict"]) == ("mini", "applies")
    assert series["patches"][0] == {
        "file": "0001-number.spatch",
        "subject": "[Core] Say two",
        "targets": ["vllm/number.py"],
        "verdict": "applies",
        "reason": "",
        "hunks": [
            {"scope": "number", "verdict": "applies", "lines": [2], "reason": ""}
        ],
    }


def test_status_of_a_conflict(run: Any, world: World) -> None:
    world.write({"vllm/sub/word.py": CONFLICT})
    done = run("status", "--json")
    assert done.code == 1
    hunk = done.json("status")["series"][0]["patches"][1]["hunks"][0]
    assert hunk["verdict"] == "conflict"
    assert hunk["reason"]


def test_apply_and_revert(run: Any, world: World) -> None:
    done = run("apply", "--json")
    record = done.json("apply")
    assert done.code == 0
    assert set(record["changed"]) == {k for k in AFTER if AFTER[k] != BEFORE.get(k)}
    assert record["commits"] == []
    assert world.files() == AFTER
    assert run("status", "--json").json("status")["series"][0]["verdict"] == "applied"

    again = run("apply", "--json")
    assert again.code == 0
    assert again.json("apply")["changed"] == []

    back = run("revert", "--json")
    assert back.code == 0
    assert back.json("revert")["changed"]
    assert world.files() == BEFORE


@pytest.mark.parametrize("command", ["apply", "revert"])
def test_check_changes_nothing(command: str, run: Any, world: World) -> None:
    if command == "revert":
        run("apply")
    before = world.snapshot()
    done = run(command, "--check", "--json")
    assert done.code == 0
    assert done.json(command)["changed"] == []
    assert world.snapshot() == before


@pytest.mark.parametrize("options", [[], ["--check"], ["--commit"], ["--json"]])
def test_apply_to_a_conflict_changes_nothing(
    options: list[str], run: Any, world: World
) -> None:
    world.write({"vllm/sub/word.py": CONFLICT})
    before = world.snapshot()
    done = run("apply", *options)
    assert done.code == 1
    assert world.snapshot() == before
    assert done.err == (
        f"error: {world.root}: cannot be applied: 0002-word.spatch (conflict); "
        "nothing was changed\n"
    )
    if options == ["--json"]:
        assert done.json("apply")["changed"] == []
    else:
        assert "line 3" in done.out


def test_check_foretells_a_read_only_file(run: Any, world: World) -> None:
    (world.root / "vllm/number.py").chmod(0o444)
    done = run("apply", "--check")
    assert done.code == 2
    assert "read-only" in done.err


def test_commits(run: Any, world: World) -> None:
    world.commit_base()
    assert run("apply", "--check", "--commit").code == 0
    done = run("apply", "--commit", "--signoff", "--json")
    assert done.code == 0
    assert done.json("apply")["commits"][-1] == world.git("rev-parse", "HEAD")
    assert "Signed-off-by: Me Myself" in world.git("log", "-1", "--format=%B")
    assert len(run("revert", "--commit", "--json").json("revert")["commits"]) == 3


def test_commit_without_a_repository(run: Any) -> None:
    for options in (["--commit"], ["--commit", "--check"]):
        done = run("apply", *options, "--json")
        assert done.code == 2
        assert done.json("error")["error"]["message"] == "not a git repository"


def test_sign_off_needs_a_commit(run: Any) -> None:
    done = run("apply", "--signoff", "--json")
    assert done.code == 2
    assert "--signoff without --commit" in done.json("error")["error"]["message"]


@pytest.mark.parametrize("reverse", [False, True])
def test_diff(reverse: bool, run: Any) -> None:
    if reverse:
        run("apply")
    options = ["--reverse"] * reverse
    done = run("diff", *options)
    assert done.code == 0
    assert "-    return two" in done.out if reverse else "+    return two" in done.out
    assert run("diff", *options, "--json").json("diff")["diff"] == done.out


def test_diff_of_nothing(run: Any) -> None:
    done = run("diff", "--reverse")
    assert (done.code, done.out) == (0, "")


def test_diff_shows_what_applies_and_says_that_the_rest_does_not(
    run: Any, world: World
) -> None:
    world.write({"vllm/sub/word.py": CONFLICT})
    done = run("diff")
    assert done.code == 1
    assert "return two" in done.out
    assert "0002-word.spatch (conflict)" in done.err


def test_export(run: Any, world: World) -> None:
    done = run("export", "-o", world.folder / "mail", "--json")
    assert done.code == 0
    files = done.json("export")["files"]
    assert [Path(file).name for file in files] == [
        "0001-Core-Say-two.patch",
        "0002-Core-Say-b.patch",
        "0003-Test-Expect-b.patch",
    ]
    assert all(Path(file).is_file() for file in files)


def test_export_of_a_conflict_writes_nothing(run: Any, world: World) -> None:
    world.write({"vllm/sub/word.py": CONFLICT})
    done = run("export", "-o", world.folder / "mail", "--json")
    assert done.code == 1
    assert done.json("export")["files"] == []
    assert not (world.folder / "mail").exists()


def test_check(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    done = Run(capsys, "check", world.series, "--json")
    assert done.code == 0
    assert done.json("check") == {"problems": []}


def test_check_finds_problems(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.patch("0001-number.spatch", "+return two", "+return $two")
    done = Run(capsys, "check", world.series, "--json")
    assert done.code == 2
    (problem,) = done.json("check")["problems"]
    assert problem["where"].startswith(f"{world.series}/0001-number.spatch:")
    assert problem["hint"]


def test_recover(world: World, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = world.snapshot()
    world.write({"vllm/old.py": b"gone soon\n"})
    crash(world)
    for command in (["status"], ["apply"], ["export", "-o", "mail"], ["revert"]):
        done = run(*command, "--json")
        assert done.code == 2
        assert "vllm-graft recover" in done.json("error")["error"]["hint"]
    done = Run(capsys, "recover", world.root, "--json")
    assert done.code == 0
    restored = done.json("recover")["restored"]
    assert set(restored) == {change.path for change in changes()}
    (world.root / "vllm/old.py").unlink()
    assert world.snapshot() == before
    assert Run(capsys, "recover", world.root).out == "nothing to recover\n"


def test_while_another_run_writes(run: Any, world: World) -> None:
    with open_journal(world.tree, []):
        done = run("status")
    assert done.code == 2
    assert "another run is writing" in done.err
