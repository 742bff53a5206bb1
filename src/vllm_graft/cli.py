"""The command line: arguments, errors and exit codes.

Exit codes: 0 done or nothing to do, 1 some patch does not apply, 2 bad usage or bad
input, 130 interrupted. Everything a command prints goes through
:mod:`vllm_graft.report`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from vllm_graft.errors import GraftError

EXIT_OK: Final = 0
EXIT_NOT_APPLICABLE: Final = 1
EXIT_BAD: Final = 2
EXIT_INTERRUPTED: Final = 130

_TREE = (
    "a vLLM checkout, or a folder that holds the package vllm (site-packages); "
    "default: the current folder, else the installed vLLM"
)


def main(argv: Sequence[str]) -> int:
    """Runs one command.

    Args:
        argv: The arguments, without the program's name.

    Returns:
        The exit code.
    """
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except GraftError as error:
        _print_error(error, as_json=getattr(arguments, "json", False))
        return EXIT_BAD
    except BrokenPipeError:
        sys.stderr.close()  # the reader is gone; nothing more to say
        return EXIT_OK
    except KeyboardInterrupt:
        print("interrupted; nothing is left half done", file=sys.stderr)
        return EXIT_INTERRUPTED


def _print_error(error: GraftError, *, as_json: bool) -> None:
    place = f"{error.where}: " if error.where else ""
    print(f"error: {place}{error.message}", file=sys.stderr)
    if error.hint:
        print(f" hint: {error.hint}", file=sys.stderr)
    if as_json:
        record = {"message": error.message, "where": error.where, "hint": error.hint}
        print(json.dumps({"error": record}, indent=2))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vllm-graft",
        description="Carry semantic patch series onto any vLLM tree.",
        epilog="Exit codes: 0 done or nothing to do, 1 some patch does not apply, "
        "2 bad usage or bad input.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add = _Adder(commands)

    status = add("status", "say where each patch stands in a tree")
    add.tree(status)

    diff = add("diff", "print what apply would change, as a unified diff")
    add.tree(diff)
    diff.add_argument("--reverse", action="store_true", help="what revert would change")

    for name, text in (
        ("apply", "apply the series to a tree: every patch, or nothing"),
        ("revert", "take the series out of a tree again"),
    ):
        command = add(name, text)
        add.tree(command)
        command.add_argument(
            "--check", action="store_true", help="only say whether it would succeed"
        )
        command.add_argument(
            "--commit", action="store_true", help="make one git commit a patch"
        )
        command.add_argument(
            "--signoff", action="store_true", help="sign the commits off (DCO)"
        )

    export = add("export", "write the series as mail for 'git am'; the tree stays")
    add.tree(export)
    export.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    export.add_argument("--signoff", action="store_true", help="sign them off (DCO)")

    check = add("check", "look for mistakes in patch files", series=False)
    check.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="patch files or series"
    )

    recover = add("recover", "put originals back after a killed run", series=False)
    add.tree(recover)

    run = add("run", "start a command with the series grafted onto its imports")
    run.add_argument(
        "--without", action="append", metavar="NAME", help="take a series out instead"
    )
    run.add_argument("--cpu", action="store_true", help="Model Runner V2 without a GPU")
    run.add_argument("--tree", type=Path, metavar="TREE", help="import vLLM from there")
    run.add_argument("words", nargs="+", metavar="COMMAND", help="after --")

    fetch = add("fetch", "get a release as a git repository", series=False)
    fetch.add_argument("release", metavar="VERSION")
    fetch.add_argument("dest", nargs="?", type=Path, metavar="DEST")

    matrix = add("matrix", "say where each patch stands on every release")
    matrix.add_argument("releases", nargs="*", metavar="VERSION")
    matrix.add_argument("--html", type=Path, metavar="FILE", help="write a page, too")
    matrix.add_argument(
        "--refresh", action="store_true", help="ask the index again for its releases"
    )
    return parser


class _Adder:
    """Adds subcommands that share their common options."""

    def __init__(
        self, commands: argparse._SubParsersAction[argparse.ArgumentParser]
    ) -> None:
        self._commands = commands

    def __call__(
        self, name: str, text: str, *, series: bool = True
    ) -> argparse.ArgumentParser:
        command = self._commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}."
        )
        command.set_defaults(command=_lazy(name))
        command.add_argument(
            "--json", action="store_true", help="print JSON, with a stable schema"
        )
        if series:
            command.add_argument(
                "--series",
                action="append",
                metavar="NAME",
                help="a series by name, or its folder; may be repeated "
                "(default: all that come with the tool)",
            )
        return command

    @staticmethod
    def tree(command: argparse.ArgumentParser) -> None:
        command.add_argument("tree", nargs="?", type=Path, metavar="TREE", help=_TREE)


def _lazy(name: str) -> Callable[[argparse.Namespace], int]:
    """The command's function, imported when it runs."""

    def run(arguments: argparse.Namespace) -> int:
        from vllm_graft import commands  # noqa: PLC0415 - only what is needed

        command: Callable[[argparse.Namespace], int] = getattr(commands, name)
        return command(arguments)

    return run


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rare

        print(f"vllm-graft {version('vllm-graft')}")
        parser.exit()
