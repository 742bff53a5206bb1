"""Follows the result of a call through one function.

An abstract run over the statements: which names may hold a tracked result, in which
branches it is known to be something else, and what is done with it. It knows
assignments, branches, loops, ``isinstance`` guards and early returns. It does not
follow a result into lambdas, nested functions or other objects.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from vllm_graft.audit.expressions import Expressions
from vllm_graft.audit.state import NOTHING, State, Value, key_of, merge


class Flow(Expressions):
    """One run over a function; what was seen is in ``events``."""

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Runs over the body of a function or a module."""
        self.block(body, State())

    def block(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        """Runs over statements; None where their end is not reached."""
        for statement in body:
            if state is None:
                break
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        match node:
            case ast.Return(value=value):
                found = self.value(value, state) if value else NOTHING
                self.returned(node, found, state)
                return None
            case ast.Raise():
                self.children(node, state)
                return None
            case ast.Break() | ast.Continue():
                self._loops[-1].append(state.copy())
                return None
            case ast.If(test=test, body=body, orelse=orelse):
                true, false = self.branches(test, state)
                return merge(self.block(body, true), self.block(orelse, false))
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, state)
            case ast.Try():
                return self._try(node, state)
            case _ if isinstance(node, _TRY_STAR):
                return self._try(node, state)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.value(item.context_expr, state)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, NOTHING, state)
                return self.block(node.body, state)
            case ast.Match():
                return self._match(node, state)
        self._simple(node, state)
        return state

    def _simple(self, node: ast.stmt, state: State) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, state)
                for target in targets:
                    self.bind(target, found, state)
                    self._name_test(target, value, state)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, state), state)
            case ast.AugAssign(target=target, value=value):
                for part in (target, value):
                    found = self.value(part, state)
                    if not found.wrapped:
                        self.used(found, node, "is calculated with")
            case ast.Assert(test=test):
                true, _ = self.branches(test, state)
                state.become(true)
            case ast.Delete(targets=targets):
                for target in targets:
                    self.bind(target, NOTHING, state)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                state.names.pop(name, None)
            case ast.ClassDef():
                pass
            case _:
                self.children(node, state)

    def _name_test(self, target: ast.expr, value: ast.expr, state: State) -> None:
        """Remembers the test whose outcome a name gets."""
        if isinstance(target, ast.Name) and isinstance(value, _TESTS):
            mentioned = {*map(key_of, ast.walk(value))}
            if target.id not in mentioned and mentioned & {*state.names}:
                state.tests[target.id] = value

    def _loop(
        self, node: ast.While | ast.For | ast.AsyncFor, state: State
    ) -> State | None:
        endless = isinstance(node, ast.While) and _is_true(node.test)
        start: State | None = state
        leaving: list[State] = []
        for _ in range(_ROUNDS):
            if start is None:
                break
            self._loops.append([])
            if isinstance(node, ast.While):
                true, false = self.branches(node.test, start)
            else:
                true, false = start.copy(), start
                self.iterate(node.target, node.iter, true)
            end = self.block(node.body, true)
            leaving += self._loops.pop()
            state = false
            start = merge(start, end, *leaving)
        after = None if endless else self.block(node.orelse, merge(state, start))
        return merge(after, *leaving)

    def _try(self, node: ast.Try, state: State) -> State | None:
        before = state.copy()
        patient = any(map(_catches_missing, node.handlers))
        if patient:
            self._tries.append(set())
        end = self.block(node.body, state)
        resolved = self._tries.pop() if patient else set()
        broken = merge(before, end, state) or before
        ends = [self.block(node.orelse, end)]
        for part in node.handlers:
            start = broken.copy()
            if _catches_missing(part):
                for key in resolved:
                    start.names.pop(key, None)
            ends.append(self.block(part.body, start))
        after = merge(*ends)
        if after is None:
            self.block(node.finalbody, broken.copy())
            return None
        return self.block(node.finalbody, after)

    def _match(self, node: ast.Match, state: State) -> State | None:
        found = self.value(node.subject, state)
        key = key_of(node.subject) or "<subject>"
        if found.origins:
            state.names[key] = found
        ends: list[State | None] = []
        going: State | None = state
        for case in node.cases:
            if going is None:
                break
            inside, going = self.policy.guards.split_pattern(key, case.pattern, going)
            _capture(case.pattern, inside.names.get(key, NOTHING), inside)
            if case.guard is not None:
                inside, refused = self.branches(case.guard, inside)
                going = merge(going, refused)
            ends.append(self.block(case.body, inside))
        return merge(*ends, going)


_ROUNDS: Final = 2
_TRY_STAR: Final = getattr(ast, "TryStar", ast.Try)  # new in Python 3.11
_TESTS: Final = (ast.Call, ast.Compare, ast.BoolOp, ast.UnaryOp)


def _capture(pattern: ast.pattern, value: Value, state: State) -> None:
    """Binds the names of a pattern; the outermost one is what is matched."""
    for part in ast.walk(pattern):
        if isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name:
            state.forget(part.name)
            if part is pattern and value.origins:
                state.names[part.name] = value


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    """Whether it is for objects without a method."""
    types = [] if handler.type is None else [*ast.walk(handler.type)]
    return any(isinstance(t, ast.Name) and t.id == "AttributeError" for t in types)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)
