"""Where the series are, without reading them."""

from __future__ import annotations

from pathlib import Path

from vllm_graft.errors import PatchError


def patches_folder() -> Path:
    """The folder of the series that come with the tool.

    It is part of the installed package; in a checkout it stands at the top.
    """
    package = Path(__file__).parent
    inside = package / "patches"
    return inside if inside.is_dir() else package.parents[1] / "patches"


def series_names() -> list[str]:
    """The names of the series that come with the tool."""
    return sorted(path.parent.name for path in patches_folder().glob("*/series"))


def series_folder(name: str | Path) -> Path:
    """The folder of a series.

    Args:
        name: The name of one that comes with the tool, or a folder. A plain name
            is looked up among the former first; ``./NAME`` is always a folder.

    Raises:
        PatchError: There is no such series.
    """
    plain = isinstance(name, str) and "/" not in name
    for folder in [patches_folder() / name] * plain + [Path(name)]:
        if (folder / "series").is_file():
            return folder
    known = ", ".join(series_names()) or "none"
    raise PatchError(
        f"no series {str(name)!r}",
        hint=f"name one of those that come with the tool ({known}), or a folder with "
        "a file 'series' in it",
    )
