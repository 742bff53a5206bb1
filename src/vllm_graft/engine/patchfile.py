"""Semantic patch files: the data model, and printing it back exactly.

A file is a mail header, a commit message, ``---``, and then for each target file
a ``---``/``+++`` pair, post-conditions and hunks. :mod:`vllm_graft.engine.parser` reads
it; ``str(patch)`` gives back the text that was read, byte for byte.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Kind = Literal[" ", "-", "+", "#"]
_SWAP: Final[dict[Kind, Kind]] = {"-": "+", "+": "-", " ": " ", "#": "#"}
DEV_NULL: Final = "/dev/null"


class Line(NamedTuple):
    """One line of a hunk.

    Args:
        kind: ``" "`` context, ``"-"`` removed, ``"+"`` added, ``"#"`` a comment
            on the patch itself.
        text: The line without its first character and line ending.
        number: Its 1-based line in the patch file.
    """

    kind: Kind
    text: str
    number: int
    bare: bool = False  # an empty line without " "

    def __str__(self) -> str:
        return "" if self.bare else self.kind + self.text

    def reversed(self) -> Line:
        """The line as the reverse patch has it."""
        return self._replace(kind=_SWAP[self.kind])


class Where(NamedTuple):
    """``where $NAME in EXPRESSION, …``: what a metavariable may bind."""

    name: str
    choices: str
    number: int

    def __str__(self) -> str:
        return f"where ${self.name} in {self.choices}"


class Condition(NamedTuple):
    """``ensure SCOPE has [no] PATTERN`` or ``when SCOPE has [no] PATTERN``.

    Args:
        keyword: ``ensure`` (a post-condition) or ``when`` (a guard).
        scope: The scope glob to look in.
        negated: Whether the pattern must be absent.
        lines: The pattern, as context lines.
        others: Other patterns, each below a line ``or``; one of all is enough.
        wheres: What their metavariables may bind.
    """

    keyword: Literal["ensure", "when"]
    scope: str
    negated: bool
    lines: tuple[Line, ...]
    number: int
    inline: bool = True
    others: tuple[tuple[Line, ...], ...] = ()
    wheres: tuple[Where, ...] = ()

    def __str__(self) -> str:
        head = f"{self.keyword} {self.scope} has{' no' if self.negated else ''}"
        if self.inline:
            return "\n".join(
                [f"{head} {self.lines[0].text}", *map(str, self.lines[1:])]
            )
        others = (line for lines in self.others for line in ("or", *lines))
        return "\n".join([head, *map(str, (*self.wheres, *self.lines, *others))])

    @property
    def summary(self) -> str:
        """The condition on one line, for messages."""
        lines = (line.text.strip() for line in self.lines if line.kind == " ")
        pattern = " ".join(lines)
        return f"{self.scope} has{' no' if self.negated else ''} `{pattern}`"


class Alternative(NamedTuple):
    """One way to write a hunk: its lines, with the header line above them.

    Args:
        header: The ``@@`` line.
        lines: The lines below it.
        number: The 1-based line of the header in the patch file.
        origin: What this is the reverse of.
    """

    header: str
    lines: tuple[Line, ...]
    number: int
    origin: tuple[Line, ...] | None = None

    def reversed(self) -> Alternative:
        """The alternative with its views swapped, removals first."""
        if self.origin is not None:
            return self._replace(lines=self.origin, origin=None)
        lines: list[Line] = []
        block: list[Line] = []
        for line in (*map(Line.reversed, self.lines), None):
            if line is not None and line.kind in "-+":
                block.append(line)
                continue
            lines += sorted(block, key=lambda x: x.kind == "+")
            block.clear()
            if line is not None:
                lines.append(line)
        return self._replace(lines=tuple(lines), origin=self.lines)

    def __str__(self) -> str:
        return "\n".join([self.header, *map(str, self.lines)])


class Hunk(NamedTuple):
    """A change at one place, or at ``least`` to ``most`` like places.

    Args:
        scopes: Globs over qualified names; a match in any of them counts.
            ``<module>`` is the whole file.
        least: The fewest places it must match.
        most: The most places it may match, or None for any number.
        optional: Whether a tree without the place is in order.
        conditions: Guards; the hunk is for trees where all of them hold once
            the patch is applied.
        wheres: What metavariables may bind.
        alternatives: The ways to write it, the preferred one first.
    """

    scopes: tuple[str, ...]
    least: int
    most: int | None
    optional: bool
    conditions: tuple[Condition, ...]
    wheres: tuple[Where, ...]
    alternatives: tuple[Alternative, ...]

    @property
    def number(self) -> int:
        """The 1-based line of the hunk's header in the patch file."""
        return self.alternatives[0].number

    @property
    def scope(self) -> str:
        """The scopes as the header has them."""
        return ", ".join(self.scopes)

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        return self._replace(
            alternatives=tuple(a.reversed() for a in self.alternatives)
        )

    def __str__(self) -> str:
        first, *others = map(str, self.alternatives)
        head, newline, rest = first.partition("\n")
        directives = [*map(str, self.wheres), *map(str, self.conditions)]
        return "\n".join([head, *directives, *([rest] if newline else []), *others])


class FilePatch(NamedTuple):
    """The changes to one file.

    Args:
        old: Its path before, relative to the tree's root, or None for a new file.
        new: Its path after, or None for a file that goes.
        conditions: Post-conditions on the patched file.
        hunks: In the order of the patch file; empty for a new file, whose
            content stands in the series' ``files`` folder.
    """

    old: str | None
    new: str | None
    conditions: tuple[Condition, ...]
    hunks: tuple[Hunk, ...]
    number: int
    remarks: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of the file, relative to the tree's root."""
        path = self.new or self.old
        assert path is not None
        return path

    def reversed(self) -> FilePatch:
        """The changes that undo these."""
        hunks = tuple(hunk.reversed() for hunk in self.hunks)
        return self._replace(old=self.new, new=self.old, hunks=hunks)

    def __str__(self) -> str:
        old = f"a/{self.old}" if self.old else DEV_NULL
        new = f"b/{self.new}" if self.new else DEV_NULL
        head = [f"--- {old}", f"+++ {new}", *self.remarks]
        return "\n".join([*head, *map(str, self.conditions), *map(str, self.hunks)])


class Patch(NamedTuple):
    """One semantic patch: one commit.

    Args:
        path: The patch file's name, for messages.
        headers: The mail header's fields, in order.
        body: The commit message below the subject.
        files: The changes, file by file.
        reverse: Whether this undoes the patch as written.
    """

    path: str
    headers: tuple[tuple[str, str], ...]
    body: str
    files: tuple[FilePatch, ...]
    tail: str = "\n"
    reverse: bool = False

    def header(self, name: str) -> str | None:
        """A field of the mail header, or None."""
        wanted = name.lower()
        return next((v for k, v in self.headers if k.lower() == wanted), None)

    @property
    def name(self) -> str:
        """The patch file's own name."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def subject(self) -> str:
        """The commit's subject line."""
        return self.header("Subject") or self.name

    @property
    def requires(self) -> tuple[str, ...]:
        """Files without which the patch has no meaning in a tree."""
        return tuple((self.header("Requires") or "").split())

    @property
    def targets(self) -> tuple[str, ...]:
        """The paths it changes."""
        return tuple(file.path for file in self.files)

    def reversed(self) -> Patch:
        """The patch with its views swapped: to revert is to apply this."""
        files = tuple(file.reversed() for file in self.files)
        return self._replace(files=files, reverse=not self.reverse)

    def __str__(self) -> str:
        head = "".join(f"{name}: {value}\n" for name, value in self.headers)
        files = "\n".join(map(str, self.files))
        return f"{head}\n{self.body}---\n{files}{self.tail}"
