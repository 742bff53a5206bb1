"""The refactor as ast-grep rules, which stand in ``rules/``.

What they cannot say: a fix replaces one range of text, so deleting a line takes
writing its neighbour again, and moving a statement takes a rewriter inside a rule;
the blank lines of what is written again get trailing blanks, so a formatter has to
run afterwards. There is no reverse, and a rule that finds nothing is a success.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.inputs import Files
from benchmarks.timing import Failed, Sample, process

_CONFIG = Path(__file__).with_name("sgconfig.yml")


def refactor(files: Files, folder: Path) -> tuple[dict[str, bytes], Sample]:
    """Writes the files into a folder, and makes the edits there.

    Args:
        files: The files, by path.
        folder: An empty folder, or one that was used for this before.

    Returns:
        The files afterwards, and what the process took.

    Raises:
        Failed: ast-grep is not installed, or exits with an error.
    """
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    options = ("--update-all", "--config", _CONFIG)
    sample = process((_program(), "scan", *options, folder))
    return {path: (folder / path).read_bytes() for path in files}, sample


def _program() -> str:
    beside = Path(sys.executable).with_name("ast-grep")
    found = str(beside) if beside.is_file() else shutil.which("ast-grep")
    if found is None:
        raise Failed("ast-grep is not installed: pip install 'vllm-graft[bench]'")
    return found
