"""Lay changed files over an installed `vllm`, without copying or touching it.

The overlay is a folder for ``PYTHONPATH`` (or a test's root): a `vllm` package
made of symbolic links, real folders only on the way to a changed file. The folders
on that way get a ``__pycache__`` of their own, so bytecode of a changed file never
reaches the installed package.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def overlay_vllm(package: Path, root: Path, changed: Mapping[str, bytes]) -> Path:
    """Make ``root/vllm``: the given package with some files replaced or added.

    Args:
        package: The `vllm` package folder to lay over; it is only read.
        root: The folder to make; its parent must exist and it must not.
        changed: New contents by path relative to root, all below ``vllm/``.

    Returns:
        The root.
    """
    paths = {PurePosixPath(path) for path in changed}
    outside = [str(path) for path in paths if path.parts[:1] != ("vllm",)]
    if outside or any(".." in path.parts for path in paths):
        raise ValueError(f"not below vllm/: {outside or sorted(changed)}")
    root.mkdir()
    folders = {folder for path in paths for folder in path.parents}
    _link(
        package, root, PurePosixPath("vllm"), folders | {PurePosixPath("vllm")}, paths
    )
    for path, content in changed.items():
        (root / path).write_bytes(content)
    return root


def _link(
    source: Path,
    root: Path,
    here: PurePosixPath,
    real: Collection[PurePosixPath],
    changed: Collection[PurePosixPath],
) -> None:
    (root / here).mkdir()
    for child in source.iterdir():
        path = here / child.name
        if path in real:
            _link(child, root, path, real, changed)
        elif child.name != "__pycache__" and path not in changed:
            (root / path).symlink_to(child.resolve())
    for folder in real:
        if folder.parent == here:
            (root / folder).mkdir(exist_ok=True)


def add_version(root: Path, version: str) -> None:
    """Make ``importlib.metadata.version("vllm")`` give a version from this root.

    vLLM decides by it whether it was built for the CPU; the CPU wheel is named
    otherwise, so that alone it would find no platform.
    """
    info = root / f"vllm-{version}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    (info / "METADATA").write_text(text, encoding="utf-8")


def add_tests(root: Path, tests: Path) -> Path:
    """Copy a fork's new tests to ``root/tests``, each folder a package.

    In a fork the folders hold their own ``__init__.py``; `tests.v1.executor` must
    be importable here too, in spawned workers as well.

    Args:
        root: An overlay.
        tests: The ``tests`` folder below a series' ``files``.
    """
    copy = root / "tests"
    shutil.copytree(tests, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__init__.py").touch()
    return copy
