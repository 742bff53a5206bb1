"""One parsed module: its names, its definitions, and the code around a line."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from vllm_graft.audit.files import SourceFile
from vllm_graft.audit.names import Function, Names, blocks

_LINE_END: Final = re.compile(rb"\r\n?|\n")


class Scope:
    """A function, or the module itself: where names are looked up.

    Args:
        module: The module.
        node: The function; None for the module.
        parent: The scope around it.
        owner: The class that it is a method of.
        name: Dotted, within the module; empty for the module.
    """

    def __init__(
        self,
        module: Module,
        node: Function | None = None,
        parent: Scope | None = None,
        owner: ast.ClassDef | None = None,
        name: str = "",
    ) -> None:
        self.module = module
        self.node = node
        self.parent = parent
        self.owner = owner
        self.name = name

    @cached_property
    def names(self) -> Names:
        """What the scope itself binds."""
        body = self.node.body if self.node else self.module.tree.body
        return Names(body, self.module.absolute)

    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Site(NamedTuple):
    """A node, and where it stands.

    Args:
        node: The node.
        scope: The function around it, or the module.
        owner: The class around it, where it stands in the class's own body.
    """

    node: ast.AST
    scope: Scope
    owner: ast.ClassDef | None


class Module:
    """A parsed module.

    Args:
        file: The file.
        data: Its content.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It holds a null byte.
        RecursionError: It is nested too deeply.
        MemoryError: The same.
    """

    def __init__(self, file: SourceFile, data: bytes) -> None:
        self.file = file
        self.name = file.name
        self.data = data
        with warnings.catch_warnings():
            # An invalid escape in somebody's code is not our business.
            warnings.simplefilter("ignore")
            self.tree = ast.parse(data, filename=str(file.path))
        self.scope = Scope(self)
        self._scopes: dict[ast.AST, Scope] = {}
        self._classes: dict[ast.ClassDef, tuple[str, Scope]] = {}

    @cached_property
    def lines(self) -> list[str]:
        """The source's lines, decoded as Python does."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(self.data).readline)
        try:
            text = self.data.decode(encoding)
        except UnicodeError:  # Python decodes by the line, some codecs by the whole
            text = self.data.decode(errors="replace")
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.data))]

    def line_at(self, offset: int) -> int:
        """The 1-based line of a byte."""
        return bisect.bisect_right(self._starts, offset)

    def matching_lines(self, pattern: re.Pattern[bytes]) -> list[int]:
        """The lines where a pattern matches, ascending."""
        found: set[int] = set()
        for match in pattern.finditer(self.data):
            found.update((self.line_at(match.start()), self.line_at(match.end() - 1)))
        return sorted(found)

    def line_numbers(self, word: bytes) -> list[int]:
        """The lines that hold a word, ascending."""
        return self.matching_lines(re.compile(re.escape(word)))

    def absolute(self, statement: ast.ImportFrom) -> str:
        """The dotted name of the module that a statement imports from."""
        if not statement.level:
            return statement.module or ""
        parts = self.file.name.split(".")
        drop = statement.level - self.file.is_package
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, statement.module] if statement.module else base)

    def class_name(self, node: ast.ClassDef) -> str:
        """A class's dotted name, from the import root on."""
        known = self._classes.get(node)
        return f"{self.name}.{known[0] if known else node.name}"

    def class_scope(self, node: ast.ClassDef) -> Scope:
        """Where the names in a class's header are looked up."""
        known = self._classes.get(node)
        return known[1] if known else self.scope

    def sites(self, numbers: Sequence[int]) -> Iterator[Site]:
        """Every node of the innermost statements around some lines.

        Args:
            numbers: Lines, ascending.
        """
        yield from self._visit(self.tree.body, numbers, self.scope, None, "")

    def top_classes(self) -> list[str]:
        """The dotted names of the classes that stand in no other definition."""
        return [f"{self.name}.{node.name}" for node in _classes(self.tree.body)]

    def find(self, path: Sequence[str]) -> list[ast.ClassDef]:
        """The definitions of a class, by the parts of its name in the module."""
        if "<locals>" in path:
            wanted = ".".join(path)
            return [n for n, (name, _) in self._classes.items() if name == wanted]
        body: Sequence[ast.stmt] = self.tree.body
        prefix = ""
        found: list[ast.ClassDef] = []
        for part in path:
            found = [node for node in _classes(body) if node.name == part]
            for node in found:
                self._classes.setdefault(node, (f"{prefix}{part}", self.scope))
            body = [inner for node in found for inner in node.body]
            prefix += f"{part}."
        return found

    def function(self, owner: ast.ClassDef, name: str) -> Function | None:
        """A method that a class itself defines; the last of that name."""
        found = None
        for node in _functions(owner.body):
            if node.name == name:
                found = node
        return found

    def method_scope(self, owner: ast.ClassDef, node: Function) -> Scope:
        """The scope of a method."""
        if node not in self._scopes:
            name = f"{self.class_name(owner)}.{node.name}".removeprefix(f"{self.name}.")
            scope = Scope(self, node, self.class_scope(owner), owner, name)
            self._scopes[node] = scope
        return self._scopes[node]

    def scope_of(self, node: Function) -> Scope:
        """The scope of a function that :meth:`sites` has come across."""
        return self._scopes[node]

    def _visit(
        self,
        body: Sequence[ast.stmt],
        numbers: Sequence[int],
        scope: Scope,
        owner: ast.ClassDef | None,
        prefix: str,
    ) -> Iterator[Site]:
        for statement in body:
            if not _covers(statement, numbers):
                continue
            name = f"{prefix}{getattr(statement, 'name', '')}"
            if isinstance(statement, ast.ClassDef):
                self._classes.setdefault(statement, (name, scope))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = Scope(self, statement, scope, owner, name)
                self._scopes.setdefault(statement, inner)
            yield Site(statement, scope, owner)
            for part in _expressions(statement):
                for node in ast.walk(part):
                    yield Site(node, scope, owner)
            match statement:
                case ast.ClassDef(body=inside):
                    yield from self._visit(
                        inside, numbers, scope, statement, f"{name}."
                    )
                case ast.FunctionDef(body=inside) | ast.AsyncFunctionDef(body=inside):
                    inner = self._scopes[statement]
                    yield from self._visit(
                        inside, numbers, inner, None, f"{name}.<locals>."
                    )
                case _:
                    for block in blocks(statement):
                        yield from self._visit(block, numbers, scope, owner, prefix)


def _classes(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield statement
        for block in blocks(statement):
            yield from _classes(block)


def _functions(body: Sequence[ast.stmt]) -> Iterator[Function]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement
        for block in blocks(statement):
            yield from _functions(block)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that are not statements."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.ExceptHandler):
            if child.type is not None:
                yield child.type
        elif isinstance(child, ast.match_case):
            yield child.pattern
            if child.guard is not None:
                yield child.guard
        elif not isinstance(child, ast.stmt):
            yield child


def _covers(statement: ast.stmt, numbers: Sequence[int]) -> bool:
    first = statement.lineno
    if decorators := getattr(statement, "decorator_list", None):
        first = min(first, decorators[0].lineno)
    at = bisect.bisect_left(numbers, first)
    return at < len(numbers) and numbers[at] <= (statement.end_lineno or first)
