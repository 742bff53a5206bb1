"""What the tests of commits share."""

from __future__ import annotations

from miniature import World
from vllm_graft import apply

SUBJECTS = ["[Core] Say two", "[Core] Say b", "[Test] Expect b"]


def commit(world: World, **options: bool) -> tuple[str, ...]:
    """Applies the series as commits."""
    return apply(world.tree, world.loaded, commit=True, **options).commits


def log(world: World, form: str, *, new: int = 3) -> list[str]:
    """The newest commits, oldest first."""
    return world.git("log", "--reverse", f"-{new}", f"--format={form}").split("\n")


def sign(world: World, script: str) -> None:
    """Makes a script the signing program."""
    program = world.folder / "gpg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    world.git("config", "gpg.program", str(program))
    world.git("config", "commit.gpgSign", "true")
    world.git("config", "user.signingKey", "me")
