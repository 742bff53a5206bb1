"""Assignments that replace what a series changes or relies on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from vllm_graft.audit.context import Context, Hit, Kind, short, terminal
from vllm_graft.audit.modules import Module, Scope, Site
from vllm_graft.audit.rules import Rule

_SETTERS: Final = {"setattr", "object"}
_SETTER_ARGUMENTS: Final = 3


class MonkeyPatch(Kind):
    """``module.Class = ...``, ``Class.method = ...``, ``setattr(Class, "method", ...)``.

    Also on instances, and by ``patch.object`` and pytest's ``monkeypatch.setattr``.
    """

    WORDS = ("targets",)
    PATTERN = r"""\.\s*(?:{})\s*[,=:)\]]|["'](?:[\w.]*\.)?(?:{})["']"""

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("targets")
        #: The classes that a member is looked for on, by the member's name.
        self.members: dict[str, set[str]] = {}
        for dotted in rule.all("targets"):
            owner, _, name = dotted.rpartition(".")
            if owner.rpartition(".")[2][:1].isupper():
                found = {owner, *self.project.canonical(owner)}
                self.members.setdefault(name, set()).update(found)

    def hits(self, module: Module, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        for site in sites:
            for node, owner, name, value in _patches(site.node):
                target = self._target(owner, name, site.scope)
                if target and not self._restores(value, site.scope, target):
                    new = ast.unparse(value) if value is not None else "something else"
                    yield Hit(node, site.scope, short(target), _cut(new))

    def _target(self, owner: ast.expr, name: str, scope: Scope) -> str:
        """The dotted name of what is replaced; empty where it is no target."""
        if isinstance(owner, ast.Constant):  # a dotted name in a string
            named = self.project.canonical(f"{owner.value}.{name}", None)
        else:
            found = self.project.resolve(owner, scope)
            named = frozenset(
                target
                for dotted in found
                for target in self.project.canonical(f"{dotted}.{name}")
            )
        hit = sorted(named & self.targets)
        if hit:
            return hit[0]
        classes = frozenset(self.members.get(name, ()))
        if not classes:
            return ""
        owners = {dotted.rpartition(".")[0] for dotted in named}
        if not isinstance(owner, ast.Constant):
            owners |= self.types.of(owner, scope)
        for dotted in sorted(owners):
            if self.is_a(dotted, classes):
                return f"{dotted}.{name}"
        return ""

    def _restores(self, value: ast.expr | None, scope: Scope, target: str) -> bool:
        """Whether the target is given what it is: no patch."""
        return value is not None and target in self.project.resolve(value, scope)


def _patches(
    node: ast.AST,
) -> Iterator[tuple[ast.AST, ast.expr, str, ast.expr | None]]:
    """What a node replaces: the place, the owner, the name and the new value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(node, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _targets(node, target, value)
        case ast.AugAssign(target=target, value=value):
            yield from _targets(node, target, value)
        case ast.Call(func=func, args=[owner, ast.Constant(value=str(name)), *rest]) if (
            terminal(func) in _SETTERS
        ):
            if terminal(func) == "setattr" and not rest:
                return
            yield node, owner, name, rest[0] if rest else None
        case ast.Call(func=func, args=[ast.Constant(value=str(dotted)), *rest]) if (
            terminal(func) in {"setattr", "patch"}
        ):
            owner, _, name = dotted.rpartition(".")
            if owner and name.isidentifier():
                place = ast.Constant(value=owner)
                yield node, place, name, rest[0] if rest else None


def _targets(
    node: ast.AST, target: ast.expr, value: ast.expr
) -> Iterator[tuple[ast.AST, ast.expr, str, ast.expr | None]]:
    match target:
        case ast.Attribute(value=owner, attr=name):
            yield node, owner, name, value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            match value:
                case ast.Tuple(elts=values) if len(values) == len(parts):
                    for part, new in zip(parts, values, strict=True):
                        yield from _targets(node, part, new)
                case _:
                    for part in parts:
                        yield from _targets(node, part, value)


def _cut(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."
