"""Rule files, and each kind of rule on miniatures: what it finds, and near misses.

A line of a miniature that ends in ``#! RULE`` is one that must be found; no other may.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from auditing import RULES, VLLM, found, look, marked, write
from vllm_graft.audit.rules import KINDS, load_rules, series_rules
from vllm_graft.errors import PatchError
from vllm_graft.lint import lint

CASES = Path(__file__).parent / "audit" / "cases"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_a_miniature(path: Path) -> None:
    report = look(path)
    assert found(report) == marked(path.read_text())
    assert report.notes == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no except* before 3.11")
def test_a_group_of_exceptions(tmp_path: Path) -> None:
    text = """
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner
    class Mine(GPUModelRunner):
        def pool(self):
            try:
                output = super().pool()
            except* ValueError:
                return None
            return output.req_ids
    """
    write(tmp_path, {"mine.py": text})
    assert found(look(tmp_path)) == [("AO002", 6)]


def test_the_miniature_of_vllm_itself_is_in_order() -> None:
    report = look(VLLM, vllm=None)
    assert found(report) == []
    assert report.vllm_version == "0.23.0"


def test_every_kind_has_a_rule_and_a_miniature() -> None:
    assert {rule.kind for rule in RULES} == set(KINDS)
    expected = {
        rule for path in CASES.glob("*.py") for rule, _ in marked(path.read_text())
    }
    assert expected == {rule.id for rule in RULES}


RULE = """\
[[rule]]
id = "XX001"
name = "some-name"
kind = "attribute-read"
classes = ["a.b:C"]
attributes = ["flag"]
message = "{subject} reads {detail}"
fix = "do not"
help = "more"
"""
FAULTS = {
    "unknown kind": ("attribute-read", "frob", "unknown kind 'frob'"),
    "unknown key": ('fix = "do not"', 'fix = "a"\nfrob = 1', "unknown key 'frob'"),
    "bad id": ("XX001", "xx1", "id holds 'xx1'"),
    "bad name": ("some-name", "Some Name", "name holds 'Some Name'"),
    "bad level": ('help = "more"', 'help = "more"\nlevel = "bad"', "unknown level"),
    "no message": ('"{subject} reads {detail}"', '""', "no message"),
    "unknown field": ("{detail}", "{frob}", "unknown field"),
    "broken field": ("{detail}", "{", "message:"),
    "format": ("{detail}", "{detail:d}", "unknown field"),
    "conversion": ("{detail}", "{detail!x}", "unknown field"),
    "field in a field": ("{detail}", "{detail:{frob}}", "unknown field"),
    "the audit's own id": ("XX001", "AUDIT001", "id holds 'AUDIT001'"),
    "nested too deeply": ("[[rule]]", f"x = {'[' * 9999}", "cannot be read"),
    "no class": ('["a.b:C"]', "[]", "no classes"),
    "bad class": ("a.b:C", "a.b.C", "classes holds 'a.b.C'"),
    "bad word": ('["flag"]', '["a b"]', "attributes holds 'a b'"),
    "missing option": ('attributes = ["flag"]\n', "", "no attributes"),
    "not TOML": ("[[rule]]", "[[rule", "cannot be read"),
    "something else": ("[[rule]]", "[other]", "holds other"),
    "twice": ("[[rule]]", RULE + "[[rule]]", "stands there twice"),
}


@pytest.mark.parametrize(("old", "new", "said"), FAULTS.values(), ids=FAULTS)
def test_a_malformed_rule(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in RULE
    (tmp_path / "audit.toml").write_text(RULE.replace(old, new))
    with pytest.raises(PatchError) as caught:
        series_rules(tmp_path)
    assert said in caught.value.message
    assert caught.value.where == str(tmp_path / "audit.toml")
    assert caught.value.hint


def test_a_series_without_rules_has_none(tmp_path: Path) -> None:
    assert series_rules(tmp_path) == []


def test_two_series_with_the_same_rule(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "series").write_text("0001-a.spatch\n")
        (tmp_path / name / "audit.toml").write_text(RULE)
    with pytest.raises(PatchError, match="also a rule of one"):
        load_rules([tmp_path / "one", tmp_path / "two"])


def test_check_reads_the_rules(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("0001-a.spatch\n")
    (tmp_path / "audit.toml").write_text(RULE.replace("XX001", "1"))
    problems = lint([str(tmp_path)])
    assert "id holds '1'" in problems[0].message
