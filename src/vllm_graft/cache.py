"""Where downloads and records are kept, outside every tree."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """The folder for cached data, created on demand.

    ``VLLM_GRAFT_CACHE`` names it; else it is ``vllm-graft`` below
    ``XDG_CACHE_HOME``, or below ``~/.cache``.

    Args:
        parts: Folders below it, created too.
    """
    root = os.environ.get("VLLM_GRAFT_CACHE")
    if root:
        base = Path(root).expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        base = base / "vllm-graft"
    path = base.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


@cache
def code_digest(*packages: str) -> str:
    """A digest of the tool's own code and of the Python that runs it.

    It belongs in the key of whatever is kept that another version may see otherwise.

    Args:
        packages: The sub-packages that count, besides the package's own modules.
    """
    from hashlib import sha256  # noqa: PLC0415 - for what is kept, and slow

    digest = sha256(sys.version.encode())
    for folder in ("", *packages):
        for path in sorted((Path(__file__).parent / folder).glob("*.py")):
            digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()
