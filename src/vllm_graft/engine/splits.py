"""Line numbers of a file whose shared lines were split, as the file has them."""

from __future__ import annotations


class Splits:
    """The splits made so far, each on the result of those before it."""

    def __init__(self) -> None:
        self._made: list[tuple[int, int]] = []

    def add(self, line: int, added: int) -> None:
        """Records that ``line`` was split, which gave ``added`` more lines."""
        self._made.append((line, added))

    def original(self, line: int) -> int:
        """The line of the file that a line of the split text stands on."""
        for at, added in reversed(self._made):
            line = line - added if line > at + added else min(line, at)
        return line

    def __len__(self) -> int:
        return len(self._made)
