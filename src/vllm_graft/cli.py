"""The command line: arguments, errors and exit codes.

Exit codes: 0 done or nothing to do, 1 some patch does not apply or an audit found
something, 2 bad usage or bad input, 130 interrupted. Everything a command prints goes
through :mod:`vllm_graft.report`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from vllm_graft import arguments as takes
from vllm_graft.errors import GraftError

EXIT_OK: Final = 0
EXIT_NOT_APPLICABLE: Final = 1
EXIT_BAD: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

#: The JSON Schema of what the commands print with ``--json``.
SCHEMA: Final = Path(__file__).parent / "schemas" / "output.schema.json"

_EXIT_CODES = (
    "Exit codes: 0 done or nothing to do, 1 some patch does not apply or an audit "
    "found something, 2 bad usage or bad input."
)


class UsageError(GraftError):
    """The arguments make no sense."""


def main(argv: Sequence[str]) -> int:
    """Runs one command.

    Args:
        argv: The arguments, without the program's name.

    Returns:
        The exit code.
    """
    # A path or a piece of source may hold what the terminal cannot show.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    as_json = "--json" in argv[: argv.index("--") if "--" in argv else None]
    code = EXIT_BROKEN_PIPE
    try:
        code = _run(argv, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone; Python must not try to flush once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(argv: Sequence[str], as_json: bool) -> int:
    try:
        arguments = parse(argv)
        command: Callable[[argparse.Namespace], int] = arguments.command
        return command(arguments)
    except GraftError as error:
        _print_error(error, as_json=as_json)
        return EXIT_BAD
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - a traceback's exit code would be 1
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        _print_error(
            GraftError(
                f"internal error: {type(error).__name__}: {error}",
                hint="please report it, with the traceback",
            ),
            as_json=as_json,
        )
        return EXIT_BAD


def _print_error(error: GraftError, *, as_json: bool) -> None:
    place = f"{error.where}: " if error.where else ""
    print(f"error: {place}{error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)
    if as_json:
        from vllm_graft.report import show_json  # noqa: PLC0415

        show_json({"error": error.to_json()})


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the arguments.

    Only the parser of the command at hand is built; it takes milliseconds each.

    Raises:
        UsageError: They make no sense.
    """
    name = argv[0] if argv else ""
    if name in _COMMANDS:
        return _parser(name).parse_args(argv[1:])
    parser = _Parser(
        prog="vllm-graft",
        description="Carry semantic patch series onto any vLLM tree.",
        epilog=_EXIT_CODES,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    parser.add_argument(
        "--schema", action=_Schema, nargs=0, help="print the JSON Schema of all output"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for known, command in _COMMANDS.items():
        commands.add_parser(known, help=command.help)
    return parser.parse_args(argv)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see '{self.prog} --help'")


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Left to itself it would import shutil for this, also where no help is asked for.
    wanted = os.environ.get("COLUMNS", "")
    try:
        columns = int(wanted) if wanted.isdigit() else os.get_terminal_size().columns
    except OSError:  # no terminal
        columns = 80
    return argparse.HelpFormatter(prog, width=max(columns, 40) - 2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rare

        print(f"vllm-graft {version('vllm-graft')}")
        parser.exit()


class _Schema(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(SCHEMA.read_text(encoding="utf-8"), end="")
        parser.exit()


def _parser(name: str) -> argparse.ArgumentParser:
    command = _COMMANDS[name]
    parser = _Parser(
        prog=f"vllm-graft {name}",
        description=f"{command.help[0].upper()}{command.help[1:]}.",
        epilog=_EXIT_CODES,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=_lazy(name))
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with a stable schema"
    )
    if command.series:
        parser.add_argument(
            "--series",
            action="append",
            metavar="NAME",
            help="a series by name, or its folder; may be repeated "
            "(default: all that come with the tool)",
        )
    command.add(parser)
    return parser


def _lazy(name: str) -> Callable[[argparse.Namespace], int]:
    """The command's function, imported when it runs."""

    def run(arguments: argparse.Namespace) -> int:
        from vllm_graft import commands  # noqa: PLC0415 - only what is needed

        command: Callable[[argparse.Namespace], int] = getattr(commands, name)
        return command(arguments)

    return run


class _Command(NamedTuple):
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    series: bool = True


_COMMANDS: Final = {
    "status": _Command("say where each patch stands in a tree", takes.tree),
    "diff": _Command("print what apply would change, as a unified diff", takes.diff),
    "apply": _Command(
        "apply the series to a tree: every patch, or nothing", takes.write
    ),
    "revert": _Command("take the series out of a tree again", takes.write),
    "export": _Command(
        "write the series as mail for 'git am'; the tree stays as it is", takes.export
    ),
    "check": _Command("look for mistakes in patch files", takes.check, series=False),
    "recover": _Command(
        "put originals back after a killed run", takes.tree, series=False
    ),
    "run": _Command(
        "start a command with the series grafted onto its imports", takes.run_command
    ),
    "verify": _Command("run base against grafted on the real engine", takes.verify),
    "audit": _Command("look for code that the series break", takes.audit),
    "fetch": _Command("get a release as a git repository", takes.fetch, series=False),
    "matrix": _Command("say where each patch stands on every release", takes.matrix),
}
