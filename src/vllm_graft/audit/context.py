"""What all kinds of rules have in common."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vllm_graft.audit.inference import Types
from vllm_graft.audit.modules import Module, Scope, Site
from vllm_graft.audit.project import Project
from vllm_graft.audit.rules import Rule


class Hit(NamedTuple):
    """A place that a rule is about.

    Args:
        node: The node.
        scope: The function around it, or the module.
        subject: What it is about; fills in the rule's message.
        detail: What was seen; fills in the rule's message.
        owner: The name of the class around it, where no function is.
    """

    node: ast.AST
    scope: Scope
    subject: str
    detail: str
    owner: str = ""


@dataclass
class Context:
    """What the audit knows.

    Args:
        project: Where names are looked up.
        base: The vLLM that the code builds on; None where it is missing.
        types: Infers the classes of expressions.
    """

    project: Project
    base: Project | None
    types: Types


class Kind:
    """Looks for the hits of one rule.

    Args:
        rule: The rule.
        context: What the audit knows.
    """

    #: Options that name the words whose lines are looked at.
    WORDS: tuple[str, ...] = ()
    #: Where on a line a word counts; ``{}`` stands for the words.
    PATTERN = r"\.\s*(?:{})\s*\("

    def __init__(self, rule: Rule, context: Context) -> None:
        self.rule = rule
        self.context = context
        self.project = context.project
        self.types = context.types

    @classmethod
    def pattern(cls, rule: Rule) -> tuple[frozenset[bytes], re.Pattern[bytes]]:
        """What a file must hold to be worth parsing: some word, and the pattern."""
        names = {n.rpartition(".")[2] for o in cls.WORDS for n in rule.all(o)}
        text = cls.PATTERN.replace("{}", "|".join(sorted(names)))
        return frozenset(n.encode() for n in names), re.compile(text.encode())

    def hits(self, sites: list[Site]) -> Iterator[Hit]:
        """The hits among some nodes.

        Args:
            sites: The nodes around the lines that the pattern matches, of one module.
        """
        raise NotImplementedError

    def names(self, option: str) -> frozenset[str]:
        """What the names of an option stand for in this project."""
        found: set[str] = set()
        for name in self.rule.all(option):
            found |= {name, *self.project.canonical(name)}
        return frozenset(found)

    def mixed(self, module: Module, targets: frozenset[str]) -> dict[str, str]:
        """The classes that a subclass of some others mixes in, and the subclass.

        Only for mixins and subclasses in the same module.
        """
        mixed: dict[str, str] = {}
        beyond = {a for target in targets for a in self.project.ancestors(target)}
        for dotted in module.top_classes():
            if dotted in targets or not self.is_a(dotted, targets):
                continue
            for ancestor in self.project.ancestors(dotted):
                if ancestor not in beyond and not self.is_a(ancestor, targets):
                    mixed.setdefault(ancestor, dotted)
        return mixed

    def is_a(self, dotted: str, targets: frozenset[str]) -> bool:
        """Whether a class is one of some others, or inherits from one."""
        return self.project.is_a(dotted, targets)


def short(dotted: str) -> str:
    """A name without its module, as far as case tells."""
    parts = dotted.replace(".<locals>", "").split(".")
    for number, part in enumerate(parts):
        if part[:1].isupper():
            return ".".join(parts[number:])
    return parts[-1]


def cut(text: str, width: int = 60) -> str:
    """A text on one line, no wider than asked for."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."


def receiver(call: ast.Call, methods: frozenset[str]) -> ast.expr | None:
    """What one of some methods is called on; None for any other call."""
    match call.func:
        case ast.Attribute(value=value, attr=name) if name in methods:
            return value
    return None


def terminal(node: ast.AST) -> str:
    """The last part of a dotted expression; empty for any other."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def instance_of(scope: Scope) -> str:
    """The class whose method a scope is part of; empty if it is part of none."""
    for around in scope.chain():
        if around.owner is not None:
            return around.module.class_name(around.owner)
    return ""
