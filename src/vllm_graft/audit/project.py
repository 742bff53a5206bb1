"""Finds out what a name stands for, across all that is audited and its vLLM.

Everything is named by where it is defined: ``package.module.Class.method``. What is
not at hand keeps the name under which it is imported, so that code is also understood
where the vLLM that it builds on is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

from vllm_graft.audit.loader import Loader
from vllm_graft.audit.modules import Module, Scope
from vllm_graft.audit.names import Alias, Binding, Definition, Function, Import

Seen = frozenset[object]
_NONE: Seen = frozenset()


class Project(Loader):
    """The modules, and what the names in them stand for."""

    @cached_property
    def ancestors(self) -> Callable[[str], tuple[str, ...]]:
        """A class and its bases, nearest first, each once."""
        return cache(self._ancestors)

    def canonical(
        self, dotted: str, near: Path | None = None, seen: Seen = _NONE
    ) -> frozenset[str]:
        """Where that which a dotted name stands for is defined.

        Args:
            dotted: The name.
            near: A folder to look in before the roots.
            seen: What is being looked up already, in cycles.
        """
        if dotted in seen:
            return frozenset()
        seen |= {dotted}
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            file = self._find(".".join(parts[:size]), near)
            if file is None:
                continue
            module = self.load(file)
            if module is None or size == len(parts):
                name = module.name if module else file.name
                return frozenset({".".join([name, *parts[size:]])})
            return self._member(module, parts[size:], seen)
        return frozenset({dotted})

    def _member(self, module: Module, path: list[str], seen: Seen) -> frozenset[str]:
        found: set[str] = set()
        for scope, binding in self._bindings(module, path[0], seen):
            found |= self._bound(binding, scope, path[1:], seen)
        unknown = self._unknown_stars(module, set())
        if not found and unknown:  # it may come from there
            return frozenset(".".join([star, *path]) for star in unknown)
        return frozenset(found or {".".join([module.name, *path])})

    def _unknown_stars(self, module: Module, seen: set[Module]) -> list[str]:
        """The modules not at hand that all names are imported from."""
        if module in seen:
            return []
        seen.add(module)
        unknown = []
        for star in module.scope.names.stars:
            other = self.module(star, module.file.root)
            unknown += self._unknown_stars(other, seen) if other else [star]
        return unknown

    def _bindings(
        self, module: Module, name: str, seen: Seen
    ) -> Iterator[tuple[Scope, Binding]]:
        names = module.scope.names
        if name in names.bound:
            for binding in names.bound[name]:
                yield module.scope, binding
            return
        for star in names.stars:
            other = self.module(star, module.file.root)
            key = ("star", star, name)
            if other is not None and key not in seen:
                yield from self._bindings(other, name, seen | {key})

    def _bound(
        self, binding: Binding, scope: Scope, path: Sequence[str], seen: Seen
    ) -> frozenset[str]:
        module = scope.module
        match binding:
            case Import(target):
                near = module.file.root
                return self.canonical(".".join([target, *path]), near, seen)
            case Definition(node):
                known = isinstance(node, ast.ClassDef)
                name = (
                    module.class_name(node) if known else f"{module.name}.{node.name}"  # type: ignore[arg-type]
                )
                return frozenset({".".join([name, *path])})
            case Alias(value):
                found: set[str] = set()
                for name in self.resolve(value, scope, seen):
                    joined = ".".join([name, *path])
                    found |= self.canonical(joined, None, seen) if path else {name}
                return frozenset(found)

    def resolve(
        self, expression: ast.expr, scope: Scope, seen: Seen = _NONE
    ) -> frozenset[str]:
        """What an expression that names something may stand for; empty if unknown.

        Args:
            expression: ``a.b.C`` and the like.
            scope: Where it stands.
            seen: What is being looked up already, in cycles.
        """
        key = id(expression)
        if key in seen:
            return frozenset()
        seen |= {key}
        match expression:
            case ast.Name(id=name):
                return self._name(name, scope, seen)
            case ast.Attribute(value=value, attr=attribute):
                found: set[str] = set()
                for name in self.resolve(value, scope, seen):
                    found |= self.canonical(f"{name}.{attribute}", None, seen)
                return frozenset(found)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="modules"),
                slice=ast.Constant(value=str(name)),
            ):
                return self.canonical(name, scope.module.file.root, seen)
            case ast.Subscript(value=value):
                return self.resolve(value, scope, seen)
            case ast.IfExp(body=body, orelse=orelse):
                return self.resolve(body, scope, seen) | self.resolve(
                    orelse, scope, seen
                )
            case ast.BoolOp(values=values):
                return frozenset().union(
                    *(self.resolve(v, scope, seen) for v in values)
                )
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(name))],
            ):
                return self.canonical(name, scope.module.file.root, seen)
        return frozenset()

    def _name(self, name: str, scope: Scope, seen: Seen) -> frozenset[str]:
        for around in scope.chain():
            if around.node is not None and name in parameters(around.node):
                return frozenset()
            if around.node is None:
                bound = list(self._bindings(around.module, name, seen))
                if not bound and around.module.scope.names.stars:
                    return self._member(around.module, [name], seen)
            else:
                bound = [(around, b) for b in around.names.bound.get(name, ())]
            if bound:
                return frozenset().union(
                    *(self._bound(b, where, (), seen) for where, b in bound)
                )
        return frozenset()

    def classes(self, dotted: str) -> list[tuple[Module, ast.ClassDef]]:
        """The definitions of a class; more than one where branches define it."""
        parts = dotted.split(".")
        for size in range(len(parts) - 1, 0, -1):
            module = self.module(".".join(parts[:size]))
            if module is not None:
                return [(module, node) for node in module.find(parts[size:])]
        return []

    def _ancestors(self, dotted: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        queue = [dotted]
        while queue:
            name = queue.pop(0)
            if name in found:
                continue
            found[name] = None
            for module, node in self.classes(name):
                queue += sorted(self._bases(module, node))
        return tuple(found)

    def _bases(self, module: Module, node: ast.ClassDef) -> frozenset[str]:
        scope = module.class_scope(node)
        bases: set[str] = set()
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == node.name:
                # class A(A): the name stands for what it was before.
                for binding in scope.names.before.get(node, ()):
                    bases |= self._bound(binding, scope, (), _NONE)
            else:
                bases |= self.resolve(base, scope)
        return frozenset(bases)

    def is_a(self, dotted: str, targets: frozenset[str]) -> bool:
        """Whether a class is one of some others, or inherits from one."""
        return not targets.isdisjoint(self.ancestors(dotted))

    def method(self, dotted: str, name: str) -> tuple[str, Module, Function] | None:
        """A method, the class that defines it, and its module."""
        for ancestor in self.ancestors(dotted):
            for module, node in self.classes(ancestor):
                if found := module.function(node, name):
                    return ancestor, module, found
        return None


def parameters(node: Function) -> list[str]:
    """The names of a function's parameters."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [argument.arg for argument in (*every, *extra)]
