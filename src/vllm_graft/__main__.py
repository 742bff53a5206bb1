"""``python -m vllm_graft`` and the console script."""

import sys


def main() -> int:
    """Runs the command line and returns its exit code."""
    from vllm_graft.cli import main as run  # noqa: PLC0415 - `python -m` stays lean

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
