from __future__ import annotations

from pathlib import Path

import pytest

from miniature import World
from vllm_graft import GitError, git


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    world.commit_base()
    return world


def test_gives_what_git_printed(world: World) -> None:
    assert git.run("log", "--format=%s", cwd=world.root) == "base"
    assert git.run_bytes("log", "--format=%s", cwd=world.root) == b"base\n"


def test_hands_over_input_and_variables(world: World) -> None:
    blob = git.run("hash-object", "--stdin", cwd=world.root, input=b"x")
    assert blob == "c1b0730e0133447badcfd47fd144e254807b06e1"
    name = git.run(
        "var", "GIT_AUTHOR_IDENT", cwd=world.root, env={"GIT_AUTHOR_NAME": "I"}
    )
    assert name.startswith("I <me@fork.example>")


@pytest.mark.parametrize(
    "args", [["-c", "a.b=c", "frob", "-x"], ["--no-pager", "frob"], ["frob"]]
)
def test_an_error_names_the_command_and_has_git_s_words(
    args: list[str], world: World
) -> None:
    with pytest.raises(GitError) as caught:
        git.run(*args, cwd=world.root)
    assert caught.value.message.startswith("git frob failed (exit 1): git: 'frob'")
    assert caught.value.where == str(world.root)


def test_succeeds(world: World) -> None:
    assert git.succeeds("rev-parse", "HEAD", cwd=world.root)
    assert not git.succeeds("rev-parse", "--verify", "-q", "nothing", cwd=world.root)


def test_without_git(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for call in (git.run, git.succeeds):
        with pytest.raises(GitError, match="git is not installed") as caught:
            call("log", cwd=world.root)
        assert caught.value.hint
    with pytest.raises(GitError, match="git is not installed"):
        git.identity(world.root)


def test_identity(world: World) -> None:
    assert git.identity(world.root) == "Me Myself <me@fork.example>"


def test_identity_of_the_environment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Someone Else")
    assert git.identity(world.root) == "Someone Else <me@fork.example>"


def test_no_identity(world: World) -> None:
    world.gitconfig.write_text("[user]\nuseConfigOnly = true\n")
    with pytest.raises(GitError, match="name and mail address"):
        git.identity(world.root)


def test_the_language_of_messages_is_english(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with pytest.raises(GitError, match="is not a git command"):
        git.run("frob", cwd=world.root)


HOSTILE = """\
[user]
name = Me Myself
email = me@fork.example
[core]
autocrlf = true
hooksPath = {hooks}
attributesFile = {attributes}
[commit]
gpgSign = true
template = /nowhere
cleanup = scissors
[diff]
noprefix = true
external = /bin/false
context = 0
algorithm = patience
[format]
subjectPrefix = FORK
attach = true
signOff = true
coverLetter = true
numbered = true
suffix = .txt
useAutoBase = true
[init]
templateDir = {hooks}
defaultObjectFormat = sha1
"""


def make_hostile(world: World) -> None:
    """Gives the user a git configuration that would change every diff."""
    hooks = world.folder / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    attributes = world.folder / "attributes"
    attributes.write_text("*.py binary\n")
    world.gitconfig.write_text(HOSTILE.format(hooks=hooks, attributes=attributes))


def test_a_scratch_repository_is_cut_off_from_the_user_s_settings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_hostile(world)
    monkeypatch.setenv("GIT_DIR", str(world.root / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    with git.scratch_repository() as (folder, env):
        settings = git.run("config", "--list", "--name-only", cwd=folder, env=env)
        top = git.run("rev-parse", "--show-toplevel", cwd=folder, env=env)
        assert Path(top) == folder.resolve()
    assert {name.split(".")[0] for name in settings.split()} <= {"core", "extensions"}
    assert not folder.exists()
