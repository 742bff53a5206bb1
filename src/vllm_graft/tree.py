"""vLLM trees: a folder on disk, or files in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vllm_graft import git
from vllm_graft.errors import TreeError

_VERSION = re.compile(
    r"^(?:__version__\s*=\s*version|__version__|Version)\s*[:=]\s*['\"]?([^'\"\s]+)",
    re.MULTILINE,
)


class Tree(Protocol):
    """What patches are judged on."""

    @property
    def name(self) -> str:
        """How to call the tree in messages."""

    @property
    def version(self) -> str | None:
        """The version of vLLM that it says it is, or None."""

    def read(self, path: str) -> bytes | None:
        """A file's bytes, or None where there is no such file."""

    def has_folder(self, path: str) -> bool:
        """Whether there is such a folder."""


@dataclass(frozen=True)
class MemoryTree:
    """Files in memory.

    Args:
        files: Their bytes by path relative to the root.
        version: The version of vLLM.
        name: How to call the tree in messages.
    """

    files: Mapping[str, bytes]
    version: str | None = None
    name: str = "memory"

    def read(self, path: str) -> bytes | None:
        """See :class:`Tree`."""
        return self.files.get(path)

    def has_folder(self, path: str) -> bool:
        """See :class:`Tree`."""
        return any(name.startswith(f"{path}/") for name in self.files)


@dataclass(frozen=True)
class DirTree:
    """A folder that holds the package ``vllm``: a checkout, or site-packages.

    Args:
        root: The folder.

    Raises:
        TreeError: It holds no vLLM.
    """

    root: Path
    _seen: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.root / "vllm" / "__init__.py").is_file():
            return
        if not self.root.exists():
            problem, hint = "no such folder", "name a folder that holds vllm/"
        elif (self.root / "__init__.py").is_file() and self.root.name == "vllm":
            problem = "the package itself, not the folder that holds it"
            hint = f"say {self.root.parent}"
        else:
            problem = "no vLLM tree: it has no vllm/__init__.py"
            hint = "name a vLLM checkout, or a site-packages folder with vLLM in it"
        raise TreeError(problem, where=str(self.root), hint=hint)

    @property
    def name(self) -> str:
        """See :class:`Tree`."""
        return str(self.root)

    @property
    def version(self) -> str | None:
        """See :class:`Tree`."""
        candidates = [self.root / "vllm" / "_version.py", self.root / "PKG-INFO"]
        infos = sorted(self.root.glob("vllm*.dist-info/METADATA"))
        for path in [*candidates, *infos]:
            if path.is_file():
                found = _VERSION.search(path.read_text(errors="replace"))
                if found:
                    return found[1]
        if (self.root / ".git").exists() and git.succeeds(
            "describe", "--tags", cwd=self.root
        ):
            return git.run("describe", "--tags", cwd=self.root).removeprefix("v")
        return None

    def locate(self, path: str) -> Path:
        """The real path of a file in the tree.

        Raises:
            TreeError: It leads out of the tree.
        """
        real = (self.root / path).resolve()
        if not real.is_relative_to(self.root.resolve()):
            raise TreeError(
                f"leads out of the tree, to {real}",
                where=str(self.root / path),
                hint="replace the symbolic link by the file itself",
            )
        return real

    def read(self, path: str) -> bytes | None:
        """See :class:`Tree`."""
        real = self.locate(path)
        try:
            return real.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise TreeError(
                f"cannot be read: {error.strerror}",
                where=str(real),
                hint="make it a readable file",
            ) from error

    def has_folder(self, path: str) -> bool:
        """See :class:`Tree`."""
        return (self.root / path).is_dir()


def find_tree(path: str | Path | None = None) -> DirTree:
    """The tree that a user means.

    Args:
        path: A folder; without one, the current folder if it holds vLLM, else
            the installed vLLM.

    Raises:
        TreeError: There is no vLLM there.
    """
    if path is not None:
        return DirTree(Path(path))
    if Path("vllm/__init__.py").is_file():
        return DirTree(Path())
    # Found on sys.path by hand: importlib would take a namespace package for it.
    import sys  # noqa: PLC0415

    for entry in sys.path:
        if entry and (Path(entry) / "vllm" / "__init__.py").is_file():
            return DirTree(Path(entry))
    raise TreeError(
        "no vLLM here: the current folder holds none, and none is installed",
        where=str(Path.cwd()),
        hint="name the tree, or fetch one: vllm-graft fetch VERSION",
    )
