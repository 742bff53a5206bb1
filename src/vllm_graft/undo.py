"""Records of originals, so that reverting gives back every byte.

A reverse patch writes removed code as the patch file spells it. Where the tree had
it in another layout, or with comments, only a record of the original knows. Records
are hints: one is used only if applying the patch to it gives exactly the bytes that
are there now, so a lost, stale or damaged record changes nothing but layout.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vllm_graft.cache import cache_dir
from vllm_graft.engine.source import Source
from vllm_graft.errors import GraftError
from vllm_graft.results import Verdict

if TYPE_CHECKING:
    from vllm_graft.planner import FileChange
    from vllm_graft.series import SeriesPatch

#: Records kept; the oldest go first.
MOST: Final = 500


class UndoStore:
    """A folder of records.

    Args:
        folder: The folder; by default ``undo`` in the cache folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def remember(self, item: SeriesPatch, changes: Sequence[FileChange]) -> None:
        """Records what a patch changed. Failing to is no error."""
        try:
            for change in changes:
                if change.before is not None and change.after is not None:
                    self._write(_key(item, change.path, change.after), change.before)
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
        try:
            record = self._place() / _key(item, path, now)
            original = zlib.decompress(record.read_bytes())
            source = Source.from_bytes(path, original)
            outcome = item.compiled[path].evaluate(source)
            again = source.with_text(outcome.text).to_bytes()
        except (OSError, zlib.error, GraftError):
            return None
        # From a state where part of it was there already, going back would leave
        # that part in place.
        whole = outcome.verdict is Verdict.APPLIES
        return original if whole and again == now else None

    def _place(self) -> Path:
        return self._folder or cache_dir("undo")

    def _write(self, key: str, original: bytes) -> None:
        folder = self._place()
        draft = folder / f".{key}.{os.getpid()}"
        draft.write_bytes(zlib.compress(original, 1))
        draft.replace(folder / key)

    def _prune(self) -> None:
        records = sorted(self._place().iterdir(), key=lambda p: p.stat().st_mtime)
        for record in records[:-MOST]:
            record.unlink(missing_ok=True)


def _key(item: SeriesPatch, path: str, after: bytes) -> str:
    # Checksums do: what a record says is put to the proof, and one that is taken
    # for another is of no use but does no harm.
    patch = zlib.crc32(f"{item.patch}\n{path}".encode())
    return f"{patch:08x}-{zlib.crc32(after):08x}-{len(after):x}"
