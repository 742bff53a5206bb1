"""What class an expression's value has, as far as the code says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from vllm_graft.audit.modules import Module, Scope
from vllm_graft.audit.names import Alias, Function, pairs
from vllm_graft.audit.project import Project, parameters

_NOTHING: Final = frozenset[str]()
_DEPTH: Final = 12
#: Annotations that say nothing.
_ANY: Final = {"typing.Any", "typing_extensions.Any", "object", "builtins.object"}
_WRAPPERS: Final = {"Optional", "Union", "Annotated", "Final", "ClassVar"}
_PROPERTIES: Final = {"property", "cached_property"}


class Types:
    """Infers classes from annotations, constructors and assignments.

    Args:
        project: Where names are looked up.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._attributes: dict[tuple[str, str], frozenset[str]] = {}

    def of(
        self, expression: ast.expr | None, scope: Scope, depth: int = _DEPTH
    ) -> frozenset[str]:
        """The classes that the value may have; empty where it is not known.

        Args:
            expression: The expression.
            scope: Where it stands.
            depth: How far to follow assignments and calls.
        """
        if depth <= 0:
            return _NOTHING
        depth -= 1
        match expression:
            case ast.Name(id=name):
                return self._name(name, scope, depth)
            case ast.Attribute(value=value, attr=attribute):
                owners = self.of(value, scope, depth)
                return _union(self.attribute(c, attribute, depth) for c in owners)
            case ast.Call():
                return self._call(expression, scope, depth)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of(body, scope, depth) | self.of(orelse, scope, depth)
            case ast.BoolOp(values=values):
                return _union(self.of(value, scope, depth) for value in values)
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.of(value, scope, depth)
        return _NOTHING

    def _name(self, name: str, scope: Scope, depth: int) -> frozenset[str]:
        for around in scope.chain():
            node = around.node
            if node is not None and name in parameters(node):
                if around.owner is not None and _is_first(node, name):
                    return frozenset({around.module.class_name(around.owner)})
                return self._parameter(node, name, around)
            names = around.names
            if name in names.bound or name in names.annotations:
                said = names.annotations.get(name, ())
                found = _union(self.annotation(a, around) for a in said)
                for binding in names.bound.get(name, ()):
                    if isinstance(binding, Alias):
                        found |= self.of(binding.value, around, depth)
                return found
        return _NOTHING

    def _parameter(self, node: Function, name: str, scope: Scope) -> frozenset[str]:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        outer = scope.parent or scope
        said = (a.annotation for a in every if a.arg == name)
        return _union(self.annotation(a, outer) for a in said if a is not None)

    def _call(self, call: ast.Call, scope: Scope, depth: int) -> frozenset[str]:
        match call:
            case ast.Call(func=ast.Name(id="cast"), args=[kind, _]):
                return self.annotation(kind, scope)
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[owner, ast.Constant(value=str(name)), *_],
            ):
                owners = self.of(owner, scope, depth)
                return _union(self.attribute(c, name, depth) for c in owners)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                if owners := self.of(value, scope, depth):
                    return _union(self._returned(c, name) for c in owners)
        found = _NOTHING
        for dotted in self.project.resolve(call.func, scope):
            if self.project.classes(dotted) or _looks_like_a_class(dotted):
                found |= {dotted}
            elif function := self._function(dotted):
                module, node = function
                found |= self.annotation(node.returns, module.scope)
        return found

    def _returned(self, owner: str, name: str) -> frozenset[str]:
        method = self.project.method(owner, name)
        if method is None:
            return _NOTHING
        _, module, node = method
        return self.annotation(node.returns, module.scope)

    def _function(self, dotted: str) -> tuple[Module, Function] | None:
        return find_function(self.project, dotted)

    def annotation(self, node: ast.expr | None, scope: Scope) -> frozenset[str]:
        """The classes that an annotation names."""
        match node:
            case ast.Constant(value=str(text)):
                try:
                    quoted = ast.parse(text.strip(), mode="eval").body
                except (SyntaxError, ValueError, RecursionError):
                    return _NOTHING
                return self.annotation(quoted, scope)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.annotation(left, scope) | self.annotation(right, scope)
            case ast.Subscript(value=value, slice=inner):
                if _terminal(value) not in _WRAPPERS:
                    return _NOTHING
                many = isinstance(inner, ast.Tuple)
                parts = inner.elts if many else [inner]  # type: ignore[attr-defined]
                if _terminal(value) == "Annotated":
                    parts = parts[:1]
                return _union(self.annotation(part, scope) for part in parts)
            case ast.Name() | ast.Attribute():
                return self.project.resolve(node, scope) - _ANY
        return _NOTHING

    def attribute(self, owner: str, name: str, depth: int = _DEPTH) -> frozenset[str]:
        """The classes that an attribute of an instance may have.

        The nearest class of the hierarchy that says something decides.

        Args:
            owner: The instance's class.
            name: The attribute.
            depth: How far to follow assignments and calls.
        """
        key = (owner, name)
        if key not in self._attributes:
            self._attributes[key] = _NOTHING  # what a cycle gets
            found = _NOTHING
            for ancestor in self.project.ancestors(owner):
                for module, node in self.project.classes(ancestor):
                    found |= self._own_attribute(module, node, name, depth)
                if found:
                    break
            self._attributes[key] = found
        return self._attributes[key]

    def _own_attribute(
        self, module: Module, owner: ast.ClassDef, name: str, depth: int
    ) -> frozenset[str]:
        found = _NOTHING
        numbers = [
            number
            for number in module.line_numbers(name.encode())
            if owner.lineno <= number <= (owner.end_lineno or number)
        ]
        for site in module.sites(numbers):
            if site.owner is owner:
                match site.node:
                    case ast.AnnAssign(target=ast.Name(id=target)) if target == name:
                        found |= self.annotation(site.node.annotation, site.scope)
                    case ast.FunctionDef() if site.node.name == name:
                        if _PROPERTIES & set(map(_terminal, site.node.decorator_list)):
                            found |= self.annotation(site.node.returns, site.scope)
            elif site.scope.owner is owner:
                for value in _assigned(site.node, name):
                    found |= self.of(value, site.scope, depth)
                match site.node:
                    case ast.AnnAssign(annotation=said) if _is_own(
                        site.node.target, name
                    ):
                        found |= self.annotation(said, site.scope)
        return found


def find_function(project: Project, dotted: str) -> tuple[Module, Function] | None:
    """A function at a module's top level, or a method of a class there."""
    above, _, name = dotted.rpartition(".")
    if method := project.method(above, name) if project.classes(above) else None:
        return method[1], method[2]
    module = project.module(above) if above else None
    if module is None:
        return None
    for binding in module.scope.names.bound.get(name, ()):
        node = getattr(binding, "node", None)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return module, node
    return None


def _assigned(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """The values that a statement gives to an attribute of self."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from (v for t, v in pairs(target, value) if _is_own(t, name))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            if _is_own(target, name):
                yield value


def _is_own(target: ast.expr, name: str) -> bool:
    match target:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return attribute == name
    return False


def _is_first(node: Function, name: str) -> bool:
    """Whether a parameter is the instance."""
    decorators = set(map(_terminal, node.decorator_list))
    if decorators & {"staticmethod", "classmethod"}:
        return False
    return parameters(node)[:1] == [name]


def _terminal(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _terminal(func)
    return ""


def _looks_like_a_class(dotted: str) -> bool:
    """Whether something that is not at hand is named as classes are."""
    return dotted.rpartition(".")[2][:1].isupper()


def _union(sets: Iterator[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)
