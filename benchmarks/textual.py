"""Textual patches: what git and patch make of the refactor of another release.

One repository holds every release as a commit, and the refactor of each as commits
on top of it, so that the three-way merges find every ancestor they ask for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import vllm_graft
from benchmarks.inputs import GIT_ENV, PATHS, Files
from vllm_graft import git

#: The ways to carry a textual patch, as they are named in the table.
TOOLS: Final = (
    "git am",
    "git am -3",
    "git cherry-pick",
    "git apply -C1",
    "git apply --3way",
    "patch -F3",
)


class History:
    """The releases, and the refactor of each, in a git repository.

    Args:
        folder: An empty folder.
        releases: The three files of each release.
        series: The series that makes the refactor; must apply to all of them.
    """

    def __init__(
        self, folder: Path, releases: Mapping[str, Files], series: vllm_graft.Series
    ) -> None:
        self._tree = folder / "tree"
        self._made = folder / "made"
        self._base: dict[str, str] = {}
        self._tip: dict[str, str] = {}
        self._init()
        for version, files in releases.items():
            self._commit_release(version, files)
            tree = vllm_graft.DirTree(self._tree)
            vllm_graft.apply(tree, [series], commit=True)
            self._tip[version] = self._git("rev-parse", "HEAD")
            self._write_patches(version)
            self._git("reset", "-q", "--hard", self._base[version])

    def carry(self, tool: str, source: str, target: str) -> Files | None:
        """Tries to carry the refactor of one release onto another.

        Args:
            tool: One of :data:`TOOLS`.
            source: The release that the patch was made from.
            target: The release to apply it to.

        Returns:
            The files afterwards, or None if the tool says that it failed.
        """
        self._git("reset", "-q", "--hard", self._base[target])
        done = subprocess.run(
            self._command(tool, source),
            cwd=self._tree,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            self._tidy()
            return None
        return {path: (self._tree / path).read_bytes() for path in PATHS}

    def _command(self, tool: str, source: str) -> list[str]:
        if tool == "git cherry-pick":
            return [*tool.split(), f"{self._base[source]}..{self._tip[source]}"]
        if tool.startswith("git am"):
            return [*tool.split(), *map(str, sorted((self._made / source).iterdir()))]
        diff = str(self._made / f"{source}.diff")
        if tool.startswith("git apply"):
            return [*tool.split(), diff]
        options = ["-p1", "--batch", "--forward", "--no-backup-if-mismatch", "-i"]
        return [*tool.split(), *options, diff]

    def _init(self) -> None:
        self._tree.mkdir()
        self._git("init", "-q")
        settings = {
            "user.name": GIT_ENV["GIT_AUTHOR_NAME"],
            "user.email": GIT_ENV["GIT_AUTHOR_EMAIL"],
            "commit.gpgSign": "false",
            "core.hooksPath": "/dev/null",
            "gc.auto": "0",
        }
        for key, value in settings.items():
            self._git("config", key, value)

    def _commit_release(self, version: str, files: Files) -> None:
        for path, data in {"vllm/__init__.py": b"", **files}.items():
            target = self._tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", f"vLLM {version}")
        self._base[version] = self._git("rev-parse", "HEAD")

    def _write_patches(self, version: str) -> None:
        mail = self._made / version
        start, end = self._base[version], self._tip[version]
        self._git("format-patch", "-q", "--full-index", "-o", str(mail), start)
        diff = git.run_bytes("diff", "--full-index", start, end, cwd=self._tree)
        mail.with_name(f"{version}.diff").write_bytes(diff)

    def _tidy(self) -> None:
        """Ends what a tool left unfinished."""
        for name, command in (
            ("rebase-apply", "am"),
            ("sequencer", "cherry-pick"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
        ):
            if (self._tree / ".git" / name).exists():
                self._git(command, "--quit")
        self._git("clean", "-fdqx")

    def _git(self, *args: str) -> str:
        return git.run(*args, cwd=self._tree)
