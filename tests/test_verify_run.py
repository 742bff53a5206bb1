"""Tests of verify/run.py: processes end, whatever they do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vllm_graft.errors import GraftError
from vllm_graft.verify import run as verify_run
from vllm_graft.verify.run import Done, Job, run_jobs

SLEEP = "import time; time.sleep(600)"
# A child in a session of its own, which a signal to the process group would miss.
SPAWN = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True)
print(child.pid, flush=True)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_run, "_GRACE", 1.0)
    monkeypatch.setattr(verify_run, "_SETTLE", 0.5)


def job(name: str, code: str, folder: Path, limit: float = 60) -> Job:
    command = [sys.executable, "-c", code]
    return Job(name, "base", command, dict(os.environ), folder / f"{name}.json", limit)


def run(*jobs: Job, folder: Path, slots: int = 2) -> list[Done]:
    return run_jobs(jobs, slots, folder, lambda _: None)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_result_is_read(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    code = f"import json; json.dump([1], open({str(path)!r}, 'w'))"
    (done,) = run(job("one", code, tmp_path), folder=tmp_path)
    assert (done.code, done.result, done.error, done.left) == (0, [1], None, [])


def test_the_reason_of_a_failure_is_found_in_its_log(tmp_path: Path) -> None:
    code = "print('noise'); import nowhere"
    (done,) = run(job("one", code, tmp_path), folder=tmp_path)
    wanted = "ended with 1: ModuleNotFoundError: No module named 'nowhere'"
    assert (done.result, done.error) == (None, wanted)


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    late = job("late", SPAWN + "time.sleep(600)", tmp_path, limit=2)
    (done,) = run(late, folder=tmp_path)
    assert done.error == "not done after 2 s"
    assert not alive(int(done.log.read_text().split()[0]))


def test_what_ignores_an_interrupt_is_killed(tmp_path: Path) -> None:
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {SLEEP}"
    (done,) = run(job("stubborn", code, tmp_path, limit=1), folder=tmp_path)
    assert done.code is None


def test_what_is_left_running_is_named_and_ended(tmp_path: Path) -> None:
    (done,) = run(job("one", SPAWN, tmp_path), folder=tmp_path)
    assert done.code == 0
    assert ["time.sleep(600)" in command for command in done.left] == [True]
    assert not alive(int(done.log.read_text()))


def test_steps_are_told_as_they_happen(tmp_path: Path) -> None:
    code = "print('a: greedy took 1.5 s'); print('noise'); print('a: stop took 2.0 s')"
    told: list[str] = []
    counted = job("one", code, tmp_path)._replace(steps=2)
    run_jobs([counted, job("two", "", tmp_path)], 1, tmp_path, told.append)
    assert told[:2] == ["base a: greedy took 1.5 s", "base a: stop took 2.0 s"]
    assert told[2].startswith("base two took ")
    assert len(told) == verify_run.steps_of([counted, job("two", "", tmp_path)]) == 3


@pytest.mark.parametrize(("each", "slots"), [(1, 1), (2, 2), (3, 2)])
def test_no_more_than_the_slots_run_at_once(
    tmp_path: Path, each: int, slots: int
) -> None:
    code = (
        "import time; print(time.monotonic()); time.sleep(.3); print(time.monotonic())"
    )
    jobs = [job(str(n), code, tmp_path)._replace(slots=each) for n in range(3)]
    done = run(*jobs, folder=tmp_path, slots=slots)
    spans = sorted([float(t) for t in one.log.read_text().split()] for one in done)
    assert all(spans[n][1] <= spans[n + 1][0] for n in range(2))


def test_a_program_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    missing = job("one", "", tmp_path)._replace(command=[str(tmp_path / "none")])
    with pytest.raises(GraftError, match="No such file"):
        run(missing, folder=tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_running(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = f"""
import os, sys
from pathlib import Path
from vllm_graft.verify.command import terminable
from vllm_graft.verify.run import Job, run_jobs
job = Job("one", "base", [sys.executable, "-c", {SPAWN + "time.sleep(600)"!r}],
          dict(os.environ), None, 600)
with terminable():
    run_jobs([job], 1, Path({str(tmp_path)!r}), print)
"""
    log = tmp_path / "one.base.log"
    with subprocess.Popen(
        [sys.executable, "-c", program], stderr=subprocess.PIPE
    ) as process:
        while not (log.exists() and log.read_text().endswith("\n")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate()
    assert b"KeyboardInterrupt" in errors
    assert not alive(int(log.read_text().split()[0]))


def test_a_broken_result_is_none(tmp_path: Path) -> None:
    one = job("one", "", tmp_path)
    assert one.output is not None
    one.output.write_text(json.dumps({"a": 1})[:-1])
    (done,) = run(one, folder=tmp_path)
    assert done.result is None
