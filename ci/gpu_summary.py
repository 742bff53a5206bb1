"""What ``ci/gpu.sh`` makes of the files it gathers; needs the standard library only.

    gpu_summary.py verdict STATUS.json         prints 'applies' or 'applied'
    gpu_summary.py compare BASE.xml GRAFTED.xml    prints JSON

Exit code 1, with a reason on stderr, where the series does not hold.
"""

# ruff: noqa: INP001, T201 - a script

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}


def verdict(status: dict[str, Any]) -> str:
    """Whether an installed vLLM is base ('applies') or grafted ('applied').

    Args:
        status: What ``vllm-graft status --json --series NAME`` printed.

    Raises:
        ValueError: It is neither.
    """
    # A wheel has no tests, so that patches that add some always apply.
    found = {
        patch["verdict"]
        for series in status["series"]
        for patch in series["patches"]
        if any(target.startswith("vllm/") for target in patch["targets"])
    }
    if found not in ({"applies"}, {"applied"}):
        raise ValueError(f"the verdicts are {', '.join(sorted(found)) or 'missing'}")
    return str(found.pop())


def read(report: Path) -> dict[str, dict[str, Any]]:
    """The outcome and the recorded properties of each test of a JUnit file."""
    tests = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        marks = [_OUTCOMES[child.tag] for child in case if child.tag in _OUTCOMES]
        name = f"{case.get('classname')}::{case.get('name')}"
        found = {p.get("name", ""): p.get("value") for p in case.iter("property")}
        tests[name] = {"outcome": [*marks, "passed"][0], **found}
    return tests


def compare(
    base: dict[str, dict[str, Any]], grafted: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """The summary of both runs, and what is wrong with them.

    On base some tests fail: those that the series is about. With it none may fail,
    none may be skipped, and the same tests must have run.
    """
    summary = {
        "tests": len(grafted),
        "grafted": _count(grafted),
        "base": _count(base),
        "fail_only_on_base": sorted(
            name
            for name, test in base.items()
            if test["outcome"] == "failed"
            and grafted.get(name, {}).get("outcome") == "passed"
        ),
        "step_ms": {
            name: {
                "base": float(base[name]["step_ms"]),
                "grafted": float(test["step_ms"]),
                "ratio": float(test["step_ms"]) / float(base[name]["step_ms"]),
            }
            for name, test in grafted.items()
            if "step_ms" in test and "step_ms" in base.get(name, {})
        },
    }
    wrong = [
        f"{name} {test['outcome']} with the series"
        for name, test in grafted.items()
        if test["outcome"] != "passed"
    ]
    if not grafted:
        wrong.append("no test ran with the series")
    if base.keys() != grafted.keys():
        wrong.append("base and grafted did not run the same tests")
    if not summary["fail_only_on_base"]:
        wrong.append("no test fails without the series")
    return summary, wrong


def _count(tests: dict[str, dict[str, Any]]) -> dict[str, int]:
    outcomes = [test["outcome"] for test in tests.values()]
    return {name: outcomes.count(name) for name in ("passed", "failed", "skipped")}


def main(arguments: list[str]) -> int:
    """Runs one of the two; the exit code."""
    command, paths = arguments[:1], [Path(name) for name in arguments[1:]]
    if command == ["verdict"] and len(paths) == 1:
        try:
            print(verdict(json.loads(paths[0].read_text(encoding="utf-8"))))
        except (ValueError, KeyError) as error:
            print(f"{paths[0]}: {error!r}", file=sys.stderr)
            return 1
        return 0
    if command == ["compare"] and len(paths) == 2:
        summary, wrong = compare(*(read(path) for path in paths))
        print(json.dumps({**summary, "wrong": wrong}, indent=1))
        print("\n".join(wrong), file=sys.stderr)
        return 1 if wrong else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
