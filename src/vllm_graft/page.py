"""The frame of an HTML page that needs nothing else: no script, font or image."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files


def page(
    title: str, styles: Iterable[str], main: Iterable[str], footer: Iterable[str]
) -> str:
    """The page, complete from ``<!DOCTYPE html>`` on.

    Args:
        title: Plain text.
        styles: The names of style sheets of this package, in order.
        main: The lines of the content.
        footer: The lines below it.
    """
    folder = files("vllm_graft")
    style = "".join(folder.joinpath(n).read_text(encoding="utf-8") for n in styles)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            "<main>",
            *main,
            "</main>",
            *footer,
            "</body>",
            "</html>",
            "",
        ]
    )
