"""Real plugins, and vLLM itself: every finding was read by hand, and is right.

What is expected is named by file, line and rule; nothing of these packages is kept
here. They come from the package index, are verified by digest and stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.plugins import released

from auditing import RULES
from vllm_graft.audit.auditor import audit
from vllm_graft.audit.findings import Report
from vllm_graft.index.client import Index

pytestmark = pytest.mark.network


class Target(NamedTuple):
    """A release to audit.

    Args:
        project: Its name on the index.
        file: The distribution.
        sha256: Its digest.
        packages: The folders in it that are audited.
        files: How many Python files those hold.
        findings: File, line and rule of each finding.
    """

    project: str
    file: str
    sha256: str
    packages: tuple[str, ...]
    files: int
    findings: tuple[tuple[str, int, str], ...]


VLLM = Target(
    "vllm",
    "vllm-0.23.0.tar.gz",
    "760269db3d9611e1",
    ("vllm",),
    1806,
    # Nothing. UniProcExecutor's blocking path and the runner's own reads of its flag
    # are what the series changes, which `status` judges; gpu_worker.py and
    # ray_utils.py ask by isinstance before they use an output; the many reads of
    # use_async_scheduling in gpu_model_runner.py are the first runner's; WorkerProc's
    # flag of the same name is the executor's own, and stays.
    (),
)
PLUGINS = (
    Target(
        "vllm-ascend",
        "vllm_ascend-0.23.0.post1.tar.gz",
        "a3b9f4a5dd7aa50c",
        ("vllm_ascend", "tests"),
        901,
        (
            # The module's MultiprocExecutor becomes a subclass that starts its worker
            # processes in its own way. It overrides neither collective_rpc nor the
            # busy loop, so it gets the refactor; whoever patches the original class
            # further has to know that it is not the one in use.
            ("vllm_ascend/patch/platform/patch_multiproc_executor.py", 211, "AO007"),
            # Not a finding: the reads of use_async_scheduling in model_runner_v1.py
            # (the first runner), in pcp_utils.py and the proposer (flags of their
            # own); NPUWorker.execute_model, which asks by isinstance; and
            # worker/v2/model_runner.py, a subclass that overrides neither method.
        ),
    ),
    Target(
        "vllm-omni",
        "vllm_omni-0.22.0-py3-none-any.whl",
        "df3c95a5834ce99f",
        ("vllm_omni",),
        749,
        # Nothing: its runners build on the first runner, also by way of vllm-ascend's,
        # which is not at hand; its diffusion executor, worker and busy loop only share
        # names with vLLM's, and are written anew.
        (),
    ),
    Target(
        "tpu-inference",
        "tpu_inference-0.23.0rc1-py3-none-any.whl",
        "af571cb1b3ddcb48",
        ("tpu_inference", "tests"),
        428,
        (
            # The branch `if not non_block` returns what run_method() gave. The other
            # one resolves. The engine takes a blocking call's result for resolved.
            ("tpu_inference/core/disagg_executor.py", 98, "AO004"),
            # With async scheduling it copies the original's first half, then keeps
            # the output under a number and resolves it later, if it is the TPU
            # runner's; an output of Model Runner V2 would be handed on unresolved.
            ("tpu_inference/executors/ray_distributed_executor.py", 518, "AO006"),
            # Not a finding: core_tpu.py resolves what an executor returned behind an
            # isinstance, which is right before and after.
        ),
    ),
    Target(
        "vllm-rbln",
        "vllm_rbln-0.11.0a0-py3-none-any.whl",
        "68a8ebcfd2a49b83",
        ("vllm_rbln",),
        135,
        # Nothing: its runners are classes of their own that set use_async_scheduling
        # themselves, and its workers hold no other runner.
        (),
    ),
)


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as opened:
        yield opened


def tree(index: Index, target: Target) -> Path:
    """The unpacked release, from the cache."""
    folder = released(index, target.project, target.file, target.sha256)
    assert folder is not None
    return folder


def places(report: Report, root: Path) -> list[tuple[str, int, str]]:
    """File, line and rule of each finding."""
    return [
        (
            Path(f.path).absolute().relative_to(root).as_posix(),
            f.region.line,
            f.rule.id,
        )
        for f in report.findings
    ]


def test_vllm_itself(index: Index) -> None:
    root = tree(index, VLLM)
    report = audit([root / "vllm"], RULES)
    assert places(report, root) == []
    assert report.notes == []
    assert (report.files, report.vllm_version) == (VLLM.files, "0.23.0")


def test_the_whole_source_distribution(index: Index) -> None:
    root = tree(index, VLLM)
    report = audit([root], RULES)
    assert places(report, root) == []
    assert report.notes == []


@pytest.mark.parametrize("target", PLUGINS, ids=lambda target: target.project)
def test_a_plugin(target: Target, index: Index) -> None:
    vllm, root = tree(index, VLLM), tree(index, target)
    report = audit([root / name for name in target.packages], RULES, vllm=vllm)
    assert places(report, root) == list(target.findings)
    assert report.notes == []
    assert report.files == target.files


def test_a_plugin_without_vllm(index: Index) -> None:
    """Names alone tell most of it."""
    (target,) = (t for t in PLUGINS if t.project == "tpu-inference")
    report = audit([tree(index, target) / "tpu_inference"], RULES)
    assert places(report, tree(index, target)) == list(target.findings)
    assert "not at hand to compare with" in report.findings[1].message


def test_a_seeded_plugin(index: Index, tmp_path: Path) -> None:
    """Against the real vLLM, what would break is found, not only what is there."""
    write_seed(tmp_path)
    report = audit([tmp_path], RULES, vllm=tree(index, VLLM))
    assert [(f.region.line, f.rule.id) for f in report.findings] == [
        (9, "AO001"),
        (10, "AO002"),
        (15, "AO003"),
        (20, "AO004"),
        (24, "AO005"),
        (28, "AO006"),
        (32, "AO007"),
    ]


def write_seed(folder: Path) -> None:
    """A plugin with one mistake of each kind."""
    (folder / "seed.py").write_text(
        """\
from vllm.v1.executor import Executor, multiproc_executor
from vllm.v1.serial_utils import run_method
from vllm.v1.worker.gpu_worker import Worker
from vllm.v1.worker.xpu_model_runner import XPUModelRunnerV2


class Runner(XPUModelRunnerV2):
    def sample_tokens(self, grammar):
        wait = self.use_async_scheduling
        return super().sample_tokens(grammar).req_ids if wait else None


class Probe(Worker):
    def step(self, step):
        return self.execute_model(step).sampled_token_ids


class Mine(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        return [run_method(self.worker, method, args, kwargs)]


def core(executor: Executor, step):
    return executor.execute_model(step).get_output()


class Proc(multiproc_executor.WorkerProc):
    def worker_busy_loop(self):
        pass


multiproc_executor.WorkerProc.handle_output = print
"""
    )
