"""Run configurations of ``driver`` on Ray's executors, on a cluster made for them.

    python -m vllm_graft.proof.ray_engine FOLDER CONFIG.json RESULT.json

FOLDER is for the cluster's files, its path short. CONFIG is a list as for ``driver``;
its ``executor`` is ``ray`` (`RayExecutorV2`) or ``ray-graph``
(`RayDistributedExecutor`), or another of the driver's.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from vllm_graft.proof.ray_cluster import cluster


def run(configs: list[dict[str, Any]], result: Path) -> None:
    """Run them in turn; the result is written after each.

    Args:
        configs: See above.
        result: The file; it has the form of the driver's.
    """
    from vllm_graft.proof.driver import run_one  # noqa: PLC0415

    done: dict[str, Any] = {}
    for config in configs:
        # What the CPU platform put there for one engine's workers ends another's.
        os.environ.pop("LD_PRELOAD", None)
        graph = config["executor"] == "ray-graph"
        os.environ["VLLM_USE_RAY_V2_EXECUTOR_BACKEND"] = "0" if graph else "1"
        record = done[config["name"]] = {"results": {}, "evidence": {}, "seconds": {}}
        run_one({**config, "executor": "ray"} if graph else config, record)
        result.write_text(json.dumps(done, indent=1, sort_keys=True))


def main() -> None:
    """Start a cluster, run, and end without destructors, as the driver does."""
    folder, configs, result = map(Path, sys.argv[1:])
    with cluster(folder, devices=4):
        run(json.loads(configs.read_text()), result)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
