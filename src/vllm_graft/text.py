"""Small operations on source text that must not be fooled by strings."""

from __future__ import annotations

import re
from typing import Final

from vllm_graft.source import split_lines

_STRING: Final = (
    r"[rRbBuUfFtT]{0,2}(?:'''(?:\\.|[^\\])*?'''"
    r'|"""(?:\\.|[^\\])*?"""'
    r"|'(?:\\.|[^\\'\n])*'"
    r'|"(?:\\.|[^\\"\n])*")'
)
_STRING_OR_COMMENT: Final = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>#[^\r\n]*)", re.DOTALL
)


def comments(text: str) -> list[str]:
    """The comments in a piece of source, in order."""
    found = _STRING_OR_COMMENT.finditer(text)
    return [m["comment"].rstrip() for m in found if m["comment"]]


def lines_in_strings(text: str) -> set[int]:
    """The 0-based physical lines of ``text`` that begin inside a string."""
    inside: set[int] = set()
    for found in _STRING_OR_COMMENT.finditer(text):
        if found["string"] and "\n" in found["string"]:
            first = text.count("\n", 0, found.start())
            inside.update(range(first + 1, first + 1 + found["string"].count("\n")))
    return inside


def reindent(text: str, old: str, new: str) -> str:
    """Moves code from one indentation to another.

    Lines inside strings, blank lines and lines that are indented less than
    ``old`` stay as they are. The first line is taken to begin at ``old``'s end
    already where it has no indentation of its own.
    """
    fixed = lines_in_strings(text)
    out = []
    for number, line in enumerate(split_lines(text)):
        if number in fixed or not line.strip():
            out.append(line)
        elif line.startswith(old):
            out.append(new + line[len(old) :])
        else:
            out.append(line if number else new + line)
    return "".join(out)


def indentation(line: str) -> str:
    """The whitespace that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t\f"))]
