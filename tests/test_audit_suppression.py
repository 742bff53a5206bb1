"""Ignore comments, baselines and fingerprints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditing import found, look, only, write
from vllm_graft.audit.baseline import apply_baseline, write_baseline
from vllm_graft.errors import GraftError

HEAD = """\
from vllm.v1.worker.gpu.model_runner import GPUModelRunner


class Mine(GPUModelRunner):
    def step(self):
"""
READ = "        return self.use_async_scheduling"


def ignored(comment: str, folder: Path) -> Path:
    """A file with one finding, on line 6, and a comment behind it."""
    path = folder / "mine.py"
    path.write_text(f"{HEAD}{READ}  {comment}\n")
    return path


def test_an_ignore_with_a_reason(tmp_path: Path) -> None:
    report = look(ignored("# graft: ignore[AO001] set by the platform", tmp_path))
    assert report.open == []
    (finding,) = report.findings
    assert (finding.suppressed, finding.reason) == ("comment", "set by the platform")


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: E501  # graft: ignore[AO001]: both",
        "# graft: ignore[AO001 , AO001] twice",
        "#graft: ignore[AO001] tight",
    ],
)
def test_ways_to_write_it(comment: str, tmp_path: Path) -> None:
    assert look(ignored(comment, tmp_path)).open == []


def test_above_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        f"{HEAD}        # graft: ignore[AO001] because\n        # of this\n\n{READ}\n"
    )
    assert look(path).open == []


def test_behind_the_last_line_of_an_expression(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    text = READ.replace("self.", "(\n            self\n            .")
    path.write_text(f"{HEAD}{text}  # graft: ignore[AO001] long\n        )\n")
    assert look(path).open == []


def test_around_the_decorators_of_a_definition(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("""
from vllm.v1.executor.multiproc_executor import WorkerProc
class Mine(WorkerProc):
    # graft: ignore[AO006] above
    @override
    @other(1,
        2)
    def enqueue_output(self, output): ...
    @override
    # graft: ignore[AO006] between
    @other
    def handle_output(self, output): ...
    @override  # graft: ignore[AO006] behind
    def worker_busy_loop(self): ...
""")
    report = look(path)
    assert report.open == []
    assert len(report.findings) == 3


FAULTS = {
    "no reason": ("[AO001]", ["AO001", "AUDIT001"]),
    "only a dash": ("[AO001] -", ["AO001", "AUDIT001"]),
    "no rule": (" because", ["AO001", "AUDIT001"]),
    "empty rule": ("[] because", ["AO001", "AUDIT001"]),
    "unknown rule": ("[AO999] because", ["AO001", "AUDIT002"]),
    "another rule": ("[AO002] because", ["AO001", "AUDIT003"]),
    "one too many": ("[AO001, AO002] because", ["AUDIT003"]),
}


@pytest.mark.parametrize(("text", "rules"), FAULTS.values(), ids=FAULTS)
def test_an_ignore_that_is_wrong(text: str, rules: list[str], tmp_path: Path) -> None:
    report = look(ignored(f"# graft: ignore{text}", tmp_path))
    assert [rule for rule, _ in found(report)] == rules
    assert {line for _, line in found(report)} == {6}


def test_an_ignore_in_a_file_without_findings(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1  # graft: ignore[AO001] old\n"})
    finding = only(look(tmp_path))
    assert (finding.rule.id, finding.region.column) == ("AUDIT003", 8)


def test_no_ignore_in_a_string(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}        '# graft: ignore[AO001] no'\n{READ}\n")
    assert found(look(path)) == [("AO001", 7)]


def prints(text: str, folder: Path) -> list[str]:
    """The fingerprints of the findings in a source."""
    (folder / "mine.py").write_text(text)
    return [finding.fingerprint for finding in look(folder / "mine.py").findings]


def test_fingerprints_do_not_depend_on_lines_and_layout(tmp_path: Path) -> None:
    before = prints(f"{HEAD}{READ}\n", tmp_path)
    moved = f'"""Docs."""\n\n\n{HEAD}        print()\n{READ}  # why\n'
    assert prints(moved, tmp_path) == before
    wrapped = READ.replace("self.use", "(\n  self\n  .use") + ")"
    assert prints(f"{HEAD}{wrapped}\n", tmp_path) == before
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert prints(f"{HEAD}{READ}\n", other) == before


def test_fingerprints_tell_findings_apart(tmp_path: Path) -> None:
    (one,) = prints(f"{HEAD}{READ}\n", tmp_path)
    both = prints(f"{HEAD}{READ}\n{READ}\n", tmp_path)
    assert both[0] == one
    assert len(set(both)) == 2
    assert one not in prints(f"{HEAD}{READ}\n".replace("step", "stop"), tmp_path)


def test_a_baseline(tmp_path: Path) -> None:
    path = ignored("", tmp_path)
    file = tmp_path / "baseline.json"
    assert write_baseline(file, look(path).findings) == 1
    findings, stale = apply_baseline(file, look(path).findings)
    assert [finding.suppressed for finding in findings] == ["baseline"]
    assert stale is None

    path.write_text(f"{HEAD}        pass\n\n    def new(self):\n{READ}\n")
    findings, stale = apply_baseline(file, look(path).findings)
    assert [finding.suppressed for finding in findings] == [""]
    assert stale is not None
    assert stale.message == (
        "1 entry is no longer found (AO001 in mine.py); write it anew"
    )


def test_a_baseline_leaves_out_what_a_comment_suppresses(tmp_path: Path) -> None:
    path = ignored("# graft: ignore[AO001] right", tmp_path)
    file = tmp_path / "baseline.json"
    assert write_baseline(file, look(path).findings) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"schema": 2, "findings": {}}',
        '{"schema": 1}',
        "\xff",
        "[" * 99999,
    ],
)
def test_what_is_no_baseline(text: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(GraftError, match="not a baseline"):
        apply_baseline(file, [])


def test_a_baseline_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(GraftError, match="cannot be read"):
        apply_baseline(tmp_path / "no", [])
    with pytest.raises(GraftError, match="cannot be written"):
        write_baseline(tmp_path / "no" / "file", [])


def test_the_form_of_a_baseline(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    (finding,) = look(ignored("", tmp_path)).findings
    write_baseline(file, [finding])
    assert json.loads(file.read_text()) == {
        "schema": 1,
        "findings": {
            finding.fingerprint: {
                "rule": "AO001",
                "file": "mine.py",
                "scope": "Mine.step",
            }
        },
    }
