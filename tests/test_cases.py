"""One folder a quirk: what a patch does to a file, and what undoing it gives back.

``before.py`` and ``change.spatch`` give ``after.py``; reverting that gives
``before.py``, byte for byte. A reverse patch writes removed code as the patch file
spells it: where the target had another layout or a trailing comment, the folder has
``after-revert.py`` with what the reverse patch alone gives, and the record of the
original gives back the rest.
"""

from pathlib import Path

import pytest

from vllm_graft.engine.evaluate import CompiledFile, FileOutcome
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.patchfile import Patch
from vllm_graft.engine.source import Source
from vllm_graft.planner import FileChange
from vllm_graft.results import Verdict
from vllm_graft.series import SeriesPatch
from vllm_graft.undo import UndoStore

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())

pytestmark = pytest.mark.parametrize("case", CASES)


def patch_of(case: str) -> Patch:
    return parse_patch("change.spatch", (FOLDER / case / "change.spatch").read_text())


def evaluate(patch: Patch, data: bytes) -> tuple[FileOutcome, bytes]:
    (file,) = patch.files
    compiled = CompiledFile("change.spatch", file, reverse=patch.reverse)
    source = Source.from_bytes("target.py", data)
    outcome = compiled.evaluate(source)
    return outcome, source.with_text(outcome.text).to_bytes()


def read(case: str, name: str) -> bytes:
    return (FOLDER / case / name).read_bytes()


def test_apply(case: str) -> None:
    outcome, data = evaluate(patch_of(case), read(case, "before.py"))
    assert outcome.verdict is Verdict.APPLIES, outcome
    assert data == read(case, "after.py")


def test_apply_again(case: str) -> None:
    outcome, data = evaluate(patch_of(case), read(case, "after.py"))
    assert outcome.verdict is Verdict.APPLIED, outcome
    assert data == read(case, "after.py")


def test_revert(case: str) -> None:
    outcome, data = evaluate(patch_of(case).reversed(), read(case, "after.py"))
    exact = not (FOLDER / case / "after-revert.py").exists()
    assert outcome.verdict is Verdict.APPLIES, outcome
    assert data == read(case, "before.py" if exact else "after-revert.py")
    assert exact == (data == read(case, "before.py"))


def test_revert_again(case: str) -> None:
    reverse = patch_of(case).reversed()
    _, reverted = evaluate(reverse, read(case, "after.py"))
    outcome, data = evaluate(reverse, reverted)
    assert outcome.verdict is Verdict.APPLIED, outcome
    assert data == reverted


def test_revert_with_the_record(case: str, tmp_path: Path) -> None:
    before, after = read(case, "before.py"), read(case, "after.py")
    item = SeriesPatch(patch_of(case))
    store = UndoStore(tmp_path)
    store.remember(item, [FileChange("target.py", before, after)])
    assert store.recall(item, "target.py", after) == before


def test_prints_back(case: str) -> None:
    text = (FOLDER / case / "change.spatch").read_text()
    patch = patch_of(case)
    assert str(patch) == text
    assert patch.reversed().reversed() == patch


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_both_sides_are_python(case: str) -> None:
    for name in ("before.py", "after.py"):
        compile(read(case, name), name, "exec", dont_inherit=True)
