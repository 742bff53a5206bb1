"""Tests of proof/compare.py."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_graft.proof.compare import first_difference


@pytest.mark.parametrize(
    "value",
    [None, 1, "0x1.8p+0", [], {}, [1, [2, {"a": None}]], float("nan"), {"b": [1.5]}],
)
def test_a_value_equals_itself(value: Any) -> None:
    assert first_difference(value, value) is None


@pytest.mark.parametrize(
    ("base", "grafted", "said"),
    [
        ([1, 2, 3], [1, 9, 8], "x[1]: base 2, grafted 9"),
        ([1, 2], [1], "x[1]: base 2, grafted <absent>"),
        ([1], [1, 2], "x[1]: base <absent>, grafted 2"),
        ({"a": 1}, {"b": 1}, "x.a: base 1, grafted <absent>"),
        ({"b": [0], "a": 1}, {"b": [1], "a": 2}, "x.a: base 1, grafted 2"),
        ([{"t": [1, 2]}], [{"t": [1, 3]}], "x[0].t[1]: base 2, grafted 3"),
        (1, 1.0, "x: base 1, grafted 1.0"),
        (1, True, "x: base 1, grafted True"),
        (0.0, -0.0, "x: base 0.0, grafted -0.0"),
        (None, [], "x: base None, grafted []"),
        ("0x1p+0", "0x1p+1", "x: base '0x1p+0', grafted '0x1p+1'"),
    ],
)
def test_the_first_difference_is_named(base: Any, grafted: Any, said: str) -> None:
    assert str(first_difference(base, grafted, "x")) == said


def test_a_long_value_is_cut() -> None:
    found = first_difference("a" * 500, "b", "x")
    assert len(str(found)) < 120
