"""The series with one of its four edits left out.

What the shipped and the proving tests say of them shows that no edit is idle.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from vllm_graft.series import patches_folder

SERIES = "mrv2-async-output"

#: The edits that are a hunk of their own: the patch, and a word of the hunk's header.
#: Those of the runner's methods are one hunk; see :func:`sparing`
#: and :func:`with_method`.
EDITS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "uniproc": ("0001-uniproc-executor.spatch", "UniProcExecutor.collective_rpc"),
        "busy-loop": ("0002-multiproc-executor.spatch", "worker_busy_loop"),
    }
)
METHODS = ("sample_tokens", "pool")
_RUNNER = "0003-gpu-model-runner.spatch"
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


def sparing(method: str, folder: Path) -> Path:
    """A copy of the series that leaves a method of the runner as it is.

    The post-conditions go too: they would refuse what is left.
    """
    copy = folder / f"{SERIES}-sparing-{method}"
    shutil.copytree(patches_folder() / SERIES, copy)
    patch = copy / _RUNNER
    head, target, rest = re.split(
        r"^(\+\+\+ .*\n)", patch.read_text(), flags=re.MULTILINE
    )
    hunks = rest[rest.index("@@ ") :]
    header = next(x for x in hunks.splitlines() if f"GPUModelRunner.{method}" in x)
    scopes, options = header.removeprefix("@@ ").split(" @@")
    kept = [x for x in scopes.split(", ") if x != f"GPUModelRunner.{method}"]
    assert kept
    hunks = hunks.replace(header, f"@@ {', '.join(kept)} @@{options}")
    patch.write_text(head + target + hunks)
    return copy


def with_method(source: bytes, donor: bytes, name: str) -> bytes:
    """A source with one method of ``GPUModelRunner`` taken from another source."""

    def place(text: bytes) -> slice:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name == "GPUModelRunner":
                (found,) = (
                    part
                    for part in node.body
                    if isinstance(part, ast.FunctionDef) and part.name == name
                )
                return slice(found.lineno - 1, found.end_lineno)
        raise AssertionError("there is no GPUModelRunner")

    lines, new = source.splitlines(keepends=True), donor.splitlines(keepends=True)
    assert lines[place(source)] != new[place(donor)], f"{name} is not edited"
    lines[place(source)] = new[place(donor)]
    return b"".join(lines)


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
