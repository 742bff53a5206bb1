"""The refactor as a LibCST codemod: what one writes without semantic patches.

It knows what the series knows about the releases of vLLM, and is written to be
quick: it looks only into the functions that matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import libcst as cst
import libcst.matchers as m

from benchmarks.inputs import PATHS, Files

_NOT_NON_BLOCK: Final = m.UnaryOperation(m.Not(), m.Name("non_block"))
_RUN: Final = m.SimpleStatementLine(
    [m.Assign([m.AssignTarget(m.Name())], m.Call(m.Name("run_method")))]
)
_RESOLVE: Final = """\
if isinstance({0}, AsyncModelRunnerOutput):
    {0} = {0}.get_output()
"""
_HANDLE: Final = m.If(
    test=m.BooleanOperation(m.Comparison(m.Name("output_rank")), m.Or()),
    body=m.IndentedBlock(
        [
            m.SimpleStatementLine(
                [m.Expr(m.Call(m.Attribute(m.Name("self"), m.Name("handle_output"))))]
            )
        ]
    ),
    orelse=None,
)
_CONTINUE: Final = m.SimpleStatementLine([m.Continue()])
_FUTURE_CALL: Final = m.Call(
    m.Name("FutureWrapper"),
    [
        m.Arg(m.Attribute(m.Name("self"), m.Name("futures_queue")), keyword=None),
        m.Arg(m.Name("get_response"), keyword=m.Name("get_response")),
        m.Arg(m.Name("aggregate"), keyword=m.Name("aggregate")),
    ],
)
_FUTURE: Final = """\
FutureWrapper(
    self.futures_queue, get_response=get_response, aggregate=aggregate
)"""
_FLAG: Final = m.Attribute(m.Name("self"), m.Name("use_async_scheduling"))
_SET_FLAG: Final = m.SimpleStatementLine([m.Assign([m.AssignTarget(_FLAG)])])
_RETURN: Final = m.SimpleStatementLine([m.Return(m.Name())])
_IF_FLAG: Final = m.If(_FLAG, body=m.IndentedBlock([_RETURN]), orelse=None)
_RETURN_RESOLVED: Final = m.SimpleStatementLine(
    [m.Return(m.Call(m.Attribute(m.Name(), m.Name("get_output")), []))]
)

_Node = TypeVar("_Node", cst.If, cst.While, cst.Try, cst.ExceptHandler, cst.FunctionDef)


class _Selective(cst.CSTTransformer):
    """Looks into some functions only."""

    functions: frozenset[str] = frozenset()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802
        return node.name.value in self.functions


class UniProc(_Selective):
    """Resolves the output on the blocking path."""

    functions = frozenset({"collective_rpc"})

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:  # noqa: ARG002, N802
        if not m.matches(updated_node.test, _NOT_NON_BLOCK):
            return updated_node
        body: list[cst.BaseStatement] = []
        for statement in _statements(updated_node.body):
            body.append(statement)
            if m.matches(statement, _RUN):
                name = cst.ensure_type(statement, cst.SimpleStatementLine).body[0]
                target = cst.ensure_type(name, cst.Assign).targets[0].target
                text = _RESOLVE.format(cst.ensure_type(target, cst.Name).value)
                body.append(cst.ensure_type(cst.parse_statement(text), cst.If))
        return _with_body(updated_node, body)


class MultiProc(_Selective):
    """Handles a worker's output inside the try; one future is laid out anew."""

    functions = frozenset({"collective_rpc", "worker_busy_loop"})

    def leave_While(  # noqa: N802
        self,
        original_node: cst.While,  # noqa: ARG002
        updated_node: cst.While,
    ) -> cst.While:
        body = list(_statements(updated_node.body))
        for index, (first, second) in enumerate(pairwise(body)):
            if not (isinstance(first, cst.Try) and m.matches(second, _HANDLE)):
                continue
            handler = first.handlers[0]
            caught = _statements(handler.body)
            if m.matches(caught[-1], _CONTINUE):
                inside = _with_body(first, [*_statements(first.body), second])
                quiet = _with_body(handler, caught[:-1])
                body[index : index + 2] = [inside.with_changes(handlers=[quiet])]
                break
        return _with_body(updated_node, body)

    def leave_Call(  # noqa: N802
        self,
        original_node: cst.Call,  # noqa: ARG002
        updated_node: cst.Call,
    ) -> cst.BaseExpression:
        found = m.matches(updated_node, _FUTURE_CALL)
        return cst.parse_expression(_FUTURE) if found else updated_node


class Runner(_Selective):
    """Returns the async output always; the flag goes where all its readers go."""

    functions = frozenset({"sample_tokens", "postprocess", "pool"})

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        if original_node.name.value not in self.functions:
            return updated_node
        body = list(_statements(updated_node.body))
        if m.matches(body[-1], _RETURN_RESOLVED) and m.matches(body[-2], _IF_FLAG):
            test = cst.ensure_type(body[-2], cst.If)
            result = cst.ensure_type(_statements(test.body)[0], cst.SimpleStatementLine)
            body[-2:] = [result.with_changes(leading_lines=test.leading_lines)]
        return _with_body(updated_node, body)

    def leave_ClassDef(  # noqa: N802
        self,
        original_node: cst.ClassDef,  # noqa: ARG002
        updated_node: cst.ClassDef,
    ) -> cst.ClassDef:
        if len(m.findall(updated_node, _FLAG)) != 1:
            return updated_node
        changed = updated_node.visit(_ForgetFlag())
        return cst.ensure_type(changed, cst.ClassDef)


class _ForgetFlag(_Selective):
    functions = frozenset({"__init__"})

    def leave_IndentedBlock(  # noqa: N802
        self,
        original_node: cst.IndentedBlock,  # noqa: ARG002
        updated_node: cst.IndentedBlock,
    ) -> cst.IndentedBlock:
        body = list(updated_node.body)
        for index, (first, second) in enumerate(pairwise(body)):
            if m.matches(first, _SET_FLAG):
                lines = cst.ensure_type(first, cst.SimpleStatementLine).leading_lines
                body[index : index + 2] = [second.with_changes(leading_lines=lines)]
                break
        return updated_node.with_changes(body=body)


TRANSFORMERS: Final[Mapping[str, type[_Selective]]] = dict(
    zip(PATHS, (UniProc, MultiProc, Runner), strict=True)
)


def refactor(files: Files) -> dict[str, bytes]:
    """Makes the edits: parse, transform, write."""
    return {
        path: cst.parse_module(data).visit(TRANSFORMERS[path]()).bytes
        for path, data in files.items()
    }


def _statements(block: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    return cst.ensure_type(block, cst.IndentedBlock).body


def _with_body(node: _Node, body: Iterable[cst.BaseStatement]) -> _Node:
    block = cst.ensure_type(node.body, cst.IndentedBlock)
    return node.with_changes(body=block.with_changes(body=list(body)))
