"""Files that cannot be read or parsed are reported, and the rest is audited."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from auditing import VLLM, found, look, only, write
from vllm_graft.errors import TreeError

FINDING = """\
from vllm.v1.worker.gpu.model_runner import GPUModelRunner


class Mine(GPUModelRunner):
    def step(self):
        return self.use_async_scheduling
"""
RULE_WORDS = b"# use_async_scheduling sample_tokens\n"
BROKEN = {
    "no Python": (b"def f(:\n    self.use_async_scheduling\n", "cannot be parsed"),
    "null byte": (RULE_WORDS + b"x.use_async_scheduling\0\n", "cannot be parsed"),
    "not UTF-8": (RULE_WORDS + b"x = '\xff'\n", "cannot be parsed"),
    "unknown encoding": (b"# coding: frob\n" + RULE_WORDS, "cannot be parsed"),
    "many parentheses": (
        b"x.use_async_scheduling\n" + b"(" * 5000 + b")" * 5000,
        "cannot be parsed",
    ),
    "deep code": (
        b"def f(r):\n  o = r.model_runner.sample_tokens()\n  return o"
        + b".a" * 2000
        + b"\n",
        "nested too deeply",
    ),
}


@pytest.mark.parametrize(("data", "said"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_audited(data: bytes, said: str, tmp_path: Path) -> None:
    write(tmp_path, {"a/fine.py": FINDING, "z/fine.py": FINDING})
    (tmp_path / "broken.py").write_bytes(data)
    report = look(tmp_path)
    assert found(report) == [("AO001", 6), ("AO001", 6)]
    (note,) = report.notes
    assert note.where.startswith(str(tmp_path / "broken.py"))
    assert said in note.message


ENCODED = {
    "latin-1": f"# coding: latin-1\n# \xe4\xf6\n{FINDING}".encode("latin-1"),
    "a codec that knows no replacements": f"# coding: idna\n#\n{FINDING}".encode(),
    "byte order mark": b"\xef\xbb\xbf#\n#\n" + FINDING.encode(),
    "carriage returns": ("#\n#\n" + FINDING).replace("\n", "\r\n").encode(),
    "old carriage returns": ("#\n#\n" + FINDING).replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED)
def test_encodings_and_line_ends(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(data)
    finding = only(look(tmp_path))
    assert finding.region.line == 8
    assert finding.region.column == 16


def test_columns_are_characters(tmp_path: Path) -> None:
    text = FINDING.replace("return ", "return 'äöü\U0001f600', ")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    assert only(look(tmp_path)).region.column == 24


def test_links(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/mine.py": FINDING})
    (tmp_path / "pkg" / "loop").symlink_to(tmp_path / "pkg")
    (tmp_path / "pkg" / "self").symlink_to("self")
    (tmp_path / "pkg" / "self.py").symlink_to("self.py")
    (tmp_path / "pkg" / "gone.py").symlink_to("nowhere.py")
    (tmp_path / "again").symlink_to(tmp_path / "pkg")
    report = look(tmp_path)
    assert len(report.open) == 1
    notes = {Path(note.where).name: note.message for note in report.notes}
    assert notes["loop"] == "a link that leads back to a folder above it"
    assert notes["self"].startswith("cannot be read")
    assert notes["self.py"].startswith("cannot be read")
    assert notes["gone.py"].startswith("cannot be read")
    assert len(notes) == 4


def test_what_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"mine.py": FINDING, "closed.py": FINDING, "shut/mine.py": FINDING})
    read, scan = Path.read_bytes, os.scandir

    def refuse(function: Any) -> Any:
        def call(path: Any) -> Any:
            if Path(path).name in ("closed.py", "shut"):
                raise PermissionError(13, "Permission denied")
            return function(path)

        return call

    monkeypatch.setattr(Path, "read_bytes", refuse(read))
    monkeypatch.setattr(os, "scandir", refuse(scan))
    report = look(tmp_path)
    assert found(report) == [("AO001", 6)]
    assert [(Path(note.where).name, note.message) for note in report.notes] == [
        ("closed.py", "cannot be read: Permission denied"),
        ("shut", "cannot be read: Permission denied"),
    ]


def test_what_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".hidden/mine.py": FINDING,
            "__pycache__/mine.py": FINDING,
            "env/pyvenv.cfg": "",
            "env/lib/mine.py": FINDING,
            "notes.txt": FINDING,
            "mine.pyi": FINDING,
        },
    )
    report = look(tmp_path)
    assert (report.files, report.findings) == (0, [])


def test_a_module_of_vllm_that_cannot_be_parsed(tmp_path: Path) -> None:
    write(tmp_path, {"vllm/__init__.py": "", "mine.py": FINDING})
    broken = tmp_path / "vllm/v1/worker/gpu/model_runner.py"
    write(tmp_path, {"vllm/v1/worker/gpu/model_runner.py": "class GPUModelRunner(:\n"})
    report = look(tmp_path / "mine.py", vllm=tmp_path)
    assert found(report) == [("AO001", 6)]
    assert [note.where for note in report.notes] == [f"{broken}:1"]


def test_a_missing_vllm_is_noted(tmp_path: Path) -> None:
    write(tmp_path, {"mine.py": FINDING})
    report = look(tmp_path, vllm=None)
    assert found(report) == [("AO001", 6)]
    assert "--vllm" in report.notes[0].message


def test_a_file_named_twice_is_audited_once(tmp_path: Path) -> None:
    write(tmp_path, {"mine.py": FINDING, "script": FINDING})
    assert look(tmp_path, tmp_path / "mine.py").files == 1
    assert len(look(tmp_path, tmp_path / "script").open) == 2


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(TreeError) as caught:
        look(tmp_path / "no", vllm=VLLM)
    assert caught.value.hint


def test_nothing_to_audit_is_noted(tmp_path: Path) -> None:
    report = look(tmp_path)
    assert [(n.where, n.message) for n in report.notes] == [
        (str(tmp_path), "holds no Python file")
    ]
