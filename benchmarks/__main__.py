"""Runs benchmarks and prints their tables: ``python -m benchmarks [NAME...]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.table import Table
from benchmarks.timing import Failed
from vllm_graft import GraftError, git

#: In the order in which they run; each is a module with ``ROUNDS`` and ``measure``.
NAMES = (
    *("apply", "engine", "status", "audit", "carry", "matrix", "startup"),
    *("rpc", "tokens"),
)
#: They need the engine environment, which they install.
ON_THE_ENGINE = ("rpc", "tokens")


def main(argv: Sequence[str]) -> int:
    """Runs the benchmarks that are named, or all.

    Args:
        argv: The arguments, without the program's name.

    Returns:
        0, or 2 if a benchmark could not run.
    """
    arguments = _parse(argv)
    print(f"Measured with {_machine()}.\n", flush=True)
    tables: dict[str, Table] = {}
    for name in arguments.names or NAMES:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        module = import_module(f"benchmarks.{name}")
        try:
            tables[name] = module.measure(arguments.rounds or module.ROUNDS)
        except (Failed, GraftError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        print(tables[name].markdown(), flush=True)
    if arguments.json:
        record = {
            "machine": _machine(),
            "tables": {name: table.to_json() for name, table in tables.items()},
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    arguments = parser.parse_args(argv)
    unknown = sorted({*arguments.names} - {*NAMES})
    if unknown:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(NAMES)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error("--rounds takes a number from 1 on")
    return arguments


def _machine() -> str:
    parts = [
        f"vllm-graft {version('vllm-graft')}",
        f"{platform.python_implementation()} {platform.python_version()}",
        git.run("--version", cwd=Path()).replace(" version", ""),
        f"LibCST {version('libcst')}",
        f"ast-grep {version('ast-grep-cli')}",
    ]
    place = f"{os.cpu_count()} cores of {platform.machine()}, {platform.system()}"
    return f"{', '.join(parts)}, on {place}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
