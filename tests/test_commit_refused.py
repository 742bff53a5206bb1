from __future__ import annotations

from pathlib import Path

import pytest

from commits import commit, sign
from miniature import BEFORE, World
from vllm_graft import (
    GitError,
    GraftError,
    check,
    write,
)
from vllm_graft import plan as make_plan


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    world.commit_base()
    return world


def state(world: World) -> tuple[object, ...]:
    """Files, HEAD, index and the rest that git sees."""
    head = (world.git("rev-parse", "HEAD"), world.git("symbolic-ref", "HEAD"))
    return world.snapshot(), head, world.git("ls-files", "-s"), world.git("status")


def refused(world: World, error: type[GraftError] = GitError) -> GraftError:
    """The error of a commit that changes nothing."""
    before = state(world)
    with pytest.raises(error) as caught:
        commit(world)
    assert state(world) == before
    return caught.value


def refused_beforehand(world: World) -> GraftError:
    """The error of a commit, which a check foretells."""
    caught = refused(world)
    assert caught.hint
    with pytest.raises(GitError, match=caught.message.split(":")[0]):
        check(world.tree, make_plan(world.tree, world.loaded), commit=True)
    return caught


def test_a_signing_program_that_refuses(world: World) -> None:
    sign(world, "echo no key >&2; exit 1")
    assert "git commit failed" in refused(world).message


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    with pytest.raises(GitError, match="not a git repository"):
        commit(world)
    assert world.files() == BEFORE


def test_no_commit_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    world.git("init", "-q")
    with pytest.raises(GitError, match="no commit yet"):
        commit(world)
    assert world.files() == BEFORE


def test_no_git(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="git is not installed"):
        commit(world)
    assert world.files() == BEFORE


def test_no_identity(world: World) -> None:
    world.gitconfig.write_text("[user]\nuseConfigOnly = true\n")
    caught = refused_beforehand(world)
    assert "your name and mail address" in caught.message
    assert "user.email" in str(caught.hint)


def test_a_dirty_index(world: World) -> None:
    world.write({"vllm/_version.py": b"mine\n"})
    world.git("add", "-A")
    assert "the index holds changes already: vllm/_version.py" in (
        refused_beforehand(world).message
    )


def test_a_dirty_target(world: World) -> None:
    world.write({"vllm/number.py": BEFORE["vllm/number.py"] + b"# mine\n"})
    assert "in files to patch: vllm/number.py" in refused_beforehand(world).message


@pytest.mark.parametrize("ignored", [False, True])
def test_a_target_that_git_does_not_know(ignored: bool, world: World) -> None:
    world.git("rm", "-q", "--cached", "vllm/number.py")
    world.write({".gitignore": b"number.py\n" * ignored})
    world.git("add", ".gitignore")
    world.git("commit", "-qm", "unknown")
    assert "vllm/number.py" in refused_beforehand(world).message


def test_an_untracked_file_in_the_way(world: World) -> None:
    world.write({"tests/sub/test_word.py": b"mine\n"})
    caught = refused(world, GraftError)
    assert "0003-test.spatch (conflict)" in caught.message


def test_a_merge_that_is_not_finished(world: World) -> None:
    world.git("checkout", "-q", "-b", "other")
    world.git("commit", "-q", "--allow-empty", "-m", "other")
    world.git("checkout", "-q", "main")
    world.git("merge", "-q", "--no-ff", "--no-commit", "other")
    assert "a merge is not finished" in refused_beforehand(world).message


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_hook_that_refuses_undoes_everything(
    hook: str, at: int, world: World
) -> None:
    counter = world.folder / "count"
    script = f"echo >> {counter}; [ $(wc -l < {counter}) -lt {at} ] || exit 1"
    world.hook(hook, f"{script} || {{ echo no way >&2; exit 1; }}")
    caught = refused(world)
    assert "git commit failed" in caught.message
    assert len(counter.read_text()) == at


def test_the_words_of_a_hook_are_shown(world: World) -> None:
    world.hook("pre-commit", "echo too many twos >&2; exit 1")
    assert "too many twos" in refused(world).message


EDITS = {
    "left in the tree": "echo '# x' >> vllm/sub/word.py",
    "added": "echo '# x' >> vllm/sub/word.py; git add vllm/sub/word.py",
    "committed only": "echo '# x' > x; "
    "git update-index --cacheinfo 100644,$(git hash-object -w x),vllm/sub/word.py; "
    "rm x",
}


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_hook_that_edits_what_the_patch_wrote_undoes_everything(
    hook: str, edit: str, world: World
) -> None:
    world.hook(hook, f"grep -q '\"b\"' vllm/sub/word.py || exit 0\n{edit}")
    caught = refused(world)
    assert "a git hook changed what the patch wrote: vllm/sub/word.py" in caught.message


def test_an_interrupt_undoes_everything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = write.write_changes
    calls: list[object] = []

    def write_changes(*args: object) -> None:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(write, "write_changes", write_changes)
    before = state(world)
    with pytest.raises(KeyboardInterrupt):
        commit(world)
    assert state(world) == before
