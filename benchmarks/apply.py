"""The series from the command line, against git and patch, on the whole release.

Every contestant is a fresh process on one clone of the release, which is put back
in between, and every result is compared with the others', byte for byte. The mail
and the diff that git and patch get are those that vllm-graft makes for this tree.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import inputs
from benchmarks.table import Table, goal
from benchmarks.timing import Sample, interleave, process
from vllm_graft import git
from vllm_graft.series import load_series

ROUNDS = 15
_BASE, _OURS = "git am", "vllm-graft apply"
_GRAFT = (sys.executable, "-m", "vllm_graft")
_SERIES = ("--series", inputs.SERIES)


def measure(rounds: int) -> Table:
    """Runs the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder))
        contestants: dict[str, Callable[[], Sample]] = {
            name: bench.contestant(command) for name, command in bench.commands.items()
        }
        samples = interleave(contestants, rounds, base=_BASE)
    ratio = samples.ratio(_OURS, "cpu"), samples.ratio(_OURS, "wall")
    return Table(
        f"Apply the series to vLLM {inputs.VERSION} ({bench.size:,} files), end to "
        f"end, {rounds} rounds",
        ("a process", "wall ms", "CPU ms", "wall ratio", "CPU ratio"),
        [[name, *samples.cells(name)] for name in contestants],
        [
            goal("vllm-graft apply over git am, CPU", ratio[0], 2.5),
            goal("vllm-graft apply over git am, wall", ratio[1], 2.5),
            f"{len(bench.mail)} mails; only git am and apply --commit make commits.",
        ],
        samples.raw(),
    )


class _Bench:
    """A clone of the release, with the mail and the diff."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "vllm"
        self._env = {**inputs.GIT_ENV, "VLLM_GRAFT_CACHE": str(folder / "cache")}
        git.run("clone", "-q", str(inputs.checkout()), str(self.tree), cwd=folder)
        self._start = git.run("rev-parse", "HEAD", cwd=self.tree)
        self.size = len(git.run("ls-files", cwd=self.tree).splitlines())
        self._paths = load_series(inputs.SERIES).paths()
        mail = folder / "mail"
        process([*_GRAFT, "export", *_SERIES, "-o", mail, self.tree], env=self._env)
        self.mail = sorted(mail.iterdir())
        diff = [*_GRAFT, "diff", *_SERIES, str(self.tree)]
        patch = folder / "series.diff"
        patch.write_bytes(subprocess.run(diff, check=True, capture_output=True).stdout)
        self.commands: dict[str, Sequence[str | Path]] = {
            _BASE: ("git", "am", "-q", *self.mail),
            _OURS: (*_GRAFT, "apply", *_SERIES, self.tree),
            f"{_OURS} --commit": (*_GRAFT, "apply", "--commit", *_SERIES, self.tree),
            "git apply": ("git", "apply", patch),
            "patch -p1": ("patch", "-s", "-p1", "-i", patch),
        }
        self._result: dict[str, bytes] = {}

    def contestant(self, command: Sequence[str | Path]) -> Callable[[], Sample]:
        """What puts the tree back, runs the command, and looks at the result."""

        def take() -> Sample:
            git.run("reset", "-q", "--hard", self._start, cwd=self.tree)
            git.run("clean", "-fdqx", cwd=self.tree)
            sample = process(command, cwd=self.tree, env=self._env)
            result = {path: (self.tree / path).read_bytes() for path in self._paths}
            if not self._result:
                inputs.check_digests(result)
                self._result = result
            if result != self._result:
                raise ValueError(f"{command[:3]} gives another result")
            return sample

        return take
