"""The generic kinds of rules; none knows a name of any series.

Each module has a class that is made for one rule and gives the hits in a module.
"""

from __future__ import annotations

from typing import Final

from vllm_graft.audit.context import Context, Kind
from vllm_graft.audit.kinds.attribute_read import AttributeRead
from vllm_graft.audit.kinds.blocking_path import BlockingPath
from vllm_graft.audit.kinds.call_result import CallResult
from vllm_graft.audit.kinds.drifted_copy import DriftedCopy
from vllm_graft.audit.kinds.monkey_patch import MonkeyPatch
from vllm_graft.audit.kinds.needless_resolve import NeedlessResolve
from vllm_graft.audit.kinds.super_result import SuperResult
from vllm_graft.audit.rules import Rule

_KINDS: Final[dict[str, type[Kind]]] = {
    "attribute-read": AttributeRead,
    "super-result": SuperResult,
    "call-result": CallResult,
    "blocking-path": BlockingPath,
    "needless-resolve": NeedlessResolve,
    "drifted-copy": DriftedCopy,
    "monkey-patch": MonkeyPatch,
}


def make_kind(rule: Rule, context: Context) -> Kind:
    """What looks for the hits of a rule."""
    return _KINDS[rule.kind](rule, context)
