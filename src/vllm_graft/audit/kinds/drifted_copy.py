"""Copies and overrides of functions that a series changes, and how far they drifted."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from vllm_graft.audit.context import Context, Hit, Kind, cut, short
from vllm_graft.audit.inference import find_function
from vllm_graft.audit.modules import Module, Site
from vllm_graft.audit.names import Function
from vllm_graft.audit.rules import Rule

#: The share of equal statements from which on a function counts as a copy.
_COPY: Final = 0.6
#: The share of its own statements that an override which also calls `super()` takes
#: from the original; below, it extends the original and copies nothing.
_EXTENDS: Final = 0.4
_SHOWN: Final = 2


class DriftedCopy(Kind):
    """An override in a subclass, or a copy elsewhere, of one of the functions.

    Bodies are compared statement by statement, without docstrings and annotations.
    Identical ones are reported only for functions that the series changes
    (``always``): the copy lacks the change.
    """

    WORDS = ("functions",)
    PATTERN = r"\bdef\s+(?:{})\b"

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.by_name: dict[str, list[str]] = {}
        for dotted in rule.all("functions"):
            self.by_name.setdefault(dotted.rpartition(".")[2], []).append(dotted)
        self.always = frozenset(rule.all("always"))

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        for site in sites:
            node, module = site.node, site.scope.module
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for dotted in self.by_name.get(node.name, ()):
                    if text := self._drift(site, node, dotted):
                        owner = module.class_name(site.owner) if site.owner else ""
                        name = f"{short(owner)}.{node.name}" if owner else node.name
                        scope = module.scope_of(node)
                        yield Hit(node, scope, name, text)

    def _drift(self, site: Site, node: Function, dotted: str) -> str:
        """What to say about a function; nothing where it is no finding."""
        module = site.scope.module
        owner = module.class_name(site.owner) if site.owner else module.name
        original = self._original(dotted)
        if original is not None and original[1] is node:
            return ""  # the original itself
        target = dotted.rpartition(".")[0]
        same = owner == target
        inherits = same or (bool(site.owner) and self.is_a(owner, self._class(target)))
        if original is None:
            return self._without_original(dotted) if inherits and not same else ""
        mine, theirs = statements(node), statements(original[1])
        matcher = SequenceMatcher(None, theirs, mine, autojunk=False)
        if not inherits and matcher.ratio() < _COPY:
            return ""
        extends = _calls_super(node) and _taken(matcher, len(mine)) < _EXTENDS
        if inherits and not same and extends:
            return ""
        if mine == theirs:
            if dotted not in self.always or same:
                return ""
            return f"an identical copy of {short(dotted)}"
        said = _differences(theirs, mine, matcher)
        return f"{_kind(inherits, same)} {short(dotted)}: {said}"

    def _class(self, dotted: str) -> frozenset[str]:
        return frozenset({dotted, *self.project.canonical(dotted)})

    def _original(self, dotted: str) -> tuple[Module, Function] | None:
        if self.context.base is None:
            return None
        return find_function(self.context.base, dotted)

    def _without_original(self, dotted: str) -> str:
        return f"an override of {short(dotted)}, which is not at hand to compare with"


def statements(node: Function) -> list[str]:
    """A function's statements, one line each, the heads of compound ones included.

    Docstrings, annotations and layout are left out.
    """
    body = list(node.body)
    if body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            del body[0]
    return list(_lines(body))


def _lines(body: Sequence[ast.AST]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    yield f"{ast.unparse(target)} = {ast.unparse(value)}"
                continue
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"def {name}"
            case _:
                # Of a compound statement, the head alone.
                yield ast.unparse(node).strip().partition("\n")[0]
        for name in ("body", "handlers", "cases"):
            yield from _lines(getattr(node, name, ()))
        for name in ("orelse", "finalbody"):
            if block := getattr(node, name, ()):
                yield "else:" if name == "orelse" else "finally:"
                yield from _lines(block)


def _taken(matcher: SequenceMatcher[str], statements: int) -> float:
    """The share of a function's statements that are the original's."""
    equal = sum(block.size for block in matcher.get_matching_blocks())
    return equal / max(statements, 1)


def _calls_super(node: Function) -> bool:
    for call in ast.walk(node):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)
            ) if name == node.name:
                return True
    return False


def _kind(inherits: bool, same: bool) -> str:
    if same:
        return "drifted from"
    return "an override of" if inherits else "a copy of"


def _differences(
    theirs: list[str], mine: list[str], matcher: SequenceMatcher[str]
) -> str:
    """How many statements differ, and the first ones."""
    gone: list[str] = []
    new: list[str] = []
    for tag, start, end, low, high in matcher.get_opcodes():
        if tag != "equal":
            gone += theirs[start:end]
            new += mine[low:high]
    parts = []
    if gone:
        parts.append(f"{len(gone)} of its {len(theirs)} statements gone{_first(gone)}")
    if new:
        parts.append(f"{len(new)} new{_first(new)}")
    return ", ".join(parts)


def _first(lines: list[str]) -> str:
    shown = ", ".join(f"'{cut(line)}'" for line in lines[:_SHOWN])
    return f" ({shown}{', ...' * (len(lines) > _SHOWN)})"
