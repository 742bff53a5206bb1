from __future__ import annotations

from pathlib import Path

import pytest

from miniature import SERIES, World
from vllm_graft import PatchError, Series, load_series, series_names
from vllm_graft.catalog import patches_folder


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def error(world: World) -> PatchError:
    with pytest.raises(PatchError) as caught:
        load_series(world.series)
    assert caught.value.hint
    return caught.value


def names(series: Series) -> list[str]:
    return [item.patch.name for item in series.patches]


def test_reads_patches_in_the_listed_order(world: World) -> None:
    series = load_series(world.series)
    assert series.name == "mini"
    assert names(series) == [x for x in SERIES["series"].split("\n")[1:] if x]


def test_comments_and_blank_lines_in_the_list(world: World) -> None:
    (world.series / "series").write_text(
        "\n# all\n  0002-word.spatch  # first\n\n0001-number.spatch\n"
    )
    listed = names(load_series(world.series))
    assert listed == ["0002-word.spatch", "0001-number.spatch"]


def test_unlisted_files_are_no_part_of_it(world: World) -> None:
    (world.series / "0009-stray.spatch").write_text("not a patch")
    assert len(load_series(world.series).patches) == 3


def test_reads_the_content_of_new_files(world: World) -> None:
    *_, last = load_series(world.series).patches
    assert last.contents == {"tests/sub/test_word.py": b'"""Words."""\n'}
    assert last.adds_only


def test_paths_of_a_series(world: World) -> None:
    world.patch("0001-number.spatch", "From: ", "Requires: vllm/need.py\nFrom: ")
    paths = load_series(world.series).paths()
    assert paths == (
        "vllm/need.py",
        "vllm/number.py",
        "vllm/sub/word.py",
        "tests/sub/test_word.py",
    )


def test_shipped_series_load_by_name() -> None:
    for name in series_names():
        assert load_series(name).folder == patches_folder() / name


@pytest.mark.parametrize("form", [str, Path])
def test_a_folder_by_path(form: type, world: World) -> None:
    assert load_series(form(world.series)).folder == world.series


def test_a_plain_name_is_a_shipped_series_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = series_names()[0]
    world.series.rename(world.folder / shipped)
    monkeypatch.chdir(world.folder)
    assert load_series(shipped).folder == patches_folder() / shipped
    assert load_series(f"./{shipped}").folder == Path(shipped)
    assert load_series(Path(shipped)).folder == Path(shipped)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PatchError, match="no series 'nonsense'") as caught:
        load_series("nonsense")
    assert caught.value.hint is not None
    assert series_names()[0] in caught.value.hint


def test_a_missing_patch_file(world: World) -> None:
    (world.series / "0002-word.spatch").unlink()
    caught = error(world)
    assert caught.where == f"{world.series}/series:3"
    assert "0002-word.spatch" in caught.message


def test_a_patch_listed_twice(world: World) -> None:
    world.patch("series", "0003-test.spatch", "0001-number.spatch")
    caught = error(world)
    assert caught.where == f"{world.series}/series:4"
    assert "twice" in caught.message


@pytest.mark.parametrize("name", ["../0001-number.spatch", "sub/x.spatch", ".."])
def test_a_patch_outside_the_folder(name: str, world: World) -> None:
    world.patch("series", "0001-number.spatch", name)
    assert "not a plain file name" in error(world).message


def test_an_empty_list(world: World) -> None:
    (world.series / "series").write_text("# nothing yet\n")
    assert "lists no patch" in error(world).message


def test_missing_content_of_a_new_file(world: World) -> None:
    (world.series / "files/tests/sub/test_word.py").unlink()
    caught = error(world)
    assert caught.where == f"{world.series}/0003-test.spatch:5"
    assert "adds tests/sub/test_word.py" in caught.message


def test_missing_content_of_a_removed_file(world: World) -> None:
    world.patch(
        "0003-test.spatch",
        "--- /dev/null\n+++ b/tests/sub/test_word.py",
        "--- a/vllm/old.py\n+++ /dev/null",
    )
    assert "removes vllm/old.py" in error(world).message


@pytest.mark.parametrize("name", ["series", "0001-number.spatch"])
def test_a_file_that_is_not_utf8(name: str, world: World) -> None:
    path = world.series / name
    path.write_bytes(path.read_bytes() + b"# \xe9\n")
    caught = error(world)
    assert "not UTF-8: byte 0xe9" in caught.message
    assert caught.where == f"{path}:{path.read_bytes().count(bytes([10]))}"


def test_a_file_that_cannot_be_read(world: World) -> None:
    path = world.series / "files/tests/sub/test_word.py"
    path.unlink()
    path.symlink_to(path.name)
    assert "content is missing" in error(world).message
