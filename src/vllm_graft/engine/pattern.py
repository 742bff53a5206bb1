"""Spells patterns such that Python can parse them, and reads them back.

A pattern is plain Python but for metavariables (``$name``), statement ellipses
(``...``, perhaps ``... without EXPRESSION``) and ellipses among arguments. Each
is spelt as an identifier that no source has, so that :mod:`ast` does the parsing;
columns shift, line numbers stay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from vllm_graft.engine.source import parse_expression as parse_plain_expression
from vllm_graft.engine.text import masked
from vllm_graft.errors import PatchError

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


def meta_name(identifier: object) -> str | None:
    """The metavariable that an identifier in a pattern stands for, or None."""
    if isinstance(identifier, str) and identifier.startswith(_META):
        name = identifier[len(_META) :]
        return ANONYMOUS if name == "_" else name
    return None


def is_whole_name(identifier: str) -> bool:
    """Whether an identifier of a pattern is a name or a metavariable, not a mix."""
    return _META not in identifier or bool(_WHOLE.fullmatch(identifier))


def is_dots(node: ast.AST) -> bool:
    """Whether a pattern node is an ellipsis over any run of its siblings."""
    kind = type(node)
    if kind is ast.Constant:
        return node.value is ...  # type: ignore[attr-defined]
    if kind is ast.Expr:
        return is_dots(node.value)  # type: ignore[attr-defined]
    if isinstance(node, ast.ExceptHandler):
        return node.type is not None and is_dots(node.type)
    return isinstance(node, ast.arg) and node.arg.startswith(_DOTS)


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


def own_names(node: ast.AST) -> Iterator[str]:
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


def parse_expressions(text: str, path: str, number: int) -> tuple[ast.expr, ...]:
    """The expressions of a list with commas.

    Raises:
        PatchError: It is no such list.
    """
    parsed = parse_expression(f"{text},", path, number)
    assert isinstance(parsed, ast.Tuple)
    return tuple(parsed.elts)


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
