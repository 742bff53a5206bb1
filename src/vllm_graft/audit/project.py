"""Finds out what a name stands for, across all that is audited and its vLLM.

Everything is named by where it is defined: ``package.module.Class.method``. What is
not at hand keeps the name under which it is imported, so that code is also understood
where the vLLM that it builds on is missing.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from vllm_graft.audit.files import SourceFile
from vllm_graft.audit.findings import Note
from vllm_graft.audit.modules import Module, Scope
from vllm_graft.audit.names import Alias, Binding, Definition, Function, Import

Seen = frozenset[object]
_NONE: Seen = frozenset()


class Project:
    """The modules, parsed when they are first asked for.

    Args:
        roots: The folders that imports start from, in the order of their rank.
        notes: What cannot be read or parsed is added here.
        files: Files whose names are known already, by their paths.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        notes: list[Note],
        files: Mapping[str, SourceFile] | None = None,
    ) -> None:
        self.roots = tuple(dict.fromkeys(roots))
        self._files = files or {}
        self.notes = notes
        self._modules: dict[str, Module | None] = {}
        self._found: dict[tuple[Path | None, str], SourceFile | None] = {}
        self._tops: dict[str, list[Path]] = {}
        #: Modules that are no part of a package, by names of our own.
        self._scripts: dict[str, SourceFile] = {}
        self.ancestors = cache(self._ancestors)

    # Modules.

    def load(self, file: SourceFile, data: bytes | None = None) -> Module | None:
        """A file's module; None where it cannot be read or parsed.

        Args:
            file: The file.
            data: Its content, where it is known already.
        """
        key = str(file.path)
        if key not in self._modules:
            self._modules[key] = self._parse(file, data)
        return self._modules[key]

    def _parse(self, file: SourceFile, data: bytes | None) -> Module | None:
        where = str(file.path)
        try:
            module = Module(file, file.path.read_bytes() if data is None else data)
            if file.root not in self.roots:
                # Others may have the same name in folders of their own.
                module.name = f"{file.path.stem}@{len(self._scripts)}".replace(".", "_")
                self._scripts[module.name] = file
            return module
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
        except SyntaxError as error:
            where = f"{where}:{error.lineno}" if error.lineno else where
            message = f"cannot be parsed: {error.msg}"
        except (RecursionError, MemoryError):
            message = "cannot be parsed: nested too deeply"
        except ValueError as error:  # a null byte
            message = f"cannot be parsed: {error}"
        self.notes.append(Note(where, message))
        return None

    def module(self, dotted: str, near: Path | None = None) -> Module | None:
        """The module of a dotted name; None where it is not at hand.

        Args:
            dotted: The name.
            near: A folder to look in before the roots.
        """
        file = self._find(dotted, near)
        return self.load(file) if file else None

    def _find(self, dotted: str, near: Path | None) -> SourceFile | None:
        if "@" in dotted:
            return self._scripts.get(dotted)
        near = None if near in self.roots else near
        key = (near, dotted)
        if key not in self._found:
            top, _, _ = dotted.partition(".")
            if top not in self._tops:
                self._tops[top] = [r for r in self.roots if _has(r, top)]
            roots = self._tops[top]
            if near is not None and _has(near, top):
                roots = [near, *roots]
            self._found[key] = next(
                filter(None, (self._at(r, dotted) for r in roots)), None
            )
        return self._found[key]

    def _at(self, root: Path, dotted: str) -> SourceFile | None:
        base = os.path.join(root, *dotted.split("."))  # noqa: PTH118
        for path in (f"{base}{os.sep}__init__.py", f"{base}.py"):
            if os.path.isfile(path):  # noqa: PTH113
                return self._files.get(path) or SourceFile(Path(path), root, dotted)
        return None

    # Names.

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
        unknown = [
            star for star in module.scope.names.stars if self.module(star) is None
        ]
        if not found and unknown:  # it may come from there
            return frozenset(".".join([star, *path]) for star in unknown)
        return frozenset(found or {".".join([module.name, *path])})

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

    # Classes.

    def classes(self, dotted: str) -> list[tuple[Module, ast.ClassDef]]:
        """The definitions of a class; more than one where branches define it."""
        parts = dotted.split(".")
        for size in range(len(parts) - 1, 0, -1):
            module = self.module(".".join(parts[:size]))
            if module is not None:
                return [(module, node) for node in module.find(parts[size:])]
        return []

    def _ancestors(self, dotted: str) -> tuple[str, ...]:
        """A class and its bases, nearest first, each once."""
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


def _has(root: Path, top: str) -> bool:
    base = os.path.join(root, top)  # noqa: PTH118
    return os.path.isdir(base) or os.path.isfile(f"{base}.py")  # noqa: PTH112, PTH113
