"""The arguments of ``vllm-graft verify``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser, tree: str) -> None:
    """Adds them to the command's parser.

    Args:
        parser: The parser.
        tree: What to say of TREE.
    """
    parser.add_argument("tree", nargs="?", type=Path, metavar="TREE", help=tree)
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="what to run on (default: auto, CUDA where there is a GPU)",
    )
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        help="the Python that has vLLM, and pytest (default: this one, the first on "
        "the PATH, or, without a GPU, one that is installed into the cache)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="only the most telling part, in 2 minutes"
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write JUnit XML, too"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page, too")
