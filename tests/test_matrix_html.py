from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from matrices import matrix, row, unread
from vllm_graft.matrix.page import render_html
from vllm_graft.matrix.view import LOOKS
from vllm_graft.results import Verdict

A, D, X = Verdict.APPLIES, Verdict.APPLIED, Verdict.CONFLICT

_VOID = {"meta", "col", "wbr", "br"}


class _Page(HTMLParser):
    """A page taken apart; every element must be closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self) -> str:
        return " ".join(text for tag, text in self.texts if tag != "style")


def _page(*args: object, **options: tuple[str, ...]) -> _Page:
    return _Page(render_html(matrix(*args, **options)))  # type: ignore[arg-type]


def test_it_needs_nothing_but_itself() -> None:
    text = render_html(matrix(row("0.12.0", A), unread("0.13.0")))
    page = _Page(text)
    for tag in ("script", "link", "img", "iframe", "object", "base"):
        assert page.all(tag) == []
    assert "@import" not in text
    assert "url(" not in text
    links = [a["href"] for a in page.all("a")]
    assert all(link.startswith("#") for link in links)
    assert not any("src" in attributes for _, attributes in page.elements)


def test_every_cell_leads_to_a_place_that_is_there_once() -> None:
    page = _page(row("0.12.0", A, X, D), row("0.12.0.post1", A), unread("0.13.0"))
    ids = Counter(at["id"] for _, at in page.elements if "id" in at)
    assert set(ids.values()) == {1}
    assert {a["href"][1:] for a in page.all("a")} <= ids.keys()


def test_the_table_can_be_heard() -> None:
    page = _page(row("0.12.0", A, D), unread("0.13.0"))
    scopes = Counter(th["scope"] for th in page.all("th"))
    assert scopes == {"col": 5, "colgroup": 2, "row": 2}
    groups = [th["colspan"] for th in page.all("th") if th["scope"] == "colgroup"]
    assert groups == ["3", "1"]
    assert len(page.all("caption")) == 1
    assert page.all("html")[0]["lang"] == "en"


def test_every_row_fills_the_columns() -> None:
    page = _page(row("0.12.0", A, D), unread("0.13.0"))
    columns = len(page.all("col")) - 1
    cells = [int(td.get("colspan", "1")) for td in page.all("td")]
    assert sum(cells) == 2 * columns


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_a_word_and_a_glyph_and_not_colour_alone(
    verdict: Verdict,
) -> None:
    page = _page(row("0.12.0", verdict))
    spoken = [text for tag, text in page.texts if tag == "span"]
    assert verdict.value in spoken
    assert LOOKS[verdict].glyph in spoken


def test_glyphs_differ() -> None:
    assert len({look.glyph for look in LOOKS.values()}) == len(Verdict)


def test_reasons_and_lines_are_there() -> None:
    text = _page(row("0.12.0", X, reason="line 3 does not match")).text()
    assert "line 3 does not match" in text
    assert "lines 12, 7" in text
    assert "vllm-0.12.0.whl" in text


def test_a_release_that_could_not_be_read_says_why() -> None:
    text = _page(row("0.12.0", A), unread("0.13.0")).text()
    assert "cannot read vllm-0.13.0.whl: <broken>" in text
    assert "Try again." in text
    assert "Could not read 0.13.0." in text


def test_nothing_read_at_all_is_still_a_page() -> None:
    assert "Could not read 0.12.0." in _page(unread("0.12.0")).text()


def test_text_from_outside_is_escaped() -> None:
    hostile = '<script>alert("1")</script>'
    shown = matrix(row("0.12.0", X, reason=hostile), notes=(hostile,))
    text = render_html(shown)
    assert hostile not in text
    assert _Page(text).all("script") == []


def test_it_says_when_and_from_which_index_it_was_made() -> None:
    text = _page(row("0.12.0", A), notes=("an old list is used",)).text()
    assert "2026-06-13 08:46 UTC" in text
    assert "https://index.test/simple/" in text
    assert "an old list is used" in text


def test_the_headline_counts() -> None:
    page = _page(row("0.12.0", A), row("0.24.0", D))
    heads = [text for tag, text in page.texts if tag == "h1"]
    assert heads == ["3 patches of 2 series on 2 releases of vLLM, 0.12.0 to 0.24.0"]
    assert "No conflict on any release." in page.text()


def _colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2, between two colours in hex."""

    def luminance(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_colours_are_readable_in_light_and_dark(verdict: Verdict, scheme: str) -> None:
    style = render_html(matrix(row("0.12.0", A)))
    light, _, rest = style.partition("@media (prefers-color-scheme: dark)")
    colours = _colours(light if scheme == "light" else rest)
    ink, paper = colours[verdict.value], colours[f"{verdict.value}-on"]
    assert _contrast(ink, paper) >= 4.5
    assert _contrast(colours["soft"], colours["page"]) >= 4.5
