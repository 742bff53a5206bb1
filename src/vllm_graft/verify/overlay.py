"""A source tree without compiled extensions, laid over an installed vLLM.

The result is a folder of symbolic links: Python files are the tree's, compiled ones
the installed package's. Neither is touched, nothing is copied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vllm_graft.errors import TreeError

_COMPILED: Final = (".so", ".pyd", ".dylib")
# What a build writes beside the sources, and a checkout does not have.
_BUILT: Final = ("_version.py", "vllm_flash_attn", "third_party")


def is_built(package: Path) -> bool:
    """Whether a package folder has compiled extensions of its own."""
    return any(path.suffix in _COMPILED for path in package.iterdir())


def lay_over(package: Path, installed: Path, root: Path) -> Path:
    """Makes ``root/vllm`` of a tree's files and an installed package's extensions.

    Args:
        package: The tree's ``vllm`` folder.
        installed: The installed package's folder.
        root: A folder that exists; ``vllm`` in it must not.

    Returns:
        The root.
    """
    extra = {}
    for path in _from_build(installed):
        relative = path.relative_to(installed)
        if not (package / relative).exists():
            extra[relative] = path
    _link(package, root / "vllm", Path(), extra)
    return root


def check_fits(tree: str, version: str | None, installed: str, python: Path) -> None:
    """Makes sure that a tree's Python files go with installed extensions.

    Args:
        tree: How to call the tree in the message.
        version: Its version; None, where it tells none, is taken to fit.
        installed: The version of the installed package.
        python: The Python that has it.

    Raises:
        TreeError: They are of different minor versions.
    """
    wanted, found = _minor(version or ""), _minor(installed)
    if wanted and found and wanted != found:
        raise TreeError(
            f"vLLM {version} without compiled extensions, and those of {python} are "
            f"of vLLM {installed}",
            where=tree,
            hint=f"name a Python with vLLM {'.'.join(wanted)} with --python, or build "
            "the tree",
        )


def _minor(version: str) -> tuple[str, ...]:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return found.groups() if found else ()


def _from_build(installed: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(installed):
        folders[:] = [name for name in folders if name != "__pycache__"]
        inside = Path(folder).relative_to(installed).parts[:1]
        for name in names:
            top = inside or (name,)
            if Path(name).suffix in _COMPILED or top[0] in _BUILT:
                yield Path(folder, name)


def _link(package: Path, root: Path, here: Path, extra: dict[Path, Path]) -> None:
    """Links one folder; it is a real one only where something is added below it."""
    target = root / here
    target.mkdir()
    real = {path.parts[len(here.parts)] for path in extra if _below(path, here)}
    source = package / here
    for child in source.iterdir() if source.is_dir() else ():
        if child.name == "__pycache__":
            continue
        if child.name in real and child.is_dir():
            continue
        (target / child.name).symlink_to(child.resolve())
    for name in sorted(real):
        path = here / name
        if path in extra:
            (target / name).symlink_to(extra[path].resolve())
        else:
            _link(package, root, path, extra)


def _below(path: Path, here: Path) -> bool:
    return path.parts[: len(here.parts)] == here.parts
