from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from matrices import matrix, row, unread
from vllm_graft.matrix.table import format_table, print_table
from vllm_graft.results import Verdict

if TYPE_CHECKING:
    from vllm_graft.matrix.build import Matrix

A, D, X, S = Verdict.APPLIES, Verdict.APPLIED, Verdict.CONFLICT, Verdict.SUPERSEDED


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_terminal(shown: Matrix, monkeypatch: pytest.MonkeyPatch, width: int) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = _Terminal()
    print_table(shown, stream)
    return stream.getvalue()


def test_plain_columns_line_up_under_their_series() -> None:
    text = format_table(matrix(row("0.12.0", A, A), row("0.24.0", D, S)))
    assert text.splitlines()[:4] == [
        "        first-series                 second",
        "vLLM    0001     0002        0009    0001",
        "0.12.0  applies  applies     -       applies",
        "0.24.0  applied  superseded  -       applied",
    ]


def test_the_history_and_the_subjects_follow() -> None:
    text = format_table(matrix(row("0.12.0", A), row("0.13.0", A), row("0.24.0", D)))
    assert "  0001  [Core] Subject of 0001-first.spatch\n" in text
    assert "  applies       0.12.0 to 0.13.0\n  applied       0.24.0\n" in text


def test_all_well_is_said_in_a_sentence() -> None:
    text = format_table(matrix(row("0.12.0", A), row("0.24.0", D)))
    assert "3 patches of 2 series on 2 releases of vLLM, 0.12.0 to 0.24.0.\n" in text
    assert text.endswith("No conflict on any release.\n")


def test_trouble_is_named_with_its_reason() -> None:
    shown = matrix(row("0.12.0", A, A), row("0.13.0", X, A, reason="line 7 differs"))
    text = format_table(shown)
    assert "Conflict on 0.13.0.\n" in text
    assert "0.13.0: 0001-first.spatch: conflict: line 7 differs\n" in text
    assert "0.13.0: 0002-second-part.spatch" not in text


def test_a_release_that_could_not_be_read_is_a_line_with_its_error() -> None:
    text = format_table(matrix(row("0.12.0", A), unread("0.13.0")))
    assert "\n0.13.0  not read\n" in text
    assert "Could not read 0.13.0.\n" in text
    assert "0.13.0: cannot read vllm-0.13.0.whl: <broken>\n  hint: Try again.\n" in text


def test_nothing_read_at_all_is_still_a_table() -> None:
    text = format_table(matrix(unread("0.12.0"), unread("0.13.0")))
    assert "Could not read 0.12.0, 0.13.0." in text


def test_notes_are_shown() -> None:
    text = format_table(matrix(row("0.12.0", A), notes=("an old list is used",)))
    assert text.endswith("note: an old list is used\n")


def test_a_pipe_gets_no_escape_sequences() -> None:
    stream = io.StringIO()
    print_table(matrix(row("0.12.0", A)), stream)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue() == format_table(matrix(row("0.12.0", A)))


def test_a_terminal_gets_colours_and_glyphs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _on_terminal(matrix(row("0.12.0", A, X)), monkeypatch, 100)
    assert "\x1b[34m+ applies\x1b[0m" in text
    assert "\x1b[1;31m✗ conflict\x1b[0m" in text


def test_a_narrow_terminal_gets_glyphs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _on_terminal(matrix(row("0.12.0", A, X, D)), monkeypatch, 40)
    table = text.partition("\n\n")[0]
    assert "✗" in table
    assert "conflict" not in table
    assert "applies" in text  # in the history, which tells what a glyph stands for


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_can_be_shown(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = matrix(row("0.12.0", verdict))
    assert f"0.12.0  {verdict}" in format_table(shown)
    assert f" {verdict}\x1b" in _on_terminal(shown, monkeypatch, 100)
