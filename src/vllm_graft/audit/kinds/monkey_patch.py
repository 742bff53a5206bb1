"""Assignments that replace what a series changes or relies on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import Context, Hit, Kind, cut, short
from vllm_graft.audit.modules import Scope, Site
from vllm_graft.audit.rules import Rule


class MonkeyPatch(Kind):
    """``module.Class = ...``, ``Class.m = ...``, ``setattr(Class, "m", ...)``.

    Also on instances. What test helpers replace for the time of a test is left out.
    """

    WORDS = ("targets",)
    PATTERN = (
        r"\.\s*(?:{})\s*(?:=|:[^\n=]*=|,[^\n=()]*=)(?!=)"
        r"""|["'](?:[\w.]*\.)?(?:{})["']"""
    )

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

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        for site in sites:
            for node, owner, name, value in _patches(site.node):
                target = self._target(owner, name, site.scope)
                if target and not self._restores(value, site.scope, target):
                    new = cut(ast.unparse(value))
                    yield Hit(node, site.scope, short(target), new)

    def _target(self, owner: ast.expr, name: str, scope: Scope) -> str:
        """The dotted name of what is replaced; empty where it is no target."""
        named = frozenset(
            target
            for dotted in self.project.resolve(owner, scope)
            for target in self.project.canonical(f"{dotted}.{name}")
        )
        hit = sorted(named & self.targets)
        if hit:
            return hit[0]
        classes = frozenset(self.members.get(name, ()))
        if not classes:
            return ""
        owners = {dotted.rpartition(".")[0] for dotted in named}
        owners |= self.types.of(owner, scope)
        for dotted in sorted(owners):
            if self.is_a(dotted, classes):
                return f"{dotted}.{name}"
        return ""

    def _restores(self, value: ast.expr, scope: Scope, target: str) -> bool:
        """Whether the target is given what it is: no patch."""
        return target in self.project.resolve(value, scope)


def _patches(
    node: ast.AST,
) -> Iterator[tuple[ast.AST, ast.expr, str, ast.expr]]:
    """What a node replaces: the place, the owner, the name and the new value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(node, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _targets(node, target, value)
        case ast.AugAssign(target=target, value=value):
            yield from _targets(node, target, value)
        case ast.Call(
            func=ast.Name(id="setattr"),
            args=[owner, ast.Constant(value=str(name)), value],
        ):
            yield node, owner, name, value


def _targets(
    node: ast.AST, target: ast.expr, value: ast.expr
) -> Iterator[tuple[ast.AST, ast.expr, str, ast.expr]]:
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
