"""Runs commands in this process, and checks their JSON."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from vllm_graft import cli

SCHEMA = json.loads(cli.SCHEMA.read_text(encoding="utf-8"))
jsonschema: Any = import_module("jsonschema")  # it has no type information


class Run:
    """A command's exit code and output."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *args: object) -> None:
        self.code = cli.main([str(arg) for arg in args])
        self.out, self.err = capsys.readouterr()

    def json(self, name: str) -> Any:
        """What it printed, checked against a definition of the schema."""
        record = json.loads(self.out)
        jsonschema.validate(record, {**strict(SCHEMA), "$ref": f"#/$defs/{name}"})
        return record


def strict(schema: Any) -> Any:
    """The schema without room for fields that it does not name."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items() if key != "anyOf"}
    if "properties" in schema and isinstance(schema["properties"], dict):
        closed["additionalProperties"] = False
    if "anyOf" in schema and "$defs" not in schema:
        closed["anyOf"] = strict(schema["anyOf"])
    return closed
