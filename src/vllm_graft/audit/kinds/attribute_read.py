"""Reads of an attribute that instances of a class no longer have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vllm_graft.audit.context import Context, Hit, Kind, instance_of, short, terminal
from vllm_graft.audit.modules import Module, Scope, Site
from vllm_graft.audit.rules import Rule


class AttributeRead(Kind):
    """``self.flag`` in a subclass, ``runner.flag`` elsewhere, and by `getattr`."""

    WORDS = ("attributes",)
    PATTERN = r"\b(?:{})\b"

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.targets = self.names("classes")
        self.attributes = frozenset(rule.all("attributes"))
        self.holders = frozenset(rule.all("holders"))

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """See :class:`Kind`."""
        mixed = self.mixed(sites[0].scope.module, self.targets) if sites else {}
        for site in sites:
            match site.node:
                case ast.Attribute(value=owner, attr=name, ctx=ast.Load()):
                    pass
                case ast.Call(
                    func=ast.Name(id="getattr" | "hasattr"),
                    args=[owner, ast.Constant(value=str(name)), *_],
                ):
                    pass
                case _:
                    continue
            if name in self.attributes:
                yield from self._hit(site, owner, name, mixed)

    def _hit(
        self, site: Site, owner: ast.expr, name: str, mixed: dict[str, str]
    ) -> Iterator[Hit]:
        # The class itself is what the series changes, and `status` judges it.
        if instance_of(site.scope) in self.targets and terminal(owner) == "self":
            return
        found = self.types.of(owner, site.scope)
        classes = {mixed.get(dotted, dotted) for dotted in found}
        hit = [c for c in sorted(classes) if self.is_a(c, self.targets)]
        if not found and terminal(owner) in self.holders:
            yield Hit(site.node, site.scope, terminal(owner), name)
        elif hit and not any(self._sets(dotted, name) for dotted in hit):
            yield Hit(site.node, site.scope, short(hit[0]), name)

    def _sets(self, dotted: str, name: str) -> bool:
        """Whether a class of the hierarchy sets the attribute itself."""
        for ancestor in self.project.ancestors(dotted):
            if ancestor in self.targets:
                return False
            for module, node in self.project.classes(ancestor):
                if _assigns(module, node, name):
                    return True
        return False


def _assigns(module: Module, owner: ast.ClassDef, name: str) -> bool:
    numbers = [
        number
        for number in module.line_numbers(name.encode())
        if owner.lineno <= number <= (owner.end_lineno or number)
    ]
    sites = list(module.sites(numbers))
    # An annotation alone sets nothing.
    bare = {
        site.node.target
        for site in sites
        if isinstance(site.node, ast.AnnAssign) and site.node.value is None
    }
    return any(
        site.node not in bare
        and _is_assigned(site.node, name)
        and _belongs(site.scope, site.owner, owner)
        for site in sites
    )


def _is_assigned(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute, ctx=ast.Store()):
            return attribute == name
        case ast.Name(id=variable, ctx=ast.Store()):
            return variable == name
        case ast.FunctionDef(name=function):
            return function == name
        case ast.Call(
            func=ast.Name(id="setattr"),
            args=[ast.Name(id="self"), ast.Constant(value=attribute), _],
        ):
            return bool(attribute == name)
    return False


def _belongs(scope: Scope, around: ast.ClassDef | None, owner: ast.ClassDef) -> bool:
    return around is owner or scope.owner is owner
