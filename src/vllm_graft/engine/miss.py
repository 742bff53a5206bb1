"""Explains a conflict: which pattern line failed against which source line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from vllm_graft.engine.change import Change
from vllm_graft.engine.pattern import decode
from vllm_graft.engine.source import Source
from vllm_graft.engine.splits import Splits
from vllm_graft.engine.views import View

_WIDTH = 72


def nearest_miss(
    source: Source,
    splits: Splits,
    changes: Sequence[Change],
    blocks: Sequence[list[ast.AST]],
) -> str:
    """The pattern line that failed after the most had matched, as a sentence."""
    from difflib import SequenceMatcher  # noqa: PLC0415 (slow, and rarely needed)

    best: tuple[tuple[int, int, float], str] | None = None
    for change in changes:
        matcher = change.matcher(change.before)
        matcher.misses = []
        for block in blocks:
            for _ in matcher.find(block):
                pass
        misses, matcher.misses = matcher.misses, None
        deepest = max((depth for depth, _, _ in misses), default=0)
        for depth, pattern, node in misses:
            if depth < deepest:
                continue
            wanted = _code(pattern, change.before.line_of(pattern).text)
            found = _code(node, _first_line(source, node)) if node else ""
            likeness = SequenceMatcher(None, wanted, found).ratio()
            score = (depth, int(type(pattern) is type(node)), likeness)
            if best is None or score > best[0]:
                best = score, _describe(source, splits, change.before, pattern, node)
    return best[1] if best else "nothing in the scope resembles the pattern"


def _code(node: ast.AST, line: str) -> str:
    """A simple statement on one line; a compound one's first line."""
    return decode(ast.unparse(node)) if not hasattr(node, "body") else line.strip()


def _first_line(source: Source, node: ast.AST) -> str:
    where: Any = getattr(node, "pattern", node)  # a match_case has no position
    return source.line(where.lineno).strip()


def _describe(
    source: Source,
    splits: Splits,
    view: View,
    pattern: ast.AST,
    node: ast.AST | None,
) -> str:
    line = view.line_of(pattern)
    wanted = f"line {line.number} of the patch, `{_cut(line.text)}`"
    if node is None:
        return f"{wanted}, has no counterpart: the block ends before it"
    where: Any = getattr(node, "pattern", node)  # a match_case has no position
    text = _first_line(source, node)
    number = splits.original(where.lineno)
    return f"{wanted}, does not match line {number}, `{_cut(text)}`"


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
