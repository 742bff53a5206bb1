"""Which code is meant: imports, re-exports, hierarchies, look-alikes."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditing import VLLM, found, look, only, write

BODY = """
class Mine(Base):
    def step(self):
        return self.use_async_scheduling
"""
#: How `Base` gets its meaning, and whether it is the runner of the rules.
SECOND = {
    "absolute": "from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Base",
    "module": "import vllm.v1.worker.gpu.model_runner as m\nBase = m.GPUModelRunner",
    "dotted": (
        "import vllm.v1.worker.gpu.model_runner\n"
        "Base = vllm.v1.worker.gpu.model_runner.GPUModelRunner"
    ),
    "relative": "from .base import Base",
    "relative, above": "from ..plugin.base import Base",
    "re-export": "from plugin.lib import Base",
    "renamed re-export": "from plugin.lib import Renamed as Base",
    "star": "from plugin.lib.stars import *\nBase = GPUModelRunner",
    "star of a star": "from plugin.lib.more import *\nBase = GPUModelRunner",
    "cycle": "from plugin.one import Base",
    "for type checkers": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Base"
    ),
    "fallback": (
        "try:\n"
        "    from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Base\n"
        "except ImportError:\n"
        "    Base = object"
    ),
    "either": (
        "from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Two\n"
        "from vllm.v1.worker.gpu_model_runner import GPUModelRunner as One\n"
        "Base = Two if second() else One"
    ),
    "same name": (
        "from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Base\n"
        "class Base(Base):\n"
        "    pass"
    ),
    "import_module": (
        "from importlib import import_module\n"
        "Base = import_module('vllm.v1.worker.gpu.model_runner').GPUModelRunner"
    ),
    "generic": "from plugin.lib import Base as Made\nBase = Made[int]",
}
OTHERS = {
    "the first runner": (
        "from vllm.v1.worker.gpu_model_runner import GPUModelRunner as Base"
    ),
    "a look-alike": "from other.worker.gpu.model_runner import GPUModelRunner as Base",
    "a later import": (
        "from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Base\n"
        "from vllm.v1.worker.gpu_model_runner import GPUModelRunner as Base"
    ),
    "itself": "class Base(Base):\n    pass",
    "each other": "class A(Base):\n    pass\nclass Base(A):\n    pass",
    "an endless alias": "Base = Other\nOther = Base",
    "unknown": "from nowhere import Base",
}
LIB = {
    "plugin/__init__.py": "",
    "plugin/base.py": (
        "from vllm.v1.worker.gpu import model_runner\n"
        "Base = model_runner.GPUModelRunner\n"
    ),
    "plugin/lib/__init__.py": (
        "from ..base import Base\nfrom plugin.base import Base as Renamed\n"
    ),
    "plugin/lib/stars.py": "from vllm.v1.worker.gpu.model_runner import *\n",
    "plugin/lib/more.py": "from .stars import *\n",
    "plugin/one.py": "from plugin.two import Other\nfrom plugin.base import Base\n",
    "plugin/two.py": "from plugin.one import Base as Other\n",
}


@pytest.mark.parametrize("imports", SECOND.values(), ids=SECOND)
@pytest.mark.parametrize("vllm", [VLLM, None], ids=["with vLLM", "without"])
def test_the_runner_of_the_rules(
    imports: str, vllm: Path | None, tmp_path: Path
) -> None:
    write(tmp_path, {**LIB, "plugin/mine.py": f"{imports}\n{BODY}"})
    assert [rule for rule, _ in found(look(tmp_path / "plugin", vllm=vllm))] == [
        "AO001"
    ]


@pytest.mark.parametrize("imports", OTHERS.values(), ids=OTHERS)
def test_other_classes(imports: str, tmp_path: Path) -> None:
    write(tmp_path, {**LIB, "plugin/mine.py": f"{imports}\n{BODY}"})
    report = look(tmp_path / "plugin")
    assert found(report) == []
    assert report.notes == []


def test_a_hierarchy_over_several_folders(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/one/__init__.py": "",
            "a/one/base.py": LIB["plugin/base.py"],
            "b/two/__init__.py": "",
            "b/two/mine.py": f"from one.base import Base\n{BODY}",
        },
    )
    report = look(tmp_path / "a" / "one", tmp_path / "b")
    assert only(report).path.endswith("b/two/mine.py")


def test_imports_inside_a_function(tmp_path: Path) -> None:
    text = """\
    def make():
        from vllm.v1.worker.gpu.model_runner import GPUModelRunner

        class Local(GPUModelRunner):
            def step(self):
                return self.use_async_scheduling

        return Local


    def use(runner):
        from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Runner

        made = Runner()
        return made.use_async_scheduling, runner.use_async_scheduling
    """
    write(tmp_path, {"mine.py": text})
    assert found(look(tmp_path)) == [("AO001", 6), ("AO001", 15)]


def test_scripts_of_the_same_name_are_not_confused(tmp_path: Path) -> None:
    base = "from vllm.v1.worker.{} import GPUModelRunner as Base\n"
    use = "from helper import Base\n" + BODY
    write(
        tmp_path,
        {
            "a/helper.py": base.format("gpu.model_runner"),
            "a/run.py": use,
            "b/helper.py": base.format("gpu_model_runner"),
            "b/run.py": use,
        },
    )
    assert only(look(tmp_path)).path.endswith("a/run.py")


def test_a_source_layout(tmp_path: Path) -> None:
    write(tmp_path, {f"src/{k}": v for k, v in LIB.items()})
    write(tmp_path, {"src/plugin/mine.py": "from plugin.base import Base\n" + BODY})
    finding = only(look(tmp_path))
    assert finding.home == "plugin/mine.py"


def test_a_fork_is_judged_by_its_own_vllm(tmp_path: Path) -> None:
    """Its runner is at the usual place, and inherits the attribute from elsewhere."""
    for path in VLLM.rglob("*.py"):
        write(tmp_path, {str(path.relative_to(VLLM)): path.read_text()})
    write(
        tmp_path,
        {
            "vllm/v1/extra.py": """\
            from .worker.gpu.model_runner import GPUModelRunner

            def helper(runner: GPUModelRunner):
                return runner.use_async_scheduling
            """
        },
    )
    report = look(tmp_path, vllm=None)
    assert only(report).path.endswith("extra.py")
    assert report.vllm == tmp_path


def test_a_fork_that_drifted_from_upstream(tmp_path: Path) -> None:
    for path in VLLM.rglob("*.py"):
        write(tmp_path, {str(path.relative_to(VLLM)): path.read_text()})
    assert found(look(tmp_path)) == []
    changed = tmp_path / "vllm/v1/executor/multiproc_executor.py"
    text = changed.read_text().replace("self.waiting.put(output)", "self.keep(output)")
    changed.write_text(text)
    finding = only(look(tmp_path))
    assert finding.rule.id == "AO006"
    assert "1 of its 4 statements gone ('self.waiting.put(output)')" in finding.message
    assert "1 new ('self.keep(output)')" in finding.message
    assert found(look(tmp_path, vllm=None)) == []


def test_an_override_without_its_original(tmp_path: Path) -> None:
    text = """\
    from vllm.v1.executor.multiproc_executor import WorkerProc

    class Mine(WorkerProc):
        def worker_busy_loop(self):
            pass
    """
    write(tmp_path, {"mine.py": text})
    finding = only(look(tmp_path, vllm=None))
    assert "not at hand to compare with" in finding.message
