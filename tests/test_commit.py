from __future__ import annotations

from pathlib import Path

import pytest

from commits import SUBJECTS, commit, log, sign
from miniature import AFTER, BEFORE, World, write_files
from vllm_graft import (
    DirTree,
    apply,
    load_series,
    revert,
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    world.commit_base()
    return world


def test_one_commit_a_patch(world: World) -> None:
    commits = commit(world)
    assert log(world, "%s") == SUBJECTS
    assert log(world, "%H") == list(commits)
    assert world.files() == AFTER
    assert world.git("status", "--porcelain") == ""


def test_every_commit_holds_its_own_files(world: World) -> None:
    commit(world)
    names = world.git("log", "--reverse", "-3", "--format=", "--name-only").split()
    assert names == ["vllm/number.py", "vllm/sub/word.py", "tests/sub/test_word.py"]


@pytest.mark.parametrize("cleanup", ["default", "strip", "scissors", "verbatim"])
def test_the_message_is_the_patch_s(cleanup: str, world: World) -> None:
    world.git("config", "commit.cleanup", cleanup)
    commit(world)
    body = world.git("log", "-1", "--format=%B", "HEAD~2")
    assert body == (
        "[Core] Say two\n\nBecause one is the loneliest number.\n# two is not"
    )


def test_a_message_in_another_encoding(world: World) -> None:
    world.git("config", "i18n.commitEncoding", "latin-1")
    world.patch("0001-number.spatch", "Because one", "Because öne")
    commit(world)
    assert "Because öne" in world.git(
        "log", "-1", "--encoding=UTF-8", "--format=%B", "HEAD~2"
    )


def test_the_author_and_date_are_the_patch_s(world: World) -> None:
    world.patch("0001-number.spatch", "From:", "Date: 2020-01-02T03:04:05Z\nFrom:")
    commit(world)
    assert log(world, "%an <%ae>") == [
        "Some One <one@fork.example>",
        *["Me Myself <me@fork.example>"] * 2,
    ]
    assert log(world, "%cn")[0] == "Me Myself"
    assert log(world, "%as")[0] == "2020-01-02"


def test_signs_off_with_the_committer_s_name(world: World) -> None:
    commit(world, signoff=True)
    trailers = log(world, "%(trailers:key=Signed-off-by,valueonly,separator=;)")
    assert trailers == ["Me Myself <me@fork.example>"] * 3


def test_nothing_to_do_makes_no_commit(world: World) -> None:
    commit(world)
    head = world.git("rev-parse", "HEAD")
    assert commit(world) == ()
    assert world.git("rev-parse", "HEAD") == head


def test_reverts_as_commits(world: World) -> None:
    commit(world)
    outcome = revert(world.tree, world.loaded, commit=True, signoff=True)
    assert world.files() == BEFORE
    subjects = [f'Revert "{subject}"' for subject in reversed(SUBJECTS)]
    assert log(world, "%s") == subjects
    assert log(world, "%H") == list(outcome.commits)
    assert world.git("diff", "HEAD~6", "HEAD") == ""


def test_several_series(world: World) -> None:
    again = world.folder / "again"
    text = (world.series / "0001-number.spatch").read_text()
    text = text.replace("two", "three").replace("return one", "return two")
    text = text.replace("no one", "no two")
    write_files(again, {"series": b"0001.spatch\n", "0001.spatch": text.encode()})
    apply(world.tree, [*world.loaded, load_series(again)], commit=True)
    assert log(world, "%s", new=4) == [*SUBJECTS, "[Core] Say three"]


def test_on_a_detached_head(world: World) -> None:
    world.git("checkout", "-q", "--detach")
    commit(world)
    assert log(world, "%s") == SUBJECTS


def test_in_a_worktree(world: World) -> None:
    world.git("worktree", "add", "-q", "-b", "other", str(world.folder / "other"))
    apply(DirTree(world.folder / "other"), world.loaded, commit=True)
    subjects = world.git("log", "--reverse", "-3", "--format=%s", "other").split("\n")
    assert subjects == SUBJECTS
    assert world.files() == BEFORE


def test_in_a_folder_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    world.git("init", "-q", cwd=tmp_path)
    world.git("add", "tree", cwd=tmp_path)
    world.git("commit", "-qm", "base", cwd=tmp_path)
    write_files(tmp_path, {"tree2/x.py": b"dirty\n"})
    commit(world)
    assert log(world, "%s") == SUBJECTS
    assert world.git("ls-files", "tests/sub") == "tests/sub/test_word.py"


def test_a_dirty_file_elsewhere_stays_dirty(world: World) -> None:
    world.write({"vllm/_version.py": b"mine\n", "new.py": b"mine\n"})
    commit(world)
    assert log(world, "%s") == SUBJECTS
    status = world.git("status", "--porcelain").split("\n")
    assert status == ["M vllm/_version.py", "?? new.py"]


@pytest.mark.parametrize("native", ["true", "input"])
def test_line_endings_that_git_converts(native: str, world: World) -> None:
    path = "vllm/sub/word.py"
    crlf = BEFORE[path].replace(b"\n", b"\r\n")
    world.git("config", "core.autocrlf", native)
    world.write({path: crlf})
    world.git("add", path)  # to refresh the index; nothing is staged
    commit(world)
    assert world.files()[path] == AFTER[path].replace(b"\n", b"\r\n")
    assert world.git("status", "--porcelain") == ""


def test_a_link_in_the_tree_commits_its_target(world: World) -> None:
    world.git("mv", "vllm/number.py", "vllm/real.py")
    (world.root / "vllm/number.py").symlink_to("real.py")
    world.git("add", "vllm/number.py")
    world.git("commit", "-qm", "link")
    commit(world)
    names = world.git("log", "-1", "--format=", "--name-only", "HEAD~2").split()
    assert names == ["vllm/real.py"]


def test_a_signing_program(world: World) -> None:
    sign(world, "cat >/dev/null; echo signature; echo '[GNUPG:] SIG_CREATED ' >&2")
    commit(world)
    assert "signature" in world.git("cat-file", "commit", "HEAD")


def test_a_hook_may_do_other_things(world: World) -> None:
    world.hook("pre-commit", "echo log >> CHANGES; git add CHANGES")
    commit(world)
    assert log(world, "%s") == SUBJECTS
    assert world.git("status", "--porcelain") == ""


def test_inside_another_repository_s_hook(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = world.folder / "other"
    other.mkdir()
    world.git("init", "-q", cwd=other)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(other / ".git"))
    commits = commit(world)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert log(world, "%H") == list(commits)
