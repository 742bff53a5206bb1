"""``python -m vllm_graft`` and the console script."""

import gc
import sys


def main() -> int:
    """Runs the command line and returns its exit code."""
    # Syntax trees are many objects and no cycles; looking for cycles among them
    # as often as by default costs a sixth of a command's time.
    gc.set_threshold(100_000)
    from vllm_graft.cli import main as run  # noqa: PLC0415 - `python -m` stays lean

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
