"""What GPU runners run: every step in order, and no success that was not seen.

The script runs for real, on stand-ins for Python's environments and for the command.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "ci" / "gpu.sh"
summary = runpy.run_path(str(ROOT / "ci" / "gpu_summary.py"))

# Stands in for each Python and for vllm-graft, told apart by its name and arguments.
# The reports say what the tests' outcomes are on base and grafted.
STAND_IN = """
import json, os, sys

name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
world = json.loads(os.environ["WORLD"])
if "GRAFTED" not in os.environ:
    with open(os.environ["LOG"], "a") as log:
        print(name, *words, file=log)
if name == "vllm-graft":
    if words[0] == "status":
        print(json.dumps(world["status"]))
    elif words[0] == "run":
        os.environ["GRAFTED"] = "0" if "--without" in words else "1"
        command = words[words.index("--") + 1 :]
        os.execv(command[0], command)
    elif words[1] in world["verify"]:
        sys.exit(1)
    else:
        print("{}")
    sys.exit()
if words[:2] == ["-m", "venv"]:
    os.makedirs(words[-1] + "/bin")
    for name in ("python", "vllm-graft"):
        os.symlink(sys.argv[0], words[-1] + "/bin/" + name)
elif words[0] == "-c":
    sys.exit(world["no_gpu"])
elif words[:2] == ["-m", "pytest"]:
    side = "grafted" if os.environ.get("GRAFTED", world["installed"]) == "1" else "base"
    code, outcomes = world[side]
    cases = "".join(
        f'<testcase classname="t" name="{i}"><properties>'
        f'<property name="step_ms" value="{world["step_ms"]}"/></properties>{mark}'
        "</testcase>"
        for i, mark in enumerate(outcomes)
    )
    with open(words[words.index("--junitxml") + 1], "w") as report:
        report.write(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    sys.exit(code)
elif words[0].endswith("gpu_summary.py"):
    os.execv(sys.executable, [sys.executable, "-IS", *words])
"""

PASSES, FAILS = "", "<failure/>"


def status(verdict: str) -> dict[str, Any]:
    """As `vllm-graft status --json` prints it; tests are never in a wheel."""
    patches = [
        {"targets": ["vllm/a.py"], "verdict": verdict},
        {"targets": ["tests/test_a.py"], "verdict": "applies"},
    ]
    return {"series": [{"name": "mrv2-async-output", "patches": patches}]}


def world(**changes: Any) -> dict[str, Any]:
    """A machine on which the series holds, but for the changes."""
    holds = {
        "no_gpu": 0,
        "status": status("applies"),
        "installed": "0",
        "base": [1, [PASSES, FAILS]],
        "grafted": [0, [PASSES, PASSES]],
        "step_ms": 2.0,
        "verify": [],  # for which first argument it fails
    }
    return {**holds, **changes}


class Result(NamedTuple):
    """What a run of the script left."""

    code: int
    printed: str
    errors: str
    out: Path
    log: list[str]  # the commands, but for those that `vllm-graft run` started

    def summary(self) -> Any:
        return json.loads((self.out / "summary.json").read_text())

    def tests(self) -> list[str]:
        """The commands that ran tests."""
        return [line for line in self.log if " pytest tests/v1 " in line]


Script = Callable[..., Result]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run the script on a machine."""

    def run(machine: dict[str, Any], *arguments: str, **settings: str) -> Result:
        stand_in, log = tmp_path / "python", tmp_path / "log"
        stand_in.write_text(f"#!{sys.executable} -IS{STAND_IN}")
        stand_in.chmod(0o755)
        log.touch()
        own = {"PYTHON": str(stand_in), "OUT_DIR": "out", "LOG": str(log)}
        done = subprocess.run(
            [SCRIPT, *arguments],
            cwd=tmp_path,
            env=os.environ | own | {"WORLD": json.dumps(machine)} | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        lines = log.read_text().splitlines()
        out = tmp_path / "out"
        return Result(done.returncode, done.stdout, done.stderr, out, lines)

    return run


def test_help_names_every_setting(script: Script) -> None:
    done = script(world(), "--help")
    assert done.code == 0
    settings = re.findall(r"^([A-Z_]+)=\$\{\1:-", SCRIPT.read_text(), re.MULTILINE)
    assert len(settings) == 6
    assert all(f"  {name}=" in done.printed for name in settings)


@pytest.mark.parametrize("words", [["--no-such-thing"], ["3"]])
def test_bad_usage_is_refused(script: Script, words: list[str]) -> None:
    done = script(world(), *words)
    assert done.code == 2
    assert f"unknown argument '{words[0]}'" in done.errors
    assert done.log == []


def test_a_dry_run_prints_every_command_and_runs_none(script: Script) -> None:
    dry = script(world(), "--dry-run")
    assert dry.code == 0
    assert dry.log == []
    assert not dry.out.exists()
    assert "the series holds" not in dry.errors
    wet = script(world())
    commands = [line for line in wet.errors.splitlines() if line.startswith("+ ")]
    verdict = [line for line in commands if " verdict " in line]
    assert [line for line in dry.errors.splitlines() if line.startswith("+ ")] == [
        line for line in commands if line not in verdict
    ]


def test_it_holds_where_tests_fail_on_base_alone(script: Script) -> None:
    done = script(world(), VLLM_VERSION="0.22.1")
    assert done.code == 0, done.errors
    assert "the series holds on this GPU" in done.errors
    assert done.summary()["fail_only_on_base"] == ["t::1"]
    assert done.summary()["step_ms"]["t::0"]["ratio"] == 1.0
    assert any("install --no-input vllm==0.22.1" in line for line in done.log)
    base, grafted = done.tests()
    assert base.startswith("python -m pytest")
    assert grafted.startswith("vllm-graft run --series mrv2-async-output -- ")
    assert {path.name for path in done.out.iterdir()} == {
        *("venv", "work", "status.json", "base.xml", "grafted.xml"),
        *("summary.json", "verify.json"),
    }


def test_the_forks_tests_can_be_imported(script: Script) -> None:
    tests = script(world()).out / "work" / "tests"
    folders = {path.parent for path in tests.rglob("test_*.py")}
    assert folders
    assert all((folder / "__init__.py").exists() for folder in folders)
    assert (tests / "__init__.py").exists()


def test_base_is_the_reverse_where_vllm_has_the_series(script: Script) -> None:
    done = script(world(status=status("applied"), installed="1"))
    assert done.code == 0, done.errors
    base, _ = done.tests()
    assert base.startswith("vllm-graft run --without mrv2-async-output -- ")


def test_no_test_runs_on_a_vllm_that_the_series_does_not_fit(script: Script) -> None:
    done = script(world(status=status("conflict")))
    assert done.code == 1
    assert "does not fit vLLM 0.23.0" in done.errors
    assert "the verdicts are conflict" in done.errors
    assert done.tests() == []


@pytest.mark.parametrize("verdict", ["superseded", "absent", "partial"])
def test_only_two_verdicts_tell_base_from_grafted(verdict: str) -> None:
    with pytest.raises(ValueError, match=f"the verdicts are {verdict}"):
        summary["verdict"](status(verdict))


def test_a_machine_without_a_gpu_is_refused(script: Script) -> None:
    done = script(world(no_gpu=1))
    assert done.code == 2
    assert "finds no CUDA device" in done.errors
    assert done.tests() == []


def test_it_does_not_hold_where_a_test_fails_with_the_series(script: Script) -> None:
    done = script(world(grafted=[1, [PASSES, FAILS]]))
    assert done.code == 1
    assert "t::1 failed with the series" in done.errors
    assert "failed: the fork's tests" in done.errors
    # The rest is still worth knowing.
    assert any(line.startswith("vllm-graft verify --series") for line in done.log)


@pytest.mark.parametrize(
    ("base", "grafted", "reason"),
    [
        (["passed", "failed"], ["passed", "failed"], "1 failed with the series"),
        (["failed", "passed"], ["passed", "skipped"], "1 skipped with the series"),
        ([], [], "no test ran with the series"),
        (["failed", "passed"], ["passed"], "did not run the same tests"),
        (["passed", "passed"], ["passed", "passed"], "no test fails without the"),
    ],
)
def test_what_is_wrong_is_said(
    base: list[str], grafted: list[str], reason: str
) -> None:
    sides = (
        {str(i): {"outcome": outcome} for i, outcome in enumerate(outcomes)}
        for outcomes in (base, grafted)
    )
    _, wrong = summary["compare"](*sides)
    assert any(reason in line for line in wrong)


@pytest.mark.parametrize("side", ["base", "grafted"])
def test_tests_that_could_not_run_are_no_result(script: Script, side: str) -> None:
    done = script(world(**{side: [4, []]}))
    assert done.code == 1
    assert f"pytest ended with 4 on {side}" in done.errors


def test_it_does_not_hold_where_verify_fails(script: Script) -> None:
    done = script(world(verify=["--series"]))
    assert done.code == 1
    assert "failed: verify" in done.errors


def test_verify_may_be_quick(script: Script) -> None:
    done = script(world(), QUICK="1")
    (line,) = (x for x in done.log if x.startswith("vllm-graft verify --series"))
    assert "--series mrv2-async-output --device cuda --json" in line
    assert line.endswith("--quick")


def test_a_tool_without_verify_is_said_to_have_none(script: Script) -> None:
    done = script(world(verify=["--help"]))
    assert done.code == 0
    assert "has no 'verify'" in done.errors
