"""The rules of a series: ``patches/<series>/audit.toml``."""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_graft.catalog import series_folder, series_names
from vllm_graft.errors import PatchError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RULES_FILE: Final = "audit.toml"

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
#: What an option may hold: words, or qualified names (``module:Qualified.name``).
_FORMS: Final = {
    "word": (re.compile(r"[A-Za-z_]\w*"), "an identifier"),
    "name": (re.compile(f"{_NAME}:{_NAME}"), "a name in the form 'module:Class.name'"),
}


class Option(NamedTuple):
    """An option of a kind: a list of words or names, or one of them."""

    form: str
    required: bool = False
    single: bool = False


_WORDS, _NAMES = Option("word"), Option("name")
_SOME_WORDS, _SOME_NAMES = Option("word", required=True), Option("name", required=True)
_WORD = Option("word", required=True, single=True)

#: The kinds of rules, and what each wants to know; `kinds` has a module for each.
KINDS: Final[Mapping[str, Mapping[str, Option]]] = {
    "attribute-read": {
        "classes": _SOME_NAMES,
        "attributes": _SOME_WORDS,
        "holders": _WORDS,
    },
    "super-result": {
        "classes": _SOME_NAMES,
        "methods": _SOME_WORDS,
        "unresolved": _SOME_NAMES,
        "resolve": _WORD,
        "resolved": _NAMES,
        "consumers": _WORDS,
    },
    "call-result": {
        "classes": _SOME_NAMES,
        "methods": _SOME_WORDS,
        "passing": _WORDS,
        "unresolved": _SOME_NAMES,
        "resolve": _WORD,
        "resolved": _NAMES,
        "holders": _WORDS,
        "wrappers": _NAMES,
        "inner": Option("word", single=True),
        "allow": _WORDS,
        "consumers": _WORDS,
        "exempt": _NAMES,
    },
    "blocking-path": {
        "classes": _SOME_NAMES,
        "methods": _SOME_WORDS,
        "flag": _WORD,
        "producers": _SOME_NAMES,
        "producer_methods": _WORDS,
        "unresolved": _SOME_NAMES,
        "resolve": _WORD,
        "handled": _NAMES,
    },
    "needless-resolve": {
        "classes": _SOME_NAMES,
        "methods": _SOME_WORDS,
        "unresolved": _SOME_NAMES,
        "resolve": _WORD,
        "holders": _WORDS,
        "through": _WORDS,
    },
    "drifted-copy": {"functions": _SOME_NAMES, "always": _NAMES},
    "monkey-patch": {"targets": _SOME_NAMES},
}

_TEXTS: Final = ("id", "name", "message", "fix", "help")
_LEVELS: Final = ("error", "warning", "note")
_ID: Final = re.compile(r"(?!AUDIT)[A-Z]{2,8}[0-9]{3}")
_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
#: Put into a rule's message: what the finding is about, and what was seen.
FIELDS: Final = ("subject", "detail")


class Rule(NamedTuple):
    """One rule.

    Args:
        id: Stable, as in ``AO001``.
        name: A few words in kebab-case.
        kind: One of :data:`KINDS`.
        level: ``error``, ``warning`` or ``note``.
        message: Why the code breaks; ``{subject}`` and ``{detail}`` are filled in.
        fix: What to do.
        help: More about it, for those who see the rule for the first time.
        series: The series that brings it; empty for the audit's own rules.
        options: What the kind wants to know. Names are dotted, without a colon.
    """

    id: str
    name: str
    kind: str
    level: str
    message: str
    fix: str
    help: str
    series: str
    options: Mapping[str, tuple[str, ...]]

    def all(self, option: str) -> tuple[str, ...]:
        """The values of an option."""
        return self.options.get(option, ())

    def one(self, option: str) -> str:
        """The value of an option that takes one; empty if it is not set."""
        return "".join(self.all(option))


def known_ids() -> set[str]:
    """The ids of the rules of all series that come with the tool."""
    return {rule.id for rule in load_rules(series_names())}


def load_rules(names: Iterable[str | Path]) -> list[Rule]:
    """The rules of several series.

    Args:
        names: Series by name or folder. Those without rules add none.

    Raises:
        PatchError: There is no such series, a rule is malformed, or two rules have
            the same id.
    """
    rules: dict[str, Rule] = {}
    for name in names:
        for rule in series_rules(series_folder(name)):
            if rule.id in rules:
                raise PatchError(
                    f"rule {rule.id} is also a rule of {rules[rule.id].series}",
                    where=str(series_folder(name) / RULES_FILE),
                    hint="give it an id of its own",
                )
            rules[rule.id] = rule
    return list(rules.values())


def series_rules(folder: Path) -> list[Rule]:
    """The rules of the series in a folder; none where it brings no file.

    Raises:
        PatchError: The file or a rule in it is malformed.
    """
    path = folder / RULES_FILE
    try:
        data = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise PatchError(
            f"cannot be read: {error}", where=str(path), hint="correct the file"
        ) from error
    tables = data.pop("rule", [])
    if data or not isinstance(tables, list) or not tables:
        unknown = ", ".join(sorted(data)) or "no rule"
        raise PatchError(
            f"holds {unknown}",
            where=str(path),
            hint="write nothing but [[rule]] tables, one or more",
        )
    rules: dict[str, Rule] = {}
    for number, table in enumerate(tables, 1):
        rule = _Reader(path, number, table).rule(folder.resolve().name)
        if rule.id in rules:
            raise PatchError(
                f"rule {rule.id} stands there twice",
                where=str(path),
                hint="give one of them another id",
            )
        rules[rule.id] = rule
    return list(rules.values())


class _Reader:
    """Reads one table, strictly."""

    def __init__(self, path: Path, number: int, table: Any) -> None:
        self.path = path
        self.table: dict[str, Any] = table if isinstance(table, dict) else {}
        self.label = str(self.table.get("id") or f"number {number}")

    def rule(self, series: str) -> Rule:
        texts = {key: self._text(key) for key in _TEXTS}
        self._expect(_ID, texts["id"], "id", "capitals, not AUDIT, and three digits")
        self._expect(_KEBAB, texts["name"], "name", "words in kebab-case")
        kind = self._text("kind")
        if kind not in KINDS:
            raise self._error(f"unknown kind {kind!r}", f"one of {', '.join(KINDS)}")
        level = self.table.get("level", "error")
        if level not in _LEVELS:
            raise self._error(f"unknown level {level!r}", f"one of {_LEVELS}")
        self._check_fields(texts["message"])
        unknown = {*self.table} - {*_TEXTS, "kind", "level"} - {*KINDS[kind]}
        if unknown:
            raise self._error(
                f"unknown key {min(unknown)!r}",
                f"{kind} takes {', '.join(KINDS[kind])}",
            )
        options = {
            key: self._option(key, option)
            for key, option in KINDS[kind].items()
            if option.required or key in self.table
        }
        return Rule(kind=kind, level=level, series=series, options=options, **texts)

    def _text(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._error(f"no {key}", f"set {key} to a text")
        return " ".join(value.split())

    def _option(self, key: str, option: Option) -> tuple[str, ...]:
        value = self.table.get(key)
        values = [value] if option.single else value
        if not isinstance(values, list) or not values:
            expected = "a text" if option.single else "a list of texts"
            raise self._error(f"no {key}", f"set {key} to {expected}")
        pattern, described = _FORMS[option.form]
        for item in values:
            self._expect(pattern, item, key, described)
        return tuple(item.replace(":", ".") for item in values)

    def _expect(
        self, pattern: re.Pattern[str], value: Any, key: str, described: str
    ) -> None:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self._error(f"{key} holds {value!r}", f"write {described}")

    def _check_fields(self, message: str) -> None:
        try:
            fields = [part[1:] for part in string.Formatter().parse(message)]
        except ValueError as error:
            raise self._error(f"message: {error}", "double each brace") from error
        if {*fields} - {(None, None, None), *((name, "", None) for name in FIELDS)}:
            raise self._error(
                "message has an unknown field", "use {subject} and {detail}"
            )

    def _error(self, message: str, hint: str) -> PatchError:
        return PatchError(
            f"rule {self.label}: {message}", where=str(self.path), hint=hint
        )
