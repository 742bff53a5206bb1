"""What ``vllm-graft verify`` prints and writes, but for the HTML page."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from vllm_graft.verify.results import GROUPS, Property, Verification

_COLOURS: Final = {"holds": "32", "fails": "31", "error": "33"}


def report_lines(done: Verification) -> Iterator[str]:
    """A verdict a property, by group; the outcome last."""
    version = f" (vLLM {done.version})" if done.version else ""
    yield f"{done.tree}{version}"
    base, grafted = done.sides
    yield f"  base     {base}"
    yield f"  grafted  {grafted}"
    yield f"  engine   {done.python} on {done.device}"
    for group, properties in done.grouped().items():
        yield ""
        yield f"{group}: {GROUPS[group]}"
        for one in properties:
            detail = f": {one.detail}" if one.detail else ""
            yield f"  {_coloured(one)}  {one.name}{detail}"
    yield ""
    kind = ", the quick part" if done.quick else ""
    yield f"{done.headline} (in {done.seconds:.0f} s{kind})"


def _coloured(one: Property) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return one.verdict
    return f"\x1b[{_COLOURS[one.verdict]}m{one.verdict}\x1b[0m"


def junit(done: Verification) -> str:
    """The properties as JUnit XML: a suite a group, a case a property."""
    root = ET.Element("testsuites", {"name": "vllm-graft verify"})
    _count(root, done.properties, done.seconds)
    for group, properties in done.grouped().items():
        suite = ET.SubElement(root, "testsuite", {"name": group})
        made = done.made.replace(tzinfo=None).isoformat(timespec="seconds")
        suite.set("timestamp", made)
        _count(suite, properties, sum(one.seconds for one in properties))
        for one in properties:
            case = ET.SubElement(suite, "testcase")
            case.set("classname", f"vllm_graft.verify.{group}")
            case.set("name", one.name)
            case.set("time", f"{one.seconds:.2f}")
            if not one.holds:
                kind = "failure" if one.ran else "error"
                why = ET.SubElement(case, kind, {"message": _clean(one.detail)})
                why.text = f"{GROUPS[group]}: {_clean(one.detail)}"
            elif one.detail:
                ET.SubElement(case, "system-out").text = _clean(one.detail)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode")


def _count(element: ET.Element, properties: Sequence[Property], seconds: float) -> None:
    element.set("tests", str(len(properties)))
    element.set("failures", str(sum(p.verdict == "fails" for p in properties)))
    element.set("errors", str(sum(p.verdict == "error" for p in properties)))
    element.set("time", f"{seconds:.2f}")


def _clean(text: str) -> str:
    """The text without what XML has no place for (escapes of a terminal, ...)."""
    return "".join(
        c if c >= " " or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
