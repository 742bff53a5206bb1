"""A stand-in for the engine's Python: it answers as the proofs would, at once.

What it says of each workload is what the tree's ``Word().say()`` gives, imported as
the real one imports vLLM, through the graft. ``ENGINE_FAULT`` makes it misbehave.
"""

from __future__ import annotations

import sys
from pathlib import Path

from miniature import World, write_files
from vllm_graft.verify.sides import Engine

_PROGRAM = """\
#!{python}
import json, os, subprocess, sys, time

module, fault = sys.argv[2], os.environ.get("ENGINE_FAULT", "")
grafted = "VLLM_GRAFT_HOOK" in os.environ
output = sys.argv[sys.argv.index("--output") + 1] if "--output" in sys.argv else ""


def write(path, value):
    with open(path, "w") as stream:
        json.dump(value, stream)


def driver():
    if fault == "crash" and grafted:
        print("builtins.RuntimeError: no memory", file=sys.stderr)
        sys.exit(3)
    if fault == "leave":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
    from vllm.sub.word import Word
    word = Word().say() if fault == "differ" else "same"
    done = {{}}
    for config in json.load(open(sys.argv[3])):
        kind = "ModelRunnerOutput" if fault == "resolve" else "AsyncOutput"
        worker = dict(types={{"sample:" + kind: 2}}, resolved=2, resolved_late=2,
                      steps_late_at_most=3, in_order=fault != "disorder",
                      resolved_elsewhere=0, copies={{}}, runner="")
        size = 2 if config["asynchronous"] else 1
        engine = dict(scheduler="AsyncScheduler" if size == 2 else "Scheduler",
                      executor=config["executor"], batch_queue_size=size)
        evidence = dict(engine=engine, workloads={{}})
        record = dict(results={{}}, evidence=evidence, seconds=dict(start=1.5))
        for name in config["workloads"]:
            record["results"][name] = [dict(tokens=[1, word])]
            evidence["workloads"][name] = dict(workers=[worker], preemptions=0)
            record["seconds"][name] = 0.25
            line = config["name"] + ": " + name + " took 0.2 s"
            print(line, file=sys.stderr, flush=True)
        done[config["name"]] = record
    write(sys.argv[4], done)


def faults():
    worse = fault == "worse" and grafted
    record = dict(fault="call-raises", scheduling="sync", executor="mp", seconds=0.5,
                  caller="TimeoutError: late" if worse else "ValueError: call of 3",
                  goes_on=True, next_call="answered", left_processes=0,
                  left_segments=0, exit_processes=0, exit_segments=0)
    write(output, dict(tree={{}}, records=[record], seconds=1))


def stress():
    ok = "stray" not in fault
    run = dict(scheduling="sync", calls=9, right=9, by_kind={{}}, wrong=[], alive=True,
               strays=int(not ok), seconds=0.1, ok=ok)
    write(output, dict(tree={{}}, seed=1, runs=[run]))


def pytest():
    path = next(w for w in sys.argv if w.startswith("--junitxml=")).partition("=")[2]
    bad = "<failure/>" if "red" in fault else ""
    with open(path, "w") as stream:
        stream.write(f'<testsuites><testsuite><testcase name="test_word">{{bad}}'
                     "</testcase></testsuite></testsuites>")
    sys.exit(bool(bad))


globals()[module.rpartition(".")[2]]()
"""


def stand_in(world: World) -> Engine:
    """An engine with a compiled vLLM of its own, and none of the world's sources."""
    program = world.folder / "python"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    package = world.folder / "installed" / "vllm"
    write_files(package, {"__init__.py": b"", "_C.abi3.so": b"compiled"})
    return Engine(Path(program), package, "0.23.0+cpu", "cpu")
