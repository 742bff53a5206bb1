"""Reads semantic patch files; every complaint has a line and a hint."""

from __future__ import annotations

import re
from posixpath import normpath
from typing import Final, Literal, cast

from vllm_graft.engine.patchfile import (
    DEV_NULL,
    Alternative,
    Condition,
    FilePatch,
    Hunk,
    Kind,
    Line,
    Patch,
    Where,
)
from vllm_graft.engine.reader import Reader
from vllm_graft.errors import PatchError

HEADERS: Final = ("Subject", "From", "Date", "Requires")
MODULE: Final = "<module>"
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*): (.*)")
_CONDITION = re.compile(r"(ensure|when) (\S+) has( no)?(?: (.*))?")
_WHERE = re.compile(r"where \$([A-Za-z]\w*) in (.+)")
_COUNT = re.compile(r"count=([0-9]{1,6})(\.\.([0-9]{0,6}))?")
_SCOPE = re.compile(r"<module>|[\w*?\[\]!]+(\.[\w*?\[\]!]+)*")


def parse_patch(path: str, text: str) -> Patch:
    r"""Reads one semantic patch.

    Args:
        path: The file's name, for messages.
        text: Its content, with ``\n`` line endings.

    Raises:
        PatchError: It is malformed; says where and what to do.
    """
    if "\r" in text:
        number = text[: text.index("\r")].count("\n") + 1
        raise PatchError(
            "carriage return in a patch file",
            where=f"{path}:{number}",
            hint="save the patch with \\n line endings; those of the target are kept",
        )
    reader = Reader(path, text)
    headers = _headers(reader)
    body = _body(reader)
    files: list[FilePatch] = []
    while reader.line is not None:
        files.append(_file(reader))
    if not files:
        reader.fail("no file to patch", "add a --- a/PATH, +++ b/PATH pair below ---")
    return Patch(path, headers, body, tuple(files), reader.tail)


def _headers(reader: Reader) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    while reader.line:
        found = _HEADER.fullmatch(reader.line)
        if not found or found[1] not in HEADERS:
            reader.fail(
                f"not a header field: {reader.line!r}",
                f"begin with {', '.join(f'{name}:' for name in HEADERS)}"
                " and an empty line",
            )
        headers.append((found[1], found[2]))
        reader.take()
    names = [name for name, _ in headers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        reader.fail(f"{twice} is given twice", "keep one of them", 1)
    if not dict(headers).get("Subject", "").strip():
        reader.fail("no Subject", "begin the file with 'Subject: …'", 1)
    return tuple(headers)


def _body(reader: Reader) -> str:
    if reader.line is None:
        reader.fail("the patch ends after its header", "add a message and ---")
    reader.take()
    body: list[str] = []
    while reader.line is not None and reader.line != "---":
        body.append(reader.take())
    if reader.line is None:
        reader.fail("no --- line after the message", "end the message with a line ---")
    reader.take()
    return "".join(f"{line}\n" for line in body)


def _file(reader: Reader) -> FilePatch:
    number = reader.number
    old = _path(reader, "--- ", "a/")
    new = _path(reader, "+++ ", "b/")
    if old is None and new is None:
        reader.fail("both sides are /dev/null", "name the file on one side", number)
    if old and new and old != new:
        reader.fail("renames a file", "a semantic patch keeps a file's path", number)
    remarks: list[str] = []
    while reader.line is not None and reader.line.startswith("#"):
        remarks.append(reader.take())
    conditions = _conditions(reader, "ensure")
    hunks: list[Hunk] = []
    while reader.line is not None and reader.line.startswith("@@"):
        hunks.append(_hunk(reader))
    if old and new and not hunks:
        reader.fail("no hunk for this file", "add a '@@ SCOPE' hunk", number)
    if hunks and not (old and new):
        reader.fail(
            "hunks in a file that is new or goes",
            "leave the hunks out; the content stands in the series' files folder",
            number,
        )
    if reader.line is not None and not reader.line.startswith("--- "):
        reader.fail(
            f"unexpected line: {reader.line!r}",
            "begin a hunk's lines with a space, -, + or #",
        )
    return FilePatch(old, new, conditions, tuple(hunks), number, tuple(remarks))


def _path(reader: Reader, marker: str, prefix: str) -> str | None:
    line = reader.line
    if line is None or not line.startswith(marker):
        reader.fail(f"expected '{marker}{prefix}PATH'", "give each file a --- and +++")
    path = line[len(marker) :]
    if path == DEV_NULL:
        reader.take()
        return None
    if not path.startswith(prefix):
        reader.fail(f"path does not begin with {prefix}", f"write {marker}{prefix}PATH")
    path = path[len(prefix) :]
    outside = path.startswith("/") or ".." in path.split("/")
    if outside or normpath(path) != path or path == ".":
        reader.fail(
            f"unsafe path: {path!r}",
            "give the plain path relative to the tree's root, without .. or //",
        )
    reader.take()
    return path


def _conditions(
    reader: Reader, keyword: Literal["ensure", "when"]
) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    while reader.line is not None and reader.line.startswith(keyword):
        number = reader.number
        found = _CONDITION.fullmatch(reader.line)
        if not found or not _SCOPE.fullmatch(found[2]):
            reader.fail(
                f"cannot read this condition: {reader.line!r}",
                f"write '{keyword} SCOPE has PATTERN' or '… has no PATTERN'",
            )
        reader.take()
        inline = bool(found[4])
        wheres = () if inline else _wheres(reader)
        if inline:
            lines = (Line(" ", found[4], number), *_remarks(reader))
        else:
            lines = _block(reader)
        others: list[tuple[Line, ...]] = []
        while reader.line == "or" and not inline:
            reader.take()
            others.append(_block(reader))
        conditions.append(
            Condition(
                keyword,
                found[2],
                bool(found[3]),
                lines,
                number,
                inline,
                tuple(others),
                wheres,
            )
        )
    return tuple(conditions)


def _block(reader: Reader) -> tuple[Line, ...]:
    lines: list[Line] = []
    while reader.line is not None and reader.line.startswith((" ", "#")):
        kind = cast("Kind", reader.line[0])
        lines.append(Line(kind, reader.line[1:], reader.number))
        reader.take()
    if all(line.kind == "#" for line in lines):
        reader.fail(
            "a condition without a pattern",
            "write it behind 'has', or on the next lines, each after a space",
        )
    return tuple(lines)


def _remarks(reader: Reader) -> list[Line]:
    lines: list[Line] = []
    while reader.line is not None and reader.line.startswith("#"):
        lines.append(Line("#", reader.line[1:], reader.number))
        reader.take()
    return lines


def _wheres(reader: Reader) -> tuple[Where, ...]:
    wheres: list[Where] = []
    while reader.line is not None and reader.line.startswith("where "):
        found = _WHERE.fullmatch(reader.line)
        if not found:
            reader.fail(
                f"cannot read this constraint: {reader.line!r}",
                "write 'where $NAME in EXPRESSION, EXPRESSION'",
            )
        wheres.append(Where(found[1], found[2], reader.number))
        reader.take()
    return tuple(wheres)


def _hunk(reader: Reader) -> Hunk:
    number = reader.number
    header = reader.take()
    scopes, least, most, optional = _hunk_header(reader, header, number)
    wheres = _wheres(reader)
    conditions = _conditions(reader, "when")
    alternatives = [Alternative(header, _lines(reader), number)]
    while reader.line == "@@ or":
        number = reader.number
        header = reader.take()
        alternatives.append(Alternative(header, _lines(reader), number))
    return Hunk(
        scopes,
        least,
        most,
        optional,
        conditions,
        wheres,
        tuple(alternatives),
    )


def _hunk_header(
    reader: Reader, header: str, number: int
) -> tuple[tuple[str, ...], int, int | None, bool]:
    names, _, options = header[2:].strip().partition(" @@")
    scopes = tuple(name.strip() for name in names.split(",") if name.strip())
    for scope in scopes:
        if not _SCOPE.fullmatch(scope) or scope == "or":
            reader.fail(
                f"not a scope: {scope!r}",
                "name a definition (Class.method, globs allowed) or <module>",
                number,
            )
    if not scopes:
        reader.fail("a hunk without a scope", f"write '@@ {MODULE}'", number)
    least, most, optional = 1, cast("int | None", 1), False
    for option in options.split():
        count = _COUNT.fullmatch(option)
        if option == "optional":
            optional = True
        elif count:
            least = int(count[1])
            most = (int(count[3]) if count[3] else None) if count[2] else least
        else:
            reader.fail(
                f"unknown option: {option!r}",
                "known options: optional, count=N, count=N..M, count=N..",
                number,
            )
    if least < 1 or (most is not None and most < least):
        reader.fail(
            "a count that nothing satisfies",
            "count from 1; say 'optional' where the place may be missing",
            number,
        )
    return scopes, least, most, optional


def _lines(reader: Reader) -> tuple[Line, ...]:
    lines: list[Line] = []
    while reader.line is not None:
        text = reader.line
        if text.startswith(("--- a/", f"--- {DEV_NULL}")) or text[:1] not in " -+#":
            break
        kind = cast("Kind", text[:1] or " ")
        lines.append(Line(kind, text[1:], reader.number, bare=not text))
        reader.take()
    if not any(line.kind in "-+" for line in lines):
        reader.fail("a hunk that changes nothing", "add a - or + line")
    return tuple(lines)
