from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from miniature import AFTER, BEFORE, World
from test_git import make_hostile
from vllm_graft import GitError, TreeError, apply, plan, revert
from vllm_graft.export import diff, export, forward_plan, notes

PATH = "vllm/sub/word.py"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def mail(world: World, *, signoff: bool = False) -> list[Path]:
    planned = forward_plan(world.tree, world.loaded)
    assert planned.ok
    return export(world.tree, planned, world.folder / "mail", signoff=signoff)


def tree_id(world: World) -> str:
    return world.git("rev-parse", "HEAD^{tree}")


def assert_same_tree(world: World) -> None:
    """Mail made from the tree gives, on its base, what committing gives."""
    base = world.commit_base()
    files = mail(world)
    apply(world.tree, world.loaded, commit=True)
    expected = tree_id(world)
    from_applied = [path.read_bytes() for path in mail(world)]

    world.git("reset", "-q", "--hard", base)
    world.git("am", "-q", *map(str, files))
    assert tree_id(world) == expected
    assert world.git("status", "--porcelain") == ""

    assert [without_date(x) for x in from_applied] == [
        without_date(path.read_bytes()) for path in files
    ]


def without_date(text: bytes) -> bytes:
    return b"\n".join(x for x in text.split(b"\n") if not x.startswith(b"Date: "))


def test_the_plain_tree(world: World) -> None:
    assert_same_tree(world)


LAYOUTS = {
    "windows": b'class Word:\r\n    def say(self):\r\n        return "a"\r\n',
    "mixed": b'class Word:\r\n    def say(self):\n        return "a"\r\n',
    "mac": b'class Word:\r    def say(self):\r        return "a"\r',
    "no end": b'class Word:\n    def say(self):\n        return "a"',
    "no end in windows": b'class Word:\r\n    def say(self):\r\n        return "a"',
    "byte order mark": b"\xef\xbb\xbf" + BEFORE[PATH],
    "latin-1": b"# coding: latin-1\nX = '\xe9'\n" + BEFORE[PATH],
    "latin-1 near by": b"# coding: latin-1\n"
    + BEFORE[PATH].replace(b"):\n", b"):  # \xe9\n"),
    "form feed": b"\x0c\n" + BEFORE[PATH],
    "tabs": b'class Word:\n\tdef say(self):\n\t\treturn "a"\n',
    "mail in a string": b'X = """\nFrom me to you\n---\n>8\n"""\n' + BEFORE[PATH],
    "long line": b"X = '" + b"=" * 2000 + b"'\r\n" + BEFORE[PATH],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(layout: bytes, world: World) -> None:
    world.write({PATH: layout})
    assert_same_tree(world)


def test_an_executable_file(world: World) -> None:
    (world.root / PATH).chmod(0o755)
    assert_same_tree(world)
    assert world.git("ls-files", "-s", PATH).startswith("100755")


def test_a_link_in_the_tree(world: World) -> None:
    (world.root / PATH).rename(world.root / "vllm/real.py")
    (world.root / PATH).symlink_to("../real.py")
    assert_same_tree(world)


def test_a_file_that_goes(world: World) -> None:
    pair = "--- /dev/null\n+++ b/tests/sub/test_word.py"
    world.patch("0003-test.spatch", pair, "--- a/vllm/old.py\n+++ /dev/null")
    for root in (world.root, world.series / "files"):
        (root / "vllm").mkdir(parents=True, exist_ok=True)
        (root / "vllm/old.py").write_bytes(b"old\n")
    assert_same_tree(world)


def test_an_empty_new_file(world: World) -> None:
    (world.series / "files/tests/sub/test_word.py").write_bytes(b"")
    assert_same_tree(world)


def test_the_user_s_settings_change_nothing(world: World) -> None:
    plain = [without_date(path.read_bytes()) for path in mail(world)]
    make_hostile(world)
    assert [without_date(path.read_bytes()) for path in mail(world)] == plain


def test_the_tree_stays(world: World) -> None:
    world.commit_base()
    before = (world.snapshot(), world.git("status"))
    mail(world)
    diff(world.tree, plan(world.tree, world.loaded))
    assert (world.snapshot(), world.git("status")) == before


def test_the_subject_and_author_outlive_the_mail(world: World) -> None:
    world.commit_base()
    files = mail(world)
    world.git("am", "-q", "--keep-non-patch", *map(str, files))
    assert world.git("log", "-3", "--format=%an: %s").split("\n") == [
        "Me Myself: [Test] Expect b",
        "Me Myself: [Core] Say b",
        "Some One: [Core] Say two",
    ]
    body = world.git("log", "-1", "--format=%b", "HEAD~2")
    assert body == "Because one is the loneliest number.\n# two is not"


def test_signs_off(world: World) -> None:
    for path in mail(world, signoff=True):
        text = path.read_text()
        assert "\nSigned-off-by: Me Myself <me@fork.example>\n" in text


def test_blob_ids_are_the_tree_s_own(world: World) -> None:
    world.commit_base()
    blob = world.git("rev-parse", "HEAD:vllm/number.py")
    assert f"index {blob}.." in mail(world)[0].read_text()


def test_the_rest_of_a_partly_applied_series(world: World) -> None:
    world.write({"vllm/number.py": AFTER["vllm/number.py"]})
    assert [path.name for path in mail(world)] == [
        "0001-Core-Say-b.patch",
        "0002-Test-Expect-b.patch",
    ]


def test_an_installed_package(world: World) -> None:
    shutil.rmtree(world.root / "tests")
    assert len(mail(world)) == 2


def test_says_when_the_base_is_guessed(world: World) -> None:
    apply(world.tree, world.loaded)
    shutil.rmtree(world.folder / "cache")
    planned = forward_plan(world.tree, world.loaded)
    out = world.folder / "mail"
    (note, *_) = notes(planned, out, export(world.tree, planned, out))
    assert note.startswith("0001-number.spatch: the tree has it already")


def test_says_nothing_when_the_base_is_known(world: World) -> None:
    apply(world.tree, world.loaded)
    planned = forward_plan(world.tree, world.loaded)
    out = world.folder / "mail"
    assert notes(planned, out, export(world.tree, planned, out)) == []


def test_other_files_in_the_folder_stay_and_are_mentioned(world: World) -> None:
    out = world.folder / "mail"
    out.mkdir()
    (out / "0009-old.patch").write_text("old")
    (out / "README").write_text("mine")
    planned = forward_plan(world.tree, world.loaded)
    files = export(world.tree, planned, out)
    assert notes(planned, out, files) == [
        f"{out} holds other mail, too: 0009-old.patch"
    ]
    assert (out / "README").read_text() == "mine"


def test_exporting_again_replaces_the_mail(world: World) -> None:
    assert mail(world) == mail(world)
    assert len(list((world.folder / "mail").iterdir())) == 3


@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_folder_that_cannot_be_made(place: str, world: World) -> None:
    (world.folder / "mail").write_text("")
    out = world.folder / ("mail" if place == "a file" else "mail/x")
    with pytest.raises(TreeError, match="cannot be written") as caught:
        export(world.tree, forward_plan(world.tree, world.loaded), out)
    assert caught.value.hint == "name another folder with -o"


def test_a_mail_that_cannot_be_written_takes_the_others_with_it(world: World) -> None:
    out = world.folder / "mail"
    (out / "0002-Core-Say-b.patch").mkdir(parents=True)
    with pytest.raises(TreeError, match="cannot be written"):
        mail(world)
    assert [path.name for path in out.iterdir()] == ["0002-Core-Say-b.patch"]


def test_no_identity(world: World) -> None:
    world.gitconfig.write_text("[user]\nuseConfigOnly = true\n")
    with pytest.raises(GitError, match="name and mail address"):
        mail(world)
    assert not (world.folder / "mail").exists()


def test_no_git(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="git is not installed"):
        mail(world)


def test_diff_is_what_git_applies(world: World) -> None:
    world.commit_base()
    patch = world.folder / "all.diff"
    patch.write_bytes(diff(world.tree, plan(world.tree, world.loaded)))
    world.git("apply", str(patch))
    assert world.files() == AFTER


def test_diff_of_the_way_back(world: World) -> None:
    world.commit_base()
    apply(world.tree, world.loaded)
    patch = world.folder / "all.diff"
    patch.write_bytes(diff(world.tree, plan(world.tree, world.loaded, reverse=True)))
    world.git("apply", str(patch))
    assert world.files() == BEFORE


def test_revert_after_am(world: World) -> None:
    world.commit_base()
    world.git("am", "-q", *map(str, mail(world)))
    revert(world.tree, world.loaded)
    assert world.files()[PATH] == BEFORE[PATH]
