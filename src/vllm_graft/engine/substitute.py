"""Writes bound metavariables into the text of added lines."""

from __future__ import annotations

import ast
import re
from typing import Final

from vllm_graft.engine.change import Change
from vllm_graft.engine.match import Match
from vllm_graft.engine.source import Source, parse_expression
from vllm_graft.engine.text import masked
from vllm_graft.engine.unify import same

_META: Final = re.compile(r"\$(?P<meta>[A-Za-z_]\w*)")
# Expressions that hold together in any place without parentheses.
_ATOMS: Final = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.Constant,
)
# Expressions that are themselves wherever a whole expression may stand.
_WHOLE: Final = (
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Await,
    ast.IfExp,
    ast.Lambda,
)


class Substitution:
    """The texts of one match's bindings.

    Args:
        source: The file that was matched.
        change: Gives what a metavariable means that the match does not bind.
        match: The bindings.
    """

    def __init__(self, source: Source, change: Change, match: Match) -> None:
        self._source = source
        self._change = change
        self._match = match

    def apply(self, text: str) -> str:
        """``text`` with every metavariable replaced by the code it stands for."""
        out: list[str] = []
        at = 0
        code = masked(text)
        for found in _META.finditer(code):
            before, after = code[: found.start()], code[found.end() :]
            out += [text[at : found.start()], self._text(found["meta"], before, after)]
            at = found.end()
        return "".join([*out, text[at:]])

    def _text(self, name: str, before: str, after: str) -> str:
        bound = self._match.bindings.get(name)
        if isinstance(bound, str):
            return bound
        if bound is None:
            bound = self._change.defaults[name]
            code = ast.unparse(bound)
        else:
            code = self._own_text(bound)
        alone = isinstance(bound, _WHOLE) and _stands_alone(before, after)
        if (alone or _is_atom(bound, code, after)) and _is_whole(code):
            return code
        return f"({code})"

    def _own_text(self, node: ast.AST) -> str:
        # Inside an f-string, Python before 3.12 gives positions that mean nothing.
        try:
            code = self._source.segment(node)
            if same(parse_expression(f"({code}\n)"), node):
                return code
        except (SyntaxError, ValueError, IndexError):
            pass
        return ast.unparse(node)


def _is_atom(node: ast.AST, code: str, after: str) -> bool:
    if isinstance(node, ast.Constant) and after.startswith("."):
        return isinstance(node.value, str | bytes)  # 1.real is no expression
    if isinstance(node, ast.Tuple):
        return _has_parentheses(code)
    return isinstance(node, _ATOMS)


def _has_parentheses(code: str) -> bool:
    """Whether the bracket that opens code is the one that ends it."""
    depth = 0
    for index, char in enumerate(masked(code)):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return code.startswith("(") and index == len(code) - 1
    return False


def _is_whole(code: str) -> bool:
    """Whether code holds together without parentheses, over several lines too."""
    if "\n" not in code and "\r" not in code:
        return True
    try:
        parse_expression(code)
    except SyntaxError:
        return False
    return True


def _stands_alone(before: str, after: str) -> bool:
    """Whether a place in a line takes any expression, whatever its operators."""
    opened = _OPENED.search(before)
    closed = _CLOSED.match(after)
    return opened is not None and closed is not None


_OPENED: Final = re.compile(r"(^|[(\[{,]|[^=!<>:+\-*/%&|^@]=|\breturn|\bassert)\s*\Z")
_CLOSED: Final = re.compile(r"[ \t]*([)\]},\r\n]|\Z)")
