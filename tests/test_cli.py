from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vllm_graft
from miniature import World
from running import SCHEMA, Run, jsonschema
from vllm_graft import api, cli
from vllm_graft.errors import GraftError


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    return world


@pytest.fixture
def run(world: World, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the miniature tree with the miniature series."""

    def run(command: str, *options: object) -> Run:
        return Run(capsys, command, world.root, "--series", world.series, *options)

    return run


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


USAGE = {
    "no command": [],
    "unknown command": ["frob"],
    "unknown option": ["status", "--frob"],
    "abbreviated option": ["apply", "--comm"],
    "missing option": ["export"],
    "missing argument": ["status", "--series"],
    "too many trees": ["status", "a", "b"],
}


@pytest.mark.parametrize("args", USAGE.values(), ids=USAGE)
def test_bad_usage(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    done = Run(capsys, *args)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert "--help'" in done.err
    with_json = Run(capsys, *args, "--json")
    assert with_json.code == 2
    assert with_json.json("error")["error"]["hint"].startswith("see 'vllm-graft")


def test_errors_name_place_cause_and_next_step(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Run(capsys, "status", world.folder / "no")
    assert done.code == 2
    place, hint = done.err.splitlines()
    assert place == f"error: {world.folder}/no: no such folder"
    assert hint.startswith("  hint: ")
    record = Run(capsys, "status", world.folder / "no", "--json").json("error")
    assert record["error"]["where"] == f"{world.folder}/no"


def test_series_by_name_and_default(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    named = Run(capsys, "status", world.root, "--json", "--series", "mrv2-async-output")
    (series,) = named.json("status")["series"]
    assert series["verdict"] == "absent"
    assert named.code == 1
    default = Run(capsys, "status", world.root, "--json").json("status")["series"]
    assert [s["name"] for s in default] == vllm_graft.series_names()


def test_a_series_named_twice_counts_once(run: Any, world: World) -> None:
    done = run("status", "--json", "--series", world.series)
    assert len(done.json("status")["series"]) == 1


def test_an_unknown_series(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    done = Run(capsys, "status", world.root, "--series", "frob")
    assert done.code == 2
    assert "no series 'frob'" in done.err


def test_an_internal_error_is_no_verdict(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(api, "status", status)
    done = run("status", "--json")
    assert done.code == 2
    assert "Traceback" in done.err
    assert "ZeroDivisionError: oops" in done.json("error")["error"]["message"]


def test_an_interrupt(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def status(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "status", status)
    done = run("status")
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")


def test_the_schema_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--schema"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


@pytest.mark.parametrize("command", [[], *([name] for name in cli._COMMANDS)])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([*command, "--help"])
    assert caught.value.code == 0
    assert "Exit codes: 0" in capsys.readouterr().out


def test_text_that_the_terminal_cannot_show(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = world.root.rename(world.folder / "bäum")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cli.main(["status", str(root), "--series", str(world.series)]) == 0
    sys.stdout.flush()
    assert b"b\\xe4um" in raw.getvalue()


def test_a_reader_that_goes_away(world: World) -> None:
    command = [sys.executable, "-m", "vllm_graft", "status", str(world.root)]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*command, "--series", str(world.series)],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == b""


def test_errors_have_a_json_form() -> None:
    error = GraftError("wrong", where="a:1", hint="right it")
    assert error.to_json() == {"message": "wrong", "where": "a:1", "hint": "right it"}
