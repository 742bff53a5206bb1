"""The series with one of its edits left out, as folders for ``--series``.

What the shipped and the proving tests say of them shows that no edit is idle.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from vllm_graft.series import patches_folder

SERIES = "mrv2-async-output"
_BUSY_LOOP = ("0002-multiproc-executor.spatch", "worker_busy_loop")
_RUNNER = "0003-gpu-model-runner.spatch"

# What is left out: the patch, and the word that the header of the hunk contains.
# None stands for all hunks that change what runs.
EDITS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "uniproc": ("0001-uniproc-executor.spatch", "UniProcExecutor.collective_rpc"),
        "busy-loop": _BUSY_LOOP,
        "sample-tokens": (_RUNNER, "GPUModelRunner.sample_tokens"),
        "pool": (_RUNNER, "GPUModelRunner.pool"),
    }
)
NAIVE = "busy-loop"


def mutated(edit: str, folder: Path) -> Path:
    """A copy of the series without an edit.

    The post-conditions of the patch go with it: they would refuse the result, and
    the tests are to find out for themselves.

    Args:
        edit: A key of ``EDITS``.
        folder: Where to make it; must exist.

    Raises:
        ValueError: The series has no such hunk any more.
    """
    copy = folder / f"{SERIES}-without-{edit}"
    shutil.copytree(patches_folder() / SERIES, copy)
    name, scope = EDITS[edit]
    text = without_hunk((copy / name).read_text(), scope)
    if text is None:
        _leave_out(copy / "series", name)
        (copy / name).unlink()
    else:
        (copy / name).write_text(text)
    return copy


def mutations(folder: Path) -> dict[str, Path]:
    """All four, by the edit that is left out."""
    return {edit: mutated(edit, folder) for edit in EDITS}


def without_hunk(patch: str, scope: str) -> str | None:
    """A patch's text without one hunk and without its post-conditions.

    Args:
        patch: The text of a patch file.
        scope: What the hunk's header contains.

    Returns:
        The text, or None where no hunk is left.

    Raises:
        ValueError: Not exactly one hunk has such a header.
    """
    # A hunk goes from its header to the next one, its alternatives included.
    head, *hunks = re.split(r"^(?=@@ (?!or\b))", patch, flags=re.MULTILINE)
    kept = [hunk for hunk in hunks if scope not in hunk.partition("\n")[0]]
    if len(hunks) - len(kept) != 1:
        raise ValueError(f"{len(hunks) - len(kept)} hunks have {scope} in their header")
    start = head.index("\n+++ b/")
    end = head.index("\n", start + 1)
    return head[: end + 1] + "".join(kept) if kept else None


def _leave_out(series: Path, name: str) -> None:
    lines = [line for line in series.read_text().splitlines() if line != name]
    series.write_text("\n".join(lines) + "\n")
