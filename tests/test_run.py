"""`vllm-graft run`: the command and its children import the grafted source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from miniature import AFTER, World
from running import Run
from vllm_graft import GraftError, run
from vllm_graft.hook import VARIABLE

SAY = """
from vllm.number import number
from vllm.sub.word import Word
one, two = 1, 2
import vllm.number
vllm.number.one, vllm.number.two = one, two
print(number(), Word().say())
"""
BASE, GRAFTED = "1 a\n", "2 b\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return World(tmp_path, monkeypatch)


def graft(
    world: World,
    *command: str | Path,
    options: tuple[str | Path, ...] = (),
    series: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs a command through `vllm-graft run` on the miniature tree."""
    words = [sys.executable, "-m", "vllm_graft", "run", "--tree", world.root, *options]
    words += ["--series", world.series] if series else []
    return subprocess.run(
        [*words, "--", *command], capture_output=True, text=True, check=False
    )


def python(
    world: World, code: str, *options: str | Path
) -> subprocess.CompletedProcess[str]:
    """Runs code in a grafted Python."""
    return graft(world, sys.executable, "-c", code, options=options)


def plain(world: World, code: str) -> str:
    """What code prints in a Python that is not grafted."""
    env = {**os.environ, "PYTHONPATH": str(world.root)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_command_imports_the_grafted_source_and_no_file_changes(world: World) -> None:
    before = world.snapshot()
    assert python(world, SAY).stdout == GRAFTED
    assert world.snapshot() == before
    assert plain(world, SAY) == BASE


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', {say!r}])",
        "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', {say!r}])",
        "from multiprocessing import *\n{spawn}.apply(exec, [{say!r}, {{}}])",
        "from multiprocessing import *\n{fork}.apply(exec, [{say!r}, {{}}])",
    ],
    ids=["subprocess", "exec", "spawn", "fork"],
)
def test_children_are_grafted(code: str, world: World) -> None:
    say = SAY + "import sys; sys.stdout.flush()"
    pools = {kind: f"get_context({kind!r}).Pool(1)" for kind in ("spawn", "fork")}
    done = python(world, code.format(say=say, **pools))
    assert done.stdout == GRAFTED, done.stderr


def test_the_command_keeps_its_exit_code(world: World) -> None:
    assert python(world, "raise SystemExit(7)").returncode == 7


def test_an_applied_tree_runs_as_it_is(world: World) -> None:
    world.write(AFTER)
    assert python(world, SAY).stdout == GRAFTED


def test_without_takes_a_series_out(world: World) -> None:
    world.write(AFTER)
    done = graft(
        world,
        *(sys.executable, "-c", SAY),
        options=("--without", world.series),
        series=False,
    )
    assert done.stdout == BASE
    assert plain(world, SAY) == GRAFTED


def test_a_series_that_does_not_apply_starts_nothing(world: World) -> None:
    world.write(
        {"vllm/sub/word.py": b"class Word:\n    def say(self):\n        pass\n"}
    )
    done = python(world, "print('started')")
    assert (done.returncode, done.stdout) == (1, "")
    assert "conflict" in done.stderr
    assert "0002-word.spatch" in done.stderr


def test_a_refusal_can_be_read_by_programs(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write(
        {"vllm/sub/word.py": b"class Word:\n    def say(self):\n        pass\n"}
    )
    words = ("run", "--json", "--tree", world.root, "--series", world.series)
    done = Run(capsys, *words, "--", "true")
    assert done.code == 1
    (series,) = done.json("status")["series"]
    assert series["verdict"] == "conflict"


def test_without_refuses_what_cannot_be_taken_out(world: World) -> None:
    world.write({"vllm/number.py": AFTER["vllm/number.py"]})
    world.write({"vllm/sub/word.py": b"class Word:\n    pass\n"})
    done = graft(
        world,
        *(sys.executable, "-c", "print('started')"),
        options=("--without", world.series),
        series=False,
    )
    assert (done.returncode, done.stdout) == (1, "")


def test_without_leaves_a_tree_that_has_nothing_of_it(world: World) -> None:
    done = graft(
        world,
        *(sys.executable, "-c", SAY),
        options=("--without", world.series),
        series=False,
    )
    assert done.stdout == BASE


def test_an_edited_tree_is_planned_anew(world: World) -> None:
    assert python(world, SAY).stdout == GRAFTED
    text = AFTER["vllm/sub/word.py"].replace(b'"b"', b'"a"')
    world.write({"vllm/sub/word.py": text.replace(b"say(self)", b"say(self, x=1)")})
    code = (
        "import inspect; from vllm.sub.word import Word; print(inspect.getsource(Word))"
    )
    shown = python(world, code).stdout
    assert "x=1" in shown
    assert '"b"' in shown


def test_an_edited_patch_is_planned_anew(world: World) -> None:
    assert python(world, SAY).stdout == GRAFTED
    world.patch("0002-word.spatch", '"b"', '"c"')
    assert python(world, SAY).stdout == "2 c\n"


def test_another_tool_plans_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    series = [str(world.series)]
    folder = run.bundle(world.tree, series, [])
    assert folder is not None
    (folder / "mark").touch()
    assert run.bundle(world.tree, series, []) == folder
    monkeypatch.setattr(run, "code_digest", lambda _: "another")
    other = run.bundle(world.tree, series, [])
    assert other is not None
    assert not (other / "mark").exists()


def test_a_bundle_that_lost_its_manifest_is_made_again(world: World) -> None:
    series = [str(world.series)]
    folder = run.bundle(world.tree, series, [])
    assert folder is not None
    (folder / "manifest.json").unlink()
    assert run.bundle(world.tree, series, []) == folder
    assert python(world, SAY).stdout == GRAFTED


def test_a_cache_that_cannot_be_written_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.folder / "file"
    file.touch()
    monkeypatch.setenv("VLLM_GRAFT_CACHE", str(file / "cache"))
    with pytest.raises(GraftError, match="the cache cannot be written"):
        run.bundle(world.tree, [str(world.series)], [])


def test_a_second_start_does_not_load_the_engine(world: World) -> None:
    code = "import sys, os\nfrom vllm_graft.cli import main\n"
    code += "os.execvpe = lambda *_: print(*sys.modules)\nmain(sys.argv[1:])"
    words = ["run", "--tree", str(world.root), "--series", str(world.series)]
    command = [sys.executable, "-c", code, *words, "--", "true"]
    first, second = (
        set(
            subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.split()
        )
        for _ in range(2)
    )
    assert {"vllm_graft.planner", "vllm_graft.engine.match"} <= first
    slow = {"shutil", "subprocess", "tempfile", "importlib.metadata"}
    assert not second & ({"vllm_graft.planner", "vllm_graft.engine.match"} | slow)


def test_bytecode_of_changed_source_is_neither_written_nor_read(world: World) -> None:
    code = SAY + "import vllm.sub"
    world.write({"vllm/sub/__init__.py": b""})

    def kept(module: str) -> list[Path]:
        path = world.root / f"{module}.py"
        return list((path.parent / "__pycache__").glob(f"{path.stem}.*"))

    assert python(world, code).stdout == GRAFTED
    assert (kept("vllm/number"), len(kept("vllm/sub/__init__"))) == ([], 1)
    # What a plain run leaves is not taken for the grafted one, nor spoilt by it.
    assert plain(world, code) == BASE
    (file,) = kept("vllm/number")
    content = file.read_bytes()
    assert python(world, code).stdout == GRAFTED
    assert file.read_bytes() == content
    assert plain(world, code) == BASE


def test_tracebacks_and_inspect_show_the_changed_source(world: World) -> None:
    code = "import vllm.number as n, inspect, linecache\nprint(inspect.getsource(n))\n"
    code += "linecache.checkcache()\nn.number()"
    done = python(world, code)
    assert done.stdout.rstrip().encode() == AFTER["vllm/number.py"].rstrip()
    assert "NameError" in done.stderr
    assert f'{world.root / "vllm/number.py"}", line 2, in number' in done.stderr
    assert "return two" in done.stderr


def test_a_module_run_as_a_program_shows_the_changed_source(world: World) -> None:
    main = "\nif __name__ == '__main__':\n    import inspect\n"
    main += "    print(inspect.getsource(number))\n    number()\n"
    with (world.root / "vllm/number.py").open("a") as stream:
        stream.write(main)
    done = graft(world, sys.executable, "-m", "vllm.number")
    assert "return two" in done.stdout
    assert "return two" in done.stderr


@pytest.mark.parametrize("end", ["\x0c", "\x1c", "\u2028"])
def test_lines_end_where_python_ends_them(end: str, world: World) -> None:
    path = world.root / "vllm/number.py"
    first = f"# a{end}b{end}c\n".encode()
    path.write_bytes(first + path.read_bytes())
    code = "import vllm.number as n, inspect; print(inspect.getsource(n.number))"
    assert python(world, code).stdout.endswith("    return two\n\n")


@pytest.mark.parametrize("own", [True, False])
def test_a_thread_shows_the_changed_source_too(own: bool, world: World) -> None:
    code = "import threading, vllm.number as n\n"
    if own:
        code += "threading.excepthook = lambda args: print('own hook')\n"
    code += "t = threading.Thread(target=n.number, name='worker')\nt.start(); t.join()"
    done = python(world, code)
    assert ("own hook" in done.stdout) is own
    assert ("return two" in done.stderr and "thread worker" in done.stderr) is not own


def test_cpu_and_graft_go_together(world: World) -> None:
    code = SAY + "import os; print(os.environ['VLLM_USE_V2_MODEL_RUNNER'])"
    assert python(world, code, "--cpu").stdout == GRAFTED + "1\n"


@pytest.mark.parametrize("name", ["no-such-command-here", ""])
def test_an_unknown_command_is_an_error(name: str, world: World) -> None:
    done = graft(world, name)
    assert done.returncode == 2
    assert f"error: {name}: cannot start it".replace(" :", "") in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [["-I"], ["-uE"], ["-X", "dev", "-S"]])
@pytest.mark.parametrize("script", [True, False])
def test_a_python_that_heeds_no_environment_is_refused(
    options: list[str], script: bool, world: World
) -> None:
    words: list[str | Path] = [sys.executable, *options, "-c", "print('ran')"]
    if script:
        path = world.folder / "script"
        path.write_text(f"#!{sys.executable} {' '.join(options)}\nprint('ran')\n")
        path.chmod(0o755)
        words = [path]
    done = graft(world, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"would not be grafted with -{options[-1][-1]}" in done.stderr


def test_no_command_is_bad_usage(world: World) -> None:
    done = graft(world)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_unknown_series_is_an_error(world: World) -> None:
    done = graft(world, "true", options=("--series", "no-such-series"), series=False)
    assert done.returncode == 2
    assert "no series 'no-such-series'" in done.stderr


def test_a_relative_cache_serves_a_command_that_changes_its_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("VLLM_GRAFT_CACHE", "relative")
    code = f"cd / && '{sys.executable}' -c '{SAY}'"
    assert graft(world, "sh", "-c", code).stdout == GRAFTED


def test_a_tree_that_the_search_path_cannot_hold_is_refused(world: World) -> None:
    root = world.root.rename(world.folder / f"a{os.pathsep}b")
    done = graft(world, "true", options=("--tree", root))
    assert done.returncode == 2
    assert f"{root}: its path holds" in done.stderr


def test_the_environment_keeps_what_was_there(world: World) -> None:
    old = {"PYTHONPATH": f"/first{os.pathsep}/second", VARIABLE: "stale", "KEPT": "1"}
    env = run.environment(old, None, world.root)
    expected = [str(run.SITE), str(world.root), "/first", "/second"]
    assert env["PYTHONPATH"].split(os.pathsep) == expected
    assert (env["KEPT"], VARIABLE in env) == ("1", False)
    # An empty entry stands for the current folder.
    some = run.environment({"PYTHONPATH": os.pathsep}, None, None)["PYTHONPATH"]
    assert some.split(os.pathsep) == [str(run.SITE), "", ""]
    none = run.environment({"PYTHONPATH": ""}, None, None)["PYTHONPATH"]
    assert none == str(run.SITE)
    # A run inside a run adds nothing twice.
    assert run.environment(env, None, world.root) == env
