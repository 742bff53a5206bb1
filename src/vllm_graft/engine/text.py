"""Small operations on source text that must not be fooled by strings.

They also work on pieces of source (one statement, a header without its body) and on
patterns with ``$name``, which :mod:`tokenize` does not take, and on f-strings as of
Python 3.12, whose replacement fields may hold any quotes and comments.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

from vllm_graft.engine.source import NEWLINE, split_lines

_STOP: Final = re.compile(
    r"(?P<comment>#[^\r\n]*)"
    r"|(?P<prefix>\b[rRbBuUfFtT]{1,2})?(?P<quote>'''|\"\"\"|'|\")"
    r"|[()\[\]{}:]"
)
_REST: Final = {
    quote: re.compile(
        rf"(?:\\(?:\r\n|.)|[^\\{stop}])*?{quote}",
        re.DOTALL,
    )
    for quote, stop in (("'''", ""), ('"""', ""), ("'", r"\r\n"), ('"', r"\r\n"))
}
_FORMATTED: Final = {
    quote: re.compile(rf"\\N\{{[^}}]*\}}|\\[^{{]|\{{\{{|{quote}|\{{", re.DOTALL)
    for quote in _REST
}
_BRACE: Final = re.compile(r"[{}]")


class _Scanner:
    """Finds what is not code: comments, strings, the literal parts of f-strings."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.comments: list[tuple[int, int]] = []
        self.literals: list[tuple[int, int]] = []
        while self.at < len(text):
            self._code(field=False)

    def _code(self, *, field: bool) -> str:
        """Passes code; within a replacement field stops at its ``:`` or ``}``."""
        depth = 0
        while found := _STOP.search(self.text, self.at):
            self.at = found.end()
            mark = found.group()
            if found["comment"]:
                self.comments.append(found.span())
            elif found["quote"]:
                self._string(found)
            elif mark in "([{":
                depth += 1
            elif depth and mark in ")]}":
                depth -= 1
            elif field and not depth and mark in ":}":
                return mark
        self.at = len(self.text)
        return ""

    def _string(self, found: re.Match[str]) -> None:
        quote = found["quote"]
        if set(found["prefix"] or "") & set("fFtT"):
            self._formatted(found.start(), quote)
            return
        rest = _REST[quote].match(self.text, self.at)
        if rest:  # else this is no whole piece of source
            self.at = rest.end()
            self.literals.append((found.start(), self.at))

    def _formatted(self, start: int, quote: str) -> None:
        while found := _FORMATTED[quote].search(self.text, self.at):
            self.at = found.end()
            if found.group() not in (quote, "{"):
                continue
            self.literals.append((start, self.at))
            if found.group() == quote:
                return
            self._field()
            start = self.at - 1
        self.at = len(self.text)

    def _field(self) -> None:
        if self._code(field=True) != ":":
            return
        start = self.at - 1
        while found := _BRACE.search(self.text, self.at):
            self.at = found.end()
            self.literals.append((start, self.at))
            if found.group() == "}":
                return
            self._field()
            start = self.at - 1


def comments(text: str) -> list[str]:
    """The comments in a piece of source, in order."""
    return [text[a:b].rstrip() for a, b in _Scanner(text).comments]


def masked(text: str) -> str:
    """``text`` with strings and comments blanked out, offsets unchanged.

    The code in an f-string's replacement fields stays.
    """
    scanner = _Scanner(text)
    out: list[str] = []
    at = 0
    for start, stop in sorted(scanner.comments + scanner.literals):
        out += [text[at:start], " " * (stop - max(at, start))]  # braces count twice
        at = stop
    return "".join([*out, text[at:]])


def lines_in_strings(text: str) -> set[int]:
    """The 0-based physical lines of ``text`` that begin inside a string."""
    ends = [found.end() for found in NEWLINE.finditer(text)]
    inside: set[int] = set()
    for start, stop in _Scanner(text).literals:
        inside.update(range(bisect_left(ends, start + 1), bisect_left(ends, stop)))
    return {number + 1 for number in inside}


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


def code_lines(text: str) -> list[str]:
    """The lines of code in a text, without comments and outer whitespace."""
    out = []
    at = 0
    for start, stop in _Scanner(text).comments:
        out.append(text[at:start])
        at = stop
    lines = split_lines("".join([*out, text[at:]]))
    return [line.strip() for line in lines if line.strip()]
