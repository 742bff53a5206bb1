"""``# graft: ignore[RULE] reason``, on the line of a finding or above it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final, NamedTuple

from vllm_graft.audit.findings import Finding, Region
from vllm_graft.audit.modules import Module
from vllm_graft.audit.rules import Rule

#: What a file with an ignore holds.
MARK: Final = b"graft: ignore"

_COMMENT: Final = re.compile(r"#\s*graft: ignore(?:\[(?P<rules>[^\]]*)\])?(?P<why>.*)")


def _own(number: int, name: str, message: str, fix: str) -> Rule:
    about = "An ignore is a promise to the next reader: it names a rule and a reason."
    return Rule(f"AUDIT{number:03}", name, "", "error", message, fix, about, "", {})


_SYNTAX: Final = "write '# graft: ignore[RULE] why it is right here'"
NO_REASON: Final = _own(
    1, "ignore-without-reason", "the ignore {detail}, and suppresses nothing", _SYNTAX
)
UNKNOWN_RULE: Final = _own(
    2,
    "ignore-of-unknown-rule",
    "the ignore names {subject}, which is no rule",
    "correct the rule's id, or delete the comment",
)
UNUSED: Final = _own(
    3,
    "unused-ignore",
    "the ignore of {subject} suppresses nothing",
    "delete the comment",
)
OWN_RULES: Final = (NO_REASON, UNKNOWN_RULE, UNUSED)


class Ignore(NamedTuple):
    """A comment.

    Args:
        region: Where it is.
        targets: The lines whose findings it suppresses.
        rules: The ids that it names.
        reason: The text behind them.
    """

    region: Region
    targets: tuple[int, ...]
    rules: tuple[str, ...]
    reason: str


def read_ignores(module: Module) -> list[Ignore]:
    """The comments of a module."""
    if MARK not in module.data:
        return []
    text = "\n".join(module.lines)
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = (
            _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        )
        if match is None:
            continue
        line, column = token.start
        begin = column + match.start() + 1
        place = Region(line, begin, line, column + len(token.string) + 1)
        alone = not token.line[:column].strip()
        target = _next_code(module.lines, line) if alone else line
        targets = (target, *_decorated(module, target))
        names = (match["rules"] or "").split(",")
        rules = tuple(name.strip() for name in names if name.strip())
        found.append(Ignore(place, targets, rules, match["why"].strip(" :-")))
    return found


def _next_code(lines: list[str], line: int) -> int:
    for number in range(line, len(lines)):
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            return number + 1
    return line


def apply_ignores(
    module: Module,
    path: str,
    findings: list[Finding],
    known: set[str],
    active: set[str],
) -> Iterator[Finding]:
    """The findings, suppressed where a comment says so, and what is wrong with those.

    Args:
        module: The module.
        path: Its file, to be shown.
        findings: The findings in it.
        known: The ids of all rules there are.
        active: The ids of the rules that were looked for.
    """
    ignores = read_ignores(module)
    suppressed: dict[int, Ignore] = {}
    for ignore in ignores:
        used = set()
        for number, finding in enumerate(findings):
            if _lines_of(finding).isdisjoint(ignore.targets):
                continue
            if finding.rule.id in ignore.rules and ignore.reason:
                suppressed[number] = ignore
                used.add(finding.rule.id)
        for rule, subject, detail in _faults(ignore, used, known, active):
            anchor = module.lines[ignore.region.line - 1].strip()
            place = ignore.region
            home = module.file.home
            yield Finding(rule, path, place, "", subject, detail, anchor, home)
    for number, finding in enumerate(findings):
        by = suppressed.get(number)
        yield finding.suppress("comment", by.reason) if by else finding


def _decorated(module: Module, line: int) -> Iterator[int]:
    """The line of the definition that a decorator on a line belongs to."""
    if not module.lines[line - 1].lstrip().startswith("@"):
        return
    for node in ast.walk(module.tree):
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        if any(d.lineno <= line <= (d.end_lineno or line) for d in decorators):
            yield getattr(node, "lineno", line)


def _lines_of(finding: Finding) -> set[int]:
    """The lines where a comment counts: the first and, of an expression, the last."""
    first, last = finding.region.line, finding.region.end_line
    return {first, last}


def _faults(
    ignore: Ignore, used: set[str], known: set[str], active: set[str]
) -> Iterator[tuple[Rule, str, str]]:
    if not ignore.rules:
        yield NO_REASON, "", "names no rule"
        return
    unknown = [name for name in ignore.rules if name not in known]
    for name in unknown:
        yield UNKNOWN_RULE, name, ""
    if not ignore.reason:
        yield NO_REASON, "", "gives no reason"
        return
    for name in ignore.rules:
        if name in active and name not in used:
            yield UNUSED, name, ""


def anchor(node: ast.AST) -> str:
    """What stands there, however it is laid out: one line of it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return f"def {node.name}"
    return ast.unparse(node).partition("\n")[0]
