"""Turns the views of a hunk into syntax trees to match with.

A view is plain Python but for metavariables (``$name``), statement ellipses
(``...``, perhaps ``... without EXPRESSION``) and ellipses among arguments. Each
is spelt as an identifier that no source has, so that :mod:`ast` does the parsing;
columns shift, line numbers stay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from vllm_graft.errors import PatchError, SourceError
from vllm_graft.layout import Part, all_blocks, parts, span
from vllm_graft.patchfile import Line
from vllm_graft.source import Source
from vllm_graft.source import parse_expression as parse_plain_expression
from vllm_graft.text import masked

_META: Final = "__graft_meta_"
_DOTS: Final = "__graft_dots"
_WHOLE: Final = re.compile(rf"{_META}\w+")
ANONYMOUS: Final = ""
_TOKEN: Final = re.compile(
    r"""\$(?P<meta>[A-Za-z_]\w*)
    |(?P<head>\b(?:def|class)\s+\$?\w+\s*(?P<generic>\[[^\]]*\]\s*)?\()
    |(?P<dots>\.\.\.)
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<equals>=)""",
    re.VERBOSE,
)
_WITHOUT: Final = re.compile(r"(\s*\.\.\.) without (.+)")


def meta_name(identifier: object) -> str | None:
    """The metavariable that an identifier in a pattern stands for, or None."""
    if isinstance(identifier, str) and identifier.startswith(_META):
        name = identifier[len(_META) :]
        return ANONYMOUS if name == "_" else name
    return None


def is_dots(node: ast.AST) -> bool:
    """Whether a pattern node is an ellipsis over any run of its siblings."""
    if isinstance(node, ast.Expr):
        node = node.value
    elif isinstance(node, ast.ExceptHandler):
        node = node.type or node
    elif isinstance(node, ast.arg):
        return node.arg.startswith(_DOTS)
    return isinstance(node, ast.Constant) and node.value is ...


def encode(text: str) -> str:
    """Spells metavariables and parameter ellipses as identifiers.

    A ``$`` in a string or comment is no metavariable; one in the replacement field
    of an f-string is.
    """
    out: list[str] = []
    at = 0
    depth: list[bool] = []  # for each open bracket: is it a def's parameter list
    defaults = False
    code = masked(text)
    for found in _TOKEN.finditer(code):
        out.append(text[at : found.start()])
        at = found.end()
        token = text[found.start() : at]
        in_parameters = depth[-1:] == [True]
        if found["meta"]:
            token = _META + found["meta"]
        elif found["head"]:
            depth.append(token.startswith("def"))
            defaults = False
            token = token.replace("$", _META)
        elif found["open"]:
            depth.append(False)
        elif found["close"]:
            del depth[-1:]
        elif found["equals"] and in_parameters:
            defaults = True
        elif found["dots"] and in_parameters and _is_parameter(code, found):
            token = f"{_DOTS}_{at}" + ("=0" if defaults else "")
        out.append(token)
    return "".join([*out, text[at:]])


def _is_parameter(code: str, dots: re.Match[str]) -> bool:
    """Whether dots are a parameter of their own, not an annotation or default."""
    return code[: dots.start()].rstrip()[-1:] in "(,"


def decode(text: str) -> str:
    """The inverse of :func:`encode` for metavariables, for messages."""
    return text.replace(_META, "$")


@dataclass(frozen=True)
class LogicalLine:
    """A logical line of a view, and the hunk lines it stands on."""

    part: Part
    rows: range
    column: int


@dataclass
class View:
    """One view of an alternative, or the pattern of a condition.

    Args:
        lines: The patch lines that the view is made of.
        rows: For each of them, its index among the hunk's lines.
        name: ``before`` or ``after`` or ``pattern``, for messages.
        path: The patch file, for messages.
    """

    path: str
    name: str
    lines: Sequence[Line]
    rows: Sequence[int]
    exclusions: dict[int, ast.expr] = field(default_factory=dict)

    @cached_property
    def source(self) -> Source:
        """The view as text, below ``if 1:`` where it is indented."""
        texts = [line.text if line.kind != "#" else "" for line in self.lines]
        for index, text in enumerate(texts):
            found = _WITHOUT.fullmatch(text)
            if found:
                texts[index] = found[1]
                self.exclusions[index] = self._exclusion(found[2], self.lines[index])
        code = [t for t in texts if t.strip() and not t.lstrip().startswith("#")]
        indented = bool(code) and code[0][:1].isspace()
        prefix = "if 1:\n" if indented else "\n"
        source = Source(self.path, prefix + encode("\n".join(texts)) + "\n")
        try:
            _ = source.tree
        except SourceError as error:
            raise self._not_python(error) from error
        return source

    def _not_python(self, error: SourceError) -> PatchError:
        cause = error.__cause__
        row = (getattr(cause, "lineno", None) or 2) - 2
        line = self.lines[min(max(row, 0), len(self.lines) - 1)]
        problem = getattr(cause, "msg", None) or error.message
        return PatchError(
            f"the {self.name} view is not Python: {problem}",
            where=f"{self.path}:{line.number}",
            hint=f"read the {self.name} view alone, without the other side's lines: "
            f"{decode(line.text.strip())!r}",
        )

    def _exclusion(self, text: str, line: Line) -> ast.expr:
        return parse_expression(text, self.path, line.number)

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The pattern: statements that follow each other in one block."""
        body = self.source.tree.body
        if self.source.text.startswith("if 1:"):
            wrapper = body[0]
            assert isinstance(wrapper, ast.If)
            outside = [*body[1:], *wrapper.orelse]
            if outside:
                row = outside[0].lineno - 2
                raise PatchError(
                    f"the {self.name} view ends its block early",
                    where=f"{self.path}:{self.lines[row].number}",
                    hint="indent no line less than the hunk's first",
                )
            return wrapper.body
        return body

    @cached_property
    def logical_lines(self) -> list[LogicalLine]:
        """All logical lines, in order."""
        result = []
        for statement in self.statements:
            for part in parts(self.source, statement):
                extent = span(self.source, part)
                first = self.source.line_number(extent.start) - 2
                last = self.source.line_number(max(extent.start, extent.end - 1)) - 2
                start = self.source.line_start(extent.start)
                column = len(self.source.text[start : extent.start].expandtabs())
                rows = range(self.rows[first], self.rows[last] + 1)
                result.append(LogicalLine(part, rows, column))
        return result

    @cached_property
    def weight(self) -> tuple[int, int]:
        """How much the view says: its logical lines, then its code."""
        nodes = sum(1 for s in self.statements for _ in ast.walk(s))
        return len(self.logical_lines), nodes

    @cached_property
    def metavariables(self) -> dict[str, int]:
        """Each named metavariable, and the patch line of its first use.

        Raises:
            PatchError: One is only a part of a name.
        """
        names: dict[str, int] = {}
        for row, node in self._nodes():
            for identifier in _identifiers(node):
                name = meta_name(identifier)
                if name:
                    names.setdefault(name, self.lines[row].number)
                if _META in identifier and not _WHOLE.fullmatch(identifier):
                    raise PatchError(
                        f"a metavariable is only a part of {decode(identifier)!r}",
                        where=f"{self.path}:{self.lines[row].number}",
                        hint="let $name stand for a whole name or expression",
                    )
        return names

    def unspecific(self) -> Iterator[tuple[int, str]]:
        """What stands for no one text, and its row: ``$_`` and argument ellipses."""
        for row, node in self._nodes():
            if any(meta_name(name) == ANONYMOUS for name in _identifiers(node)):
                yield row, "$_"
            arguments: list[ast.expr] = []
            if isinstance(node, ast.Call):
                arguments = node.args
            elif isinstance(node, ast.ClassDef):
                arguments = node.bases
            if any(map(is_dots, arguments)) or (
                isinstance(node, ast.arg) and is_dots(node)
            ):
                yield row, "an ellipsis among arguments"

    def _nodes(self) -> Iterator[tuple[int, ast.AST]]:
        for statement in self.statements:
            for node in ast.walk(statement):
                # Before Python 3.12, positions inside f-strings mean nothing.
                line = max(getattr(node, "lineno", 0), statement.lineno)
                yield min(line, statement.end_lineno or line) - 2, node

    def exclusion(self, dots: ast.AST) -> ast.expr | None:
        """What the run under an ellipsis must be without."""
        return self.exclusions.get(dots.lineno - 2)  # type: ignore[attr-defined]

    def row_of(self, node: ast.AST) -> int:
        """The index, among the hunk's lines, of a node's first line."""
        return self.rows[node.lineno - 2]  # type: ignore[attr-defined]

    def line_of(self, node: ast.AST) -> Line:
        """The patch line that a pattern node begins on."""
        place: Any = getattr(node, "pattern", node)  # a match_case has no position
        index: int = place.lineno - 2
        return self.lines[index]

    def sibling_lists(self) -> Iterable[list[ast.AST]]:
        """Every block of the pattern, the outermost first."""
        top: list[ast.AST] = list(self.statements)
        yield top
        for statement in top:
            yield from all_blocks(statement)


def _identifiers(node: ast.AST) -> Iterator[str]:
    """The names that a node itself holds. Strings of the program are no names."""
    if isinstance(node, ast.Constant):
        return
    for _, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str):
                yield item


def identifiers(node: ast.AST) -> set[str]:
    """The names and attributes that any match of a pattern must contain."""
    found: set[str] = set()
    for child in ast.walk(node):
        for name in ("id", "attr"):
            value = getattr(child, name, None)
            if isinstance(value, str) and meta_name(value) is None:
                found.add(value)
    return found


def parse_expression(text: str, path: str, number: int) -> ast.expr:
    """A single expression with metavariables.

    Raises:
        PatchError: It is not an expression.
    """
    try:
        return parse_plain_expression(encode(text).strip())
    except SyntaxError as error:
        problem = error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        problem = str(error)
    raise PatchError(
        f"not an expression: {text!r} ({problem})",
        where=f"{path}:{number}",
        hint="write one Python expression; $name stands for any expression",
    )
