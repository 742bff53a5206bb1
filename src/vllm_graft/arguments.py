"""The arguments of each command."""

from __future__ import annotations

import argparse
from pathlib import Path

_TREE = (
    "a vLLM checkout, or a folder that holds the package vllm (site-packages); "
    "default: the current folder, else the installed vLLM"
)


def tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", nargs="?", type=Path, metavar="TREE", help=_TREE)


def diff(parser: argparse.ArgumentParser) -> None:
    tree(parser)
    parser.add_argument(
        "--reverse", action="store_true", help="what revert would change"
    )


def write(parser: argparse.ArgumentParser) -> None:
    tree(parser)
    parser.add_argument(
        "--check", action="store_true", help="only say whether it would succeed"
    )
    parser.add_argument(
        "--commit", action="store_true", help="make one git commit a patch"
    )
    parser.add_argument(
        "--signoff", action="store_true", help="sign the commits off (DCO)"
    )


def export(parser: argparse.ArgumentParser) -> None:
    tree(parser)
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        required=True,
        metavar="DIR",
        help="the folder for the mail, made if need be",
    )
    parser.add_argument("--signoff", action="store_true", help="sign it off (DCO)")


def check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="patch files, or series by name or folder "
        "(default: all series that come with the tool)",
    )


def run_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--without", action="append", metavar="NAME", help="take a series out instead"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="Model Runner V2 without a GPU"
    )
    parser.add_argument(
        "--tree", type=Path, metavar="TREE", help="import vLLM from there"
    )
    parser.add_argument("words", nargs="+", metavar="COMMAND", help="after --")


def fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="VERSION")
    parser.add_argument("dest", nargs="?", type=Path, metavar="DEST")


def matrix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("releases", nargs="*", metavar="VERSION")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page, too")
    parser.add_argument(
        "--refresh", action="store_true", help="ask the index again for its releases"
    )


def verify(parser: argparse.ArgumentParser) -> None:
    from vllm_graft.verify.arguments import add  # noqa: PLC0415 - for one command

    add(parser, _TREE)


def audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a fork, the folder of an installed package, site-packages, a folder or a "
        "file of your own",
    )
    parser.add_argument(
        "--vllm",
        type=Path,
        metavar="TREE",
        help="the vLLM that the code builds on (default: a PATH that holds it, else "
        "the installed vLLM)",
    )
    parser.add_argument(
        "--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0, too"
    )
    parser.add_argument(
        "--github", action="store_true", help="print annotations for GitHub Actions"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="leave out the findings that this file lists",
    )
    parser.add_argument(
        "--write-baseline",
        type=Path,
        metavar="FILE",
        help="list all findings in a file, and exit with 0",
    )
