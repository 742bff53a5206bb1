"""The tensor stand-ins, checked in the engine environment, which has torch."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest

from engine.interpreter import engine_python

HERE = Path(__file__).parent
CHECKS = HERE / "engine" / "check_tensors.py"
NAMES = [
    node.name.removeprefix("check_")
    for node in ast.parse(CHECKS.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def results() -> dict[str, str | None]:
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run(
        [engine_python(), CHECKS],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_stand_in(results: dict[str, str | None], name: str) -> None:
    assert results[name] is None, results[name]
