from __future__ import annotations

from pathlib import Path

import pytest

from miniature import World, write_files
from vllm_graft.lint import Problem, lint


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def only(world: World) -> Problem:
    """The one problem of the series."""
    (problem,) = lint([str(world.series)])
    assert problem.hint
    return problem


def test_nothing_wrong(world: World) -> None:
    assert lint([str(world.series)]) == []


def test_the_shipped_series() -> None:
    assert lint([]) == []
    assert lint(["mrv2-async-output"]) == []


def test_a_single_file(world: World) -> None:
    world.patch("0001-number.spatch", "+return two", "+return $two")
    (problem,) = lint([str(world.series / "0001-number.spatch")])
    assert "$two" in problem.message


FAULTS = {
    "unknown metavariable": ("+return two", "+return $two", 12, "$two"),
    "no Python": ("-return one", "-return one(", 11, ""),
    "unknown option": ("@@ number", "@@ number @@ frob", 10, "frob"),
    "absolute path": ("number.py", "/etc/x.py", 7, "path"),
    "path with dots": ("vllm/number.py", "../number.py", 7, "unsafe path"),
    "no separator": ("---\n--- a", "--- a", 0, "---"),
    "unknown field": ("From:", "Form:", 2, "not a header field"),
    "bad author": ("<one@fork.example>", "", 2, "not an author"),
    "long subject": ("Say two", "Say two " * 9, 1, "the subject has 79 characters"),
    "no post-condition": ("ensure number has no one\n", "", 7, "no post-condition"),
    "no change": ("-return one\n+return two", " return one", 0, "changes nothing"),
}


@pytest.mark.parametrize(("old", "new", "line", "said"), FAULTS.values(), ids=FAULTS)
def test_faults(old: str, new: str, line: int, said: str, world: World) -> None:
    path = world.series / "0001-number.spatch"
    path.write_text(path.read_text().replace(old, new))
    problem = only(world)
    assert said in problem.message
    place = problem.where.removeprefix(f"{path}:")
    assert place != problem.where
    if line:
        assert place.split(":")[0] == str(line)


def test_all_problems_are_reported(world: World) -> None:
    for name in ("0001-number.spatch", "0002-word.spatch"):
        world.patch(name, "+return ", "+return $x + ")
    world.patch("0003-test.spatch", "Subject:", "Sub:")
    assert len(lint([str(world.series)])) == 3


def test_a_file_that_two_sections_change(world: World) -> None:
    path = world.series / "0001-number.spatch"
    text = path.read_text()
    path.write_text(text + text[text.index("--- a/") :])
    assert "a second time" in only(world).message


def test_a_stray_patch(world: World) -> None:
    write_files(world.series, {"0009-stray.spatch": b""})
    problem = only(world)
    assert problem.where.endswith("0009-stray.spatch")
    assert "not listed" in problem.message


def test_stray_content(world: World) -> None:
    write_files(
        world.series,
        {"files/tests/stray.py": b"", "files/tests/__pycache__/x.pyc": b""},
    )
    problem = only(world)
    assert problem.where.endswith("files/tests/stray.py")
    assert "+++ b/tests/stray.py" in problem.hint


def test_missing_content(world: World) -> None:
    (world.series / "files/tests/sub/test_word.py").unlink()
    assert "content is missing" in only(world).message


def test_a_hunk_that_cannot_be_reversed(world: World) -> None:
    world.patch("0001-number.spatch", "-return one", "-return $x")
    problem = only(world)
    assert problem.message.startswith("cannot be reversed")
    assert problem.where == f"{world.series / '0001-number.spatch'}:10"


def test_not_utf8(world: World) -> None:
    path = world.series / "0001-number.spatch"
    path.write_bytes(b"Subject: \xe9\n")
    assert only(world).where == f"{path}:1"


def test_carriage_returns(world: World) -> None:
    path = world.series / "0001-number.spatch"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "carriage return" in only(world).message


def test_no_such_series() -> None:
    (problem,) = lint(["frob"])
    assert (problem.where, problem.message) == ("frob", "no series 'frob'")


def test_several_paths(world: World) -> None:
    assert len(lint(["frob", str(world.series), "frab"])) == 2
