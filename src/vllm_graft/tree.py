"""vLLM trees: a folder on disk, or files in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from vllm_graft.errors import TreeError


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


class MemoryTree(NamedTuple):
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


class DirTree:
    """A folder that holds the package ``vllm``: a checkout, or site-packages.

    Args:
        root: The folder.

    Raises:
        TreeError: It holds no vLLM.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        _require_vllm(self.root)
        self._real = os.path.realpath(self.root)

    def __repr__(self) -> str:
        return f"DirTree({self.name!r})"

    @property
    def name(self) -> str:
        """See :class:`Tree`."""
        return str(self.root)

    @property
    def version(self) -> str | None:
        """See :class:`Tree`."""
        from vllm_graft.version import vllm_version  # noqa: PLC0415 - not for a write

        return vllm_version(self.root)

    def real(self, path: str) -> str:
        """The path of the file that a path in the tree stands for.

        Where no symbolic link is on the way, it is the path itself. A link to
        another file of the tree stays; what it points to is read and changed.

        Args:
            path: Relative to the root.

        Returns:
            Relative to the root, too.

        Raises:
            TreeError: It leads out of the tree.
        """
        target = os.path.realpath(self.root / path)
        if os.path.commonpath([target, self._real]) != self._real:
            raise TreeError(
                f"leads out of the tree, to {target}",
                where=str(self.root / path),
                hint="replace the symbolic link by the file itself",
            )
        return os.path.relpath(target, self._real)

    def locate(self, path: str) -> Path:
        """The file on disk that a path in the tree stands for; see :meth:`real`."""
        return Path(self._real, self.real(path))

    def read(self, path: str) -> bytes | None:
        """See :class:`Tree`."""
        file = self.locate(path)
        try:
            return file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise TreeError(
                f"cannot be read: {error.strerror}",
                where=str(self.root / path),
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
        TreeError: There is no vLLM there, or the current folder lies inside a
            vLLM tree, so that it is not clear which one is meant.
    """
    if path is not None:
        return DirTree(path)
    if _holds_vllm(Path()):
        return DirTree(Path())
    here = Path.cwd()
    for folder in here.parents:
        if _holds_vllm(folder):
            raise TreeError(
                "the current folder lies inside a vLLM tree",
                where=str(here),
                hint=f"name the tree that you mean, perhaps {folder}",
            )
    installed = installed_vllm()
    if installed is None:
        raise TreeError(
            "no vLLM here: the current folder holds none, and none is installed",
            where=str(here),
            hint="name the tree, or fetch one with 'vllm-graft fetch VERSION'",
        )
    return DirTree(installed)


def installed_vllm() -> Path | None:
    """The folder that the installed vLLM is in, found without importing it."""
    from importlib.util import find_spec  # noqa: PLC0415 - rarely needed

    # For a top-level package this imports nothing. A folder `vllm` that is no
    # package has no origin.
    spec = find_spec("vllm")
    return Path(spec.origin).parents[1] if spec and spec.origin else None


def _holds_vllm(folder: Path) -> bool:
    return (folder / "vllm" / "__init__.py").is_file()


def _require_vllm(root: Path) -> None:
    if _holds_vllm(root):
        return
    real = Path(os.path.realpath(root))
    hint = "name a vLLM checkout, or a site-packages folder with vLLM in it"
    if not root.exists():
        problem = "no such folder"
    elif not root.is_dir():
        problem = "a file, not a folder"
    elif real.name == "vllm" and (real / "__init__.py").is_file():
        problem, hint = "the package itself", f"name the folder above: {real.parent}"
    else:
        problem = "no vLLM tree: it has no vllm/__init__.py"
    raise TreeError(problem, where=str(root), hint=hint)
