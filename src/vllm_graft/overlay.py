"""A tree with changes on top, in memory."""

from __future__ import annotations

from collections.abc import Iterable

from vllm_graft.planner import FileChange
from vllm_graft.tree import Tree


class OverlayTree:
    """A tree as it will be once changes are made.

    Args:
        tree: The tree below; it is only read.
        changes: The changes.
    """

    def __init__(self, tree: Tree, changes: Iterable[FileChange]) -> None:
        self._tree = tree
        self._files = {change.path: change.after for change in changes}

    @property
    def name(self) -> str:
        """See :class:`vllm_graft.tree.Tree`."""
        return self._tree.name

    @property
    def version(self) -> str | None:
        """See :class:`vllm_graft.tree.Tree`."""
        return self._tree.version

    def read(self, path: str) -> bytes | None:
        """See :class:`vllm_graft.tree.Tree`."""
        return self._files[path] if path in self._files else self._tree.read(path)

    def has_folder(self, path: str) -> bool:
        """See :class:`vllm_graft.tree.Tree`."""
        return self._tree.has_folder(path)
