"""The environment of a CPU run, and what it does to a Python that starts in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vllm_graft.cpu import ASYNC_VARIABLE, environment

SITE = Path(__file__).parent.parent / "src" / "vllm_graft" / "_site"


def python(
    code: str, env: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that does not see this project's own path."""
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def base(**extra: str) -> dict[str, str]:
    kept = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ}
    return {**kept, **extra}


def test_the_base_is_not_changed() -> None:
    before = {"PYTHONPATH": "/somewhere"}
    environment(before)
    assert before == {"PYTHONPATH": "/somewhere"}


def test_the_site_folder_comes_first_and_once() -> None:
    env = environment(environment({"PYTHONPATH": "/somewhere"}))
    assert env["PYTHONPATH"].split(os.pathsep) == [str(SITE), "/somewhere"]


@pytest.mark.parametrize(
    ("asynchronous", "expected"), [(None, None), (True, "1"), (False, "0")]
)
def test_async_scheduling_can_be_forced(
    asynchronous: bool | None, expected: str | None
) -> None:
    env = environment({ASYNC_VARIABLE: "9"}, asynchronous=asynchronous)
    assert env.get(ASYNC_VARIABLE) == expected


def test_the_callers_cache_size_is_kept_and_the_recipe_is_not_negotiable() -> None:
    env = environment({"VLLM_CPU_KVCACHE_SPACE": "7", "TRITON_INTERPRET": "0"})
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "7"
    assert env["TRITON_INTERPRET"] == "1"


def test_start_up_imports_neither_torch_nor_vllm_nor_the_tools_own_needs() -> None:
    code = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(python(code, environment(base())).stdout)
    assert "vllm_graft.cpu.imports" in modules
    unwanted = {"torch", "vllm", "triton", "rich", "requests", "importlib.metadata"}
    assert not unwanted & set(modules)


def test_start_up_does_not_put_the_packages_folder_on_the_path() -> None:
    code = "import sys, json; print(json.dumps(sys.path))"
    path = json.loads(python(code, environment(base()), "-S").stdout)
    assert str(SITE.parent.parent) not in path


def test_without_the_variable_nothing_is_loaded() -> None:
    code = "import sys; print('vllm_graft' in sys.modules)"
    env = base(PYTHONPATH=str(SITE))
    assert python(code, env).stdout.strip() == "False"


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs')\n")
    done = python(
        "import sitecustomize as s; print(s.__file__)",
        environment(base(PYTHONPATH=str(tmp_path))),
    )
    assert done.stdout.split() == ["theirs", str(tmp_path / "sitecustomize.py")]


def test_a_spawned_process_is_set_up_too() -> None:
    code = (
        "import subprocess, sys\n"
        "print(subprocess.check_output([sys.executable, '-c',"
        " 'import sys; print(\"vllm_graft.cpu\" in sys.modules)'], text=True))"
    )
    assert python(code, environment(base())).stdout.strip() == "True"


def test_a_failure_at_start_up_ends_the_process() -> None:
    env = environment(base(VLLM_GRAFT_HOOK="/no/such/bundle"))
    done = python("print('went on')", env)
    assert done.returncode == 70
    assert "went on" not in done.stdout
    assert "vllm-graft: start-up failed" in done.stderr


def test_triton_imported_too_early_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("")
    code = "import triton, vllm_graft.cpu as c; c.install()"
    done = python(code, environment(base(PYTHONPATH=str(tmp_path))))
    assert "ImportError: triton was imported before" in done.stderr
