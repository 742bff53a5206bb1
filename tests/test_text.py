"""What is code, what is a comment and what is a string, in any piece of source."""

import pytest

from vllm_graft.engine.text import (
    code_lines,
    comments,
    lines_in_strings,
    masked,
    reindent,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 1  # one", ["# one"]),
        ("a = '# no' # yes", ["# yes"]),
        ("a = 'it\\'s # no' # yes", ["# yes"]),
        ("a = r'\\' # no' # yes", ["# yes"]),
        ("a = '''x' # no\n'y # no''' # yes", ["# yes"]),
        ("f'{x} # no {y}' # yes", ["# yes"]),
        ("f'{{# no}}' # yes", ["# yes"]),
        ("f'{x:#>{y}}' # yes", ["# yes"]),
        ("f'{x!r:\"#}' # yes", ["# yes"]),
        ("rf'\\{x}#' # yes", ["# yes"]),
        ("f'\\N{NUMBER SIGN}#' # yes", ["# yes"]),
        # As of Python 3.12:
        ('f"{d["#"]}" # yes', ["# yes"]),
        ('f"{f"{f"{1}#"}#"}#" # yes', ["# yes"]),
        ('f"""{\n  x  # in the field\n}""" # yes', ["# in the field", "# yes"]),
        ('f"{(lambda: "#")()}" # yes', ["# yes"]),
        # Pieces:
        ("else:  # why", ["# why"]),
        ("print($x, '$y')  # $z", ["# $z"]),
        ("it's no source", []),
    ],
)
def test_comments(text: str, wanted: list[str]) -> None:
    assert comments(text) == wanted


def test_masking_keeps_offsets_and_the_code_of_fields() -> None:
    text = "a('$x', f'{$y:>{$z}} {{$w}}')  # $v"
    hidden = masked(text)
    assert len(hidden) == len(text)
    assert [name for name in "vwxyz" if f"${name}" in hidden] == ["y", "z"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_in_strings(newline: str) -> None:
    text = newline.join(["a = '''x", "y", "'''", "b = 1", "c = 'd \\", "e'"])
    assert lines_in_strings(text) == {1, 2, 5}


def test_reindent_leaves_strings_and_shallow_lines() -> None:
    text = "  a = '''x\n  y'''\n    b(\n c)\n\n"
    wanted = "\ta = '''x\n  y'''\n\t  b(\n c)\n\n"
    assert reindent(text, "  ", "\t") == wanted


def test_code_lines() -> None:
    assert code_lines("# x\n  a(  # one\n    '#',\n )\n\n") == ["a(", "'#',", ")"]
