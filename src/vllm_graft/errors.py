"""The one exception that users see, and its few kinds."""

from __future__ import annotations


class GraftError(Exception):
    """Bad input or a failed precondition; nothing was changed.

    Args:
        message: What is wrong, as one sentence without a full stop.
        where: The file, and line and column where known (``path:line:column``).
        hint: The next step for the user, as an imperative sentence.
    """

    def __init__(
        self, message: str, *, where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def to_json(self) -> dict[str, str | None]:
        """The documented JSON form."""
        return {"message": self.message, "where": self.where, "hint": self.hint}


class PatchError(GraftError):
    """A semantic patch file is malformed."""


class SourceError(GraftError):
    """A target file cannot be read as Python source."""


class TreeError(GraftError):
    """The tree is not a vLLM tree, or changed under us, or cannot be written."""


class GitError(GraftError):
    """A git command failed, or the repository is not in a state to commit."""


class FetchError(GraftError):
    """A release could not be read from the package index."""
