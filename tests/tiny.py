"""A series of two patches, and releases for it to stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopback import Server, make_wheel, wheel_name
from vllm_graft import load_series

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_graft.series import Series

PATCH = """\
Subject: [Core] Say two
Requires: vllm/b.py

Why.
---
--- a/vllm/a.py
+++ b/vllm/a.py
ensure number has no one
@@ number
-return one
+return two
"""
TEST_PATCH = """\
Subject: [Test] Expect two

Why.
---
--- /dev/null
+++ b/tests/test_a.py
"""

BEFORE = b"def number():\n    return one\n"
AFTER = b"def number():\n    return two\n"
ANOTHER_WAY = b"def number():\n    return 1 + 1\n"
CONFLICT = b"def number():\n    return one + 1\n"
SYNTAX_ERROR = b"def number(:\n"


def write_series(folder: Path, patch: str = PATCH, name: str = "two") -> Series:
    """A series in a folder: a patch to one file, and one that adds a test."""
    (folder / name / "files" / "tests").mkdir(parents=True, exist_ok=True)
    (folder / name / "files" / "tests" / "test_a.py").write_text("")
    (folder / name / "0001-say-two.spatch").write_text(patch)
    (folder / name / "0002-tests.spatch").write_text(TEST_PATCH)
    (folder / name / "series").write_text("0001-say-two.spatch\n0002-tests.spatch\n")
    return load_series(folder / name)


def add_release(server: Server, version: str, source: bytes) -> None:
    """Serve a wheel in which ``vllm/a.py`` is ``source``."""
    files = {"vllm/a.py": source, "vllm/b.py": b"", "vllm/c.py": b"c\n" * 999}
    server.add(wheel_name(version), make_wheel(files))
