"""A Python source file as text, syntax tree and offsets, losslessly.

Line and column positions of :mod:`ast` (1-based lines, UTF-8 byte columns) are
turned into character offsets here, and nowhere else.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from codecs import BOM_UTF8
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from typing import Final

from vllm_graft.errors import SourceError

# Python's tokenizer ends a line here and only here; str.splitlines() would
# also split at form feeds and at U+2028, which are ordinary characters.
NEWLINE: Final = re.compile(r"\r\n|\r|\n")


class Source:
    """One parsed file.

    Args:
        path: The name to use in messages.
        text: The decoded text, line endings untouched, without a BOM.
        encoding: The codec that turns ``text`` back into the file's bytes.
        bom: The byte order mark that preceded it, or nothing.

    Raises:
        SourceError: The text is not Python for the running interpreter.
    """

    def __init__(
        self, path: str, text: str, *, encoding: str = "utf-8", bom: bytes = b""
    ) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.bom = bom
        self._starts = [0, *(m.end() for m in NEWLINE.finditer(text))]
        self._ascii = text.isascii()
        #: What others have cut out of it or parsed for it, to save time: texts of
        #: nodes of the tree by ``id``, and changed functions by ``id`` and text.
        self.texts: dict[int, str] = {}
        self.parsed: dict[tuple[int, str], ast.stmt] = {}

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Source:
        """Decodes a file as Python would (BOM, coding cookie, UTF-8).

        Raises:
            SourceError: It cannot be decoded, or not losslessly.
        """
        bom = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
        body = data[len(bom) :]
        encoding = _encoding(path, data)
        try:
            text = body.decode(encoding)
            lossless = text.encode(encoding) == body
        except UnicodeDecodeError as error:
            line = body[: error.start].count(b"\n") + 1
            raise SourceError(
                f"not {error.encoding}: byte {body[error.start]:#04x}",
                where=f"{path}:{line}",
                hint="save the file as UTF-8, or give it the right coding cookie",
            ) from error
        except (LookupError, ValueError) as error:
            raise SourceError(
                f"the codec {encoding} does not decode the file ({error})",
                where=path,
                hint="correct the coding cookie in the first two lines",
            ) from error
        if not lossless:
            raise SourceError(
                f"the codec {encoding} does not give back the bytes it read",
                where=path,
                hint="save the file as UTF-8",
            )
        return cls(path, text, encoding=encoding, bom=bom)

    def with_text(self, text: str) -> Source:
        """The same file with other text."""
        return Source(self.path, text, encoding=self.encoding, bom=self.bom)

    def to_bytes(self) -> bytes:
        """The file's bytes.

        Raises:
            SourceError: The text holds a character that the file's own
                encoding lacks.
        """
        try:
            return self.bom + self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SourceError(
                f"the patch writes {error.object[error.start]!r}, which the file's "
                f"encoding {self.encoding} does not have",
                where=self.path,
                hint="convert the file to UTF-8 first",
            ) from error

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, parsed when first asked for."""
        try:
            return parse(self.text)
        except SyntaxError as error:
            raise SourceError(
                f"not Python for this interpreter: {error.msg}",
                where=f"{self.path}:{error.lineno or 1}:{error.offset or 1}",
                hint="correct the file, or run with the Python it is written for",
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise SourceError(
                f"cannot be parsed: {error}",
                where=self.path,
                hint="the file is not ordinary Python source",
            ) from error

    def offset(self, line: int, column: int) -> int:
        """The character offset of an :mod:`ast` position."""
        start = self._starts[line - 1]
        if self._ascii or column == 0:
            return start + column
        prefix = self.line(line).encode()[:column]
        return start + len(prefix.decode())

    def start(self, node: ast.AST) -> int:
        """Where a node begins."""
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Just past a node's last character."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        """A node's own text."""
        return self.text[self.start(node) : self.end(node)]

    def line(self, number: int) -> str:
        """A physical line with its line ending (1-based)."""
        stop = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self.line_start_of(number) : stop]

    def line_start_of(self, number: int) -> int:
        """Where a physical line begins (1-based)."""
        return self._starts[number - 1]

    def line_number(self, offset: int) -> int:
        """The 1-based number of the line that an offset is on."""
        return bisect_right(self._starts, offset)

    def line_start(self, offset: int) -> int:
        """Where the physical line of ``offset`` begins."""
        return self._starts[self.line_number(offset) - 1]

    def line_end(self, offset: int) -> int:
        """Where the next physical line begins, or the end of the text."""
        number = self.line_number(offset)
        return self._starts[number] if number < len(self._starts) else len(self.text)

    def newline_at(self, offset: int) -> str:
        """The line ending in use around ``offset`` (the file may mix them)."""
        number = self.line_number(offset)
        for candidate in (number, number - 1, 1):
            if 1 <= candidate <= len(self._starts):
                found = NEWLINE.search(self.line(candidate))
                if found:
                    return found.group()
        return "\n"


def parse(text: str) -> ast.Module:
    r"""Like :func:`ast.parse`, but silent about code that is merely dubious.

    The compiler warns of ``"\d"`` and the like; that is for the owner of the code
    to hear, and under ``python -W error`` it would pass for a syntax error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parse_expression(text: str) -> ast.expr:
    """The same for one expression."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _encoding(path: str, data: bytes) -> str:
    """The codec of a file's text without its byte order mark."""
    if b"coding" not in b"".join(data.split(b"\n", 2)[:2]):
        return "utf-8"
    from tokenize import detect_encoding  # noqa: PLC0415 (slow, and rarely needed)

    try:
        encoding, _ = detect_encoding(BytesIO(data).readline)
    except SyntaxError as error:
        if "invalid or missing" in str(error):
            return "utf-8"  # decoding will say which byte is not
        raise SourceError(
            str(error),
            where=f"{path}:1",
            hint="correct the coding cookie in the first two lines",
        ) from error
    return "utf-8" if encoding == "utf-8-sig" else encoding


def split_lines(text: str) -> list[str]:
    """The physical lines of ``text``, each with its ending."""
    starts = [0, *(m.end() for m in NEWLINE.finditer(text)), len(text)]
    return [text[a:b] for a, b in pairwise(starts) if a != b]
