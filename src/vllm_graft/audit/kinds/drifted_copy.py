"""Copies and overrides of functions that a series changes, and how far they drifted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from vllm_graft.audit.context import Context, Hit, Kind, short
from vllm_graft.audit.inference import find_function
from vllm_graft.audit.modules import Module, Site
from vllm_graft.audit.names import Function
from vllm_graft.audit.rules import Rule

#: The share of equal statements from which on a function counts as a copy.
_COPY: Final = 0.6
#: The same for an override that also calls `super()`: below, it extends.
_EXTENDS: Final = 0.5
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

    def hits(self, module: Module, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        for site in sites:
            node = site.node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for dotted in self.by_name.get(node.name, ()):
                    if text := self._drift(module, site, node, dotted):
                        owner = module.class_name(site.owner) if site.owner else ""
                        name = f"{short(owner)}.{node.name}" if owner else node.name
                        scope = module.scope_of(node)
                        yield Hit(node, scope, name, text)

    def _drift(self, module: Module, site: Site, node: Function, dotted: str) -> str:
        """What to say about a function; nothing where it is no finding."""
        owner = module.class_name(site.owner) if site.owner else module.name
        original = self._original(dotted)
        if original is not None and original[0].file.path == module.file.path:
            if f"{owner}.{node.name}" == dotted:
                return ""  # the original itself
        target = dotted.rpartition(".")[0]
        same = owner == target
        inherits = same or (bool(site.owner) and self.is_a(owner, self._class(target)))
        if original is None:
            return self._without_original(dotted) if inherits and not same else ""
        mine, theirs = statements(node), statements(original[1])
        matcher = SequenceMatcher(None, theirs, mine, autojunk=False)
        share = matcher.ratio()
        if not inherits and share < _COPY:
            return ""
        if inherits and not same and share < _EXTENDS and _calls_super(node):
            return ""
        if mine == theirs:
            if dotted not in self.always or same:
                return ""
            return f"an identical copy of {short(dotted)}"
        return f"{_kind(inherits, same)} {short(dotted)}: {_differences(matcher)}"

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
    parameters = ", ".join(
        argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)
    )
    return [f"({parameters})", *_lines(body, 0)]


def _lines(body: list[ast.stmt], depth: int) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.AnnAssign):
            target, value = statement.target, statement.value
            if value is not None:
                yield f"{' ' * depth}{ast.unparse(target)} = {ast.unparse(value)}"
            continue
        blocks = [
            (name, part)
            for name in ("body", "handlers", "orelse", "finalbody", "cases")
            if (part := getattr(statement, name, None))
        ]
        if not blocks:
            yield " " * depth + ast.unparse(statement)
            continue
        text = ast.unparse(statement).partition("\n")[0]
        yield " " * depth + (
            f"def {statement.name}"
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
            else text
        )
        for name, part in blocks:
            if name in ("orelse", "finalbody"):
                yield f"{' ' * depth}{name}:"
            for inner in part if name in ("handlers", "cases") else [None]:
                if inner is None:
                    yield from _lines(part, depth + 1)
                else:
                    yield " " * depth + ast.unparse(inner).strip().partition("\n")[0]
                    yield from _lines(inner.body, depth + 1)


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


def _differences(matcher: SequenceMatcher[str]) -> str:
    """How many statements differ, and the first ones."""
    removed: list[str] = []
    added: list[str] = []
    for tag, start, end, low, high in matcher.get_opcodes():
        if tag != "equal":
            removed += matcher.a[start:end]
            added += matcher.b[low:high]
    parts = []
    for many, word in ((removed, "gone"), (added, "new")):
        if many:
            shown = ", ".join(f"'{_cut(line)}'" for line in many[:_SHOWN])
            parts.append(f"{len(many)} {word} ({shown}{', ...' * (len(many) > _SHOWN)})")
    total = len(matcher.a)
    return f"of {total} statements {' and '.join(parts)}"


def _cut(line: str, width: int = 60) -> str:
    line = line.strip()
    return line if len(line) <= width else f"{line[: width - 3]}..."
