"""A vLLM tree of a few lines and a series for it, in a temporary folder."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_graft import DirTree, load_series

if TYPE_CHECKING:
    import pytest

    from vllm_graft import Series

VERSION = "0.23.0"
BEFORE = {
    "vllm/__init__.py": b"",
    "vllm/_version.py": b"__version__: str\n__version__ = version = '0.23.0'\n",
    "vllm/number.py": b"def number():  # the loneliest\n    return  (one)\n",
    "vllm/sub/word.py": b'class Word:\n    def say(self):\n        return "a"\n',
    "tests/conftest.py": b"",
}
AFTER = {
    **BEFORE,
    "vllm/number.py": b"def number():  # the loneliest\n    return two\n",
    "vllm/sub/word.py": b'class Word:\n    def say(self):\n        return "b"\n',
    "tests/sub/test_word.py": b'"""Words."""\n',
}
SERIES = {
    "series": """\
# in this order
0001-number.spatch
0002-word.spatch
0003-test.spatch
""",
    "0001-number.spatch": """\
Subject: [Core] Say two
From: Some One <one@fork.example>

Because one is the loneliest number.
# two is not
---
--- a/vllm/number.py
+++ b/vllm/number.py
ensure number has no one
@@ number
-return one
+return two
""",
    "0002-word.spatch": """\
Subject: [Core] Say b

Why.
---
--- a/vllm/sub/word.py
+++ b/vllm/sub/word.py
ensure Word.say has return "b"
@@ Word.say
-return "a"
+return "b"
""",
    "0003-test.spatch": """\
Subject: [Test] Expect b

Why.
---
--- /dev/null
+++ b/tests/sub/test_word.py
""",
    "files/tests/sub/test_word.py": '"""Words."""\n',
}


class World:
    """A miniature tree, its series, and a git configuration of their own.

    Args:
        folder: An empty folder.
        monkeypatch: Points git and the cache into it.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.root = folder / "tree"
        self.series = folder / "mini"
        self.gitconfig = folder / "gitconfig"
        for name, value in {
            "VLLM_GRAFT_CACHE": folder / "cache",
            "GIT_CONFIG_GLOBAL": self.gitconfig,
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": folder / "home",
        }.items():
            monkeypatch.setenv(name, str(value))
        folder.mkdir(exist_ok=True)
        # Nothing here has to outlive a power cut.
        monkeypatch.setattr(os, "fsync", lambda _: None)
        self.gitconfig.write_text("[user]\nname = Me Myself\nemail = me@fork.example\n")
        self.write(BEFORE)
        write_files(self.series, {k: v.encode() for k, v in SERIES.items()})

    def write(self, files: dict[str, bytes]) -> None:
        """Writes files of the tree."""
        write_files(self.root, files)

    def patch(self, name: str, old: str, new: str) -> None:
        """Edits a file of the series."""
        path = self.series / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    @property
    def tree(self) -> DirTree:
        """The tree."""
        return DirTree(self.root)

    @property
    def loaded(self) -> list[Series]:
        """The series."""
        return [load_series(self.series)]

    def files(self) -> dict[str, bytes]:
        """The content of every file of the tree, git's own left out."""
        return {path: data for path, (data, _) in self.snapshot().items()}

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Content and mode of every file; a link counts as its target's path."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            # Bytecode is Python's own matter, and depends on the environment.
            if {".git", "__pycache__"} & set(path.relative_to(self.root).parts) or (
                path.is_dir() and not path.is_symlink()
            ):
                continue
            mode = path.lstat().st_mode
            link = stat.S_ISLNK(mode)
            data = os.fsencode(path.readlink()) if link else path.read_bytes()
            found[name] = (data, stat.S_IMODE(mode))
        return found

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """Runs git in the tree."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit_base(self) -> str:
        """Makes the tree a repository with one commit; gives its id."""
        self.git("init", "-q", "-b", "main")
        self.git("-c", "core.autocrlf=false", "add", "-A")
        self.git("commit", "-qm", "base")
        return self.git("rev-parse", "HEAD")

    def hook(self, name: str, script: str) -> None:
        """Installs a git hook."""
        path = self.root / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Writes files below a folder."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
