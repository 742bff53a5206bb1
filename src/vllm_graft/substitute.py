"""Writes bound metavariables into the text of added lines."""

from __future__ import annotations

import ast
import re
from typing import Final

from vllm_graft.change import Change
from vllm_graft.match import Match, same
from vllm_graft.source import Source

_META: Final = re.compile(
    r"""(?P<skip>[rRbBuUfF]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"
    |'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*")|\#[^\n]*)
    |\$(?P<meta>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
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

        def replace(found: re.Match[str]) -> str:
            if not found["meta"]:
                return found.group()
            return self._text(found["meta"], text, found.span())

        return _META.sub(replace, text)

    def _text(self, name: str, around: str, place: tuple[int, int]) -> str:
        bound = self._match.bindings.get(name, self._change.defaults.get(name))
        if bound is None or isinstance(bound, str):
            return bound or name
        if name not in self._match.bindings:
            code = ast.unparse(bound)
        else:
            code = self._own_text(bound)
        if isinstance(bound, _ATOMS) and "\n" not in code:
            return code
        if _stands_alone(around, *place) and "\n" not in code:
            return code
        return code if code.startswith("(") and _closes_last(code) else f"({code})"

    def _own_text(self, node: ast.AST) -> str:
        code = self._source.segment(node)
        try:
            if same(ast.parse(f"({code}\n)", mode="eval").body, node):
                return code
        except SyntaxError:
            pass
        # Inside an f-string, Python before 3.12 gives positions that mean nothing.
        return ast.unparse(node)


def _stands_alone(text: str, start: int, stop: int) -> bool:
    before = text[:start].rstrip()
    after = text[stop:].lstrip(" \t")
    return (
        before[-1:] in ("", "(", "[", "{", ",", "=", "\n")
        or before.endswith(("return", "yield", "assert", "del"))
    ) and (after[:1] in ("", ")", "]", "}", ",", "\n", "#"))


def _closes_last(code: str) -> bool:
    """Whether the bracket that opens ``code`` is the one that ends it."""
    depth = 0
    for index, char in enumerate(code):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return index == len(code) - 1
    return False
