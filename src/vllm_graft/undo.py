"""Records of originals, so that reverting gives back every byte.

A reverse patch writes removed code as the patch file spells it. Where the tree had
it in another layout, or with comments, only a record of the original knows. Records
are hints: one is used only if applying the patch to it gives exactly the bytes that
are there now, so a lost or stale record changes nothing but layout.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_graft.cache import cache_dir
from vllm_graft.errors import GraftError
from vllm_graft.source import Source

if TYPE_CHECKING:
    from vllm_graft.plan import FileChange
    from vllm_graft.series import SeriesPatch

_MOST = 500


class UndoStore:
    """A folder of records.

    Args:
        folder: The folder; by default ``undo`` in the cache folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The folder, made on demand."""
        if self._folder is None:
            self._folder = cache_dir("undo")
        return self._folder

    def remember(self, item: SeriesPatch, changes: Sequence[FileChange]) -> None:
        """Records what a patch changed. Failing to is no error."""
        try:
            for change in changes:
                if change.before is not None and change.after is not None:
                    record = self.folder / _key(item, change.path, change.after)
                    record.write_bytes(zlib.compress(change.before, 1))
            self._prune()
        except OSError:
            return

    def recall(self, item: SeriesPatch, path: str, now: bytes) -> bytes | None:
        """The bytes that a file had before a patch, or None.

        Args:
            item: The patch to revert.
            path: The file.
            now: Its bytes as the patch, and nothing since, left them.
        """
        record = self.folder / _key(item, path, now)
        try:
            original = zlib.decompress(record.read_bytes())
        except (OSError, zlib.error):
            return None
        compiled = next(c for c in item.compiled if c.file.path == path)
        try:
            source = Source.from_bytes(path, original)
            again = source.with_text(compiled.evaluate(source).text).to_bytes()
        except GraftError:
            return None
        return original if again == now else None

    def _prune(self) -> None:
        records = sorted(self.folder.iterdir(), key=lambda p: p.stat().st_mtime)
        for record in records[:-_MOST]:
            record.unlink(missing_ok=True)


def _key(item: SeriesPatch, path: str, after: bytes) -> str:
    text = json.dumps([str(item.patch), path])
    return sha256(text.encode() + after).hexdigest()
