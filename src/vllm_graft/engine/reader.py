"""The lines of a patch file with a position, for its parser."""

from __future__ import annotations

from typing import NoReturn

from vllm_graft.errors import PatchError


class Reader:
    """The lines of one patch file, with a position."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")
        self.tail = ""
        while self.lines and not self.lines[-1]:
            self.lines.pop()
            self.tail += "\n"
        self.at = 0

    @property
    def number(self) -> int:
        return self.at + 1

    @property
    def line(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def take(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def fail(self, message: str, hint: str, number: int | None = None) -> NoReturn:
        raise PatchError(
            message, where=f"{self.path}:{number or self.number}", hint=hint
        )
