"""Finds the places of one hunk in one file. Pure: reads trees, changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vllm_graft.engine.change import Change
from vllm_graft.engine.condition import Check
from vllm_graft.engine.edit import Editor
from vllm_graft.engine.kinds import kinds_of
from vllm_graft.engine.layout import all_blocks, statements
from vllm_graft.engine.layout_state import LayoutState, layout_state
from vllm_graft.engine.match import Match
from vllm_graft.engine.miss import nearest_miss
from vllm_graft.engine.patchfile import Alternative, Hunk
from vllm_graft.engine.scope import find_scopes, nearest_names
from vllm_graft.engine.source import Source
from vllm_graft.engine.splice import Edit
from vllm_graft.engine.splits import Splits
from vllm_graft.engine.views import View
from vllm_graft.errors import PatchError
from vllm_graft.results import Verdict


class Spot(NamedTuple):
    """One match of one view.

    Args:
        key: ``id`` of the source statements that the change is about: the dropped
            ones, or those that lines are added beside; in the after view, the
            added ones.
        matched: ``id`` of the statements that the view names.
        inside: ``id`` of all statements in the matched run.
        weight: How much the view says: its logical lines, then its code.
    """

    change: Change
    match: Match
    key: frozenset[int]
    matched: frozenset[int]
    inside: frozenset[int]
    weight: tuple[int, int]

    def repeats(self, other: Spot) -> bool:
        """Whether another match of the same view is about this place already.

        Alternatives may name a place by other statements of it.
        """
        if self.change is other.change:
            return bool(self.key & other.key)
        return bool(self.key & other.matched or other.key & self.matched)

    def overlaps(self, other: Spot) -> bool:
        """Whether both are about the same place."""
        return bool(self.key & other.inside or other.key & self.inside)


class Found(NamedTuple):
    """The outcome for one hunk before conditions are considered."""

    verdict: Verdict | None
    reason: str = ""
    lines: tuple[int, ...] = ()
    edits: tuple[Edit, ...] = ()


class CompiledHunk:
    """A hunk, ready to be located.

    Args:
        path: The patch file, for messages.
        hunk: The hunk; for a reverse patch, the reversed one.
        reverse: Alternatives that cannot be reversed are then left out.

    Raises:
        PatchError: The hunk is malformed.
    """

    def __init__(self, path: str, hunk: Hunk, *, reverse: bool = False) -> None:
        self.path = path
        self.hunk = hunk
        self.guards = [Check(path, condition) for condition in hunk.conditions]
        self.changes: list[Change] = []
        for alternative in hunk.alternatives:
            change = self._compile(alternative, needed=not (reverse and self.changes))
            self.changes += [change] if change else []
        self._check_wheres()

    def _compile(self, alternative: Alternative, *, needed: bool) -> Change | None:
        try:
            return Change(self.path, alternative, self.hunk.wheres)
        except PatchError:
            if needed:
                raise
            return None

    def _check_wheres(self) -> None:
        used = {
            name
            for change in self.changes
            for view in (change.before, change.after)
            for name in view.metavariables
        }
        for where in self.hunk.wheres:
            if where.name not in used:
                raise PatchError(
                    f"no line of the hunk has ${where.name}",
                    where=f"{self.path}:{where.number}",
                    hint="correct the name, or remove the 'where'",
                )

    def locate(self, source: Source, splits: Splits) -> Found:
        """Where the hunk stands in a file, and the edits that apply it.

        Args:
            source: The file, perhaps with shared lines split.
            splits: Which were split.

        Raises:
            SharedLineError: A line must be split before it can be edited.
        """
        scopes = find_scopes(source.tree, self.hunk.scopes)
        if not scopes:
            near = nearest_names(source.tree, self.hunk.scopes[0])
            guess = f"; nearest: {', '.join(near)}" if near else ""
            return Found(
                Verdict.ABSENT, f"no definition {self.hunk.scope} in this file{guess}"
            )
        blocks = [block for scope in scopes for block in all_blocks(scope)]
        before, after = self._spots(blocks)
        if self.is_layout:
            before, after = _by_layout(source, before)
        return self._judge(source, splits, before, after) or Found(
            None, nearest_miss(source, splits, self.changes, blocks)
        )

    def is_applied(self, tree: ast.Module) -> bool:
        """Whether the change is found made in a tree. Reads no positions."""
        scopes = find_scopes(tree, self.hunk.scopes)
        blocks = [block for scope in scopes for block in all_blocks(scope)]
        before, after = self._spots(blocks)
        return len(after) >= self.hunk.least and (self.is_layout or not before)

    @property
    def is_layout(self) -> bool:
        """Whether the hunk changes nothing but how code is laid out."""
        return self.changes[0].is_layout

    def _spots(self, blocks: Sequence[list[ast.AST]]) -> tuple[list[Spot], list[Spot]]:
        """The places of the before view, and those of the after view.

        Where both match at one place, the view that says more is right: a view at
        the edge of which lines come or go also matches in the other side's tree.
        """
        before: list[Spot] = []
        after: list[Spot] = []
        kinds = [kinds_of(block) for block in blocks]
        dead: set[tuple[str, int]] = set()
        for change in self.changes:
            for spots, view in ((before, change.before), (after, change.after)):
                matcher = change.matcher(view)
                for block, kind in zip(blocks, kinds, strict=True):
                    for match in matcher.find(block, kind, dead):
                        spot = _spot(change, match, view)
                        if not any(map(spot.repeats, spots)):
                            spots.append(spot)
        if self.is_layout:
            return before, after
        before = [
            spot
            for spot in before
            if not any(a.weight > spot.weight and spot.overlaps(a) for a in after)
        ]
        after = [a for a in after if not any(a.overlaps(spot) for spot in before)]
        return before, after

    def _judge(
        self,
        source: Source,
        splits: Splits,
        before: Sequence[Spot],
        after: Sequence[Spot],
    ) -> Found | None:
        least, most = self.hunk.least, self.hunk.most
        todo, done = len(before), len(after)
        editors = [Editor(source, spot.change, spot.match) for spot in before]
        lines = _sorted(splits.original(editor.first_line()) for editor in editors)
        if todo and most is not None and todo > most:
            wanted = str(most) if most == least else f"{least} to {most}"
            return Found(
                Verdict.AMBIGUOUS,
                f"matches {todo} places, at lines "
                f"{', '.join(map(str, lines))}; the hunk allows {wanted}",
                lines,
            )
        if todo and todo + done >= least:
            edits = tuple(edit for editor in editors for edit in editor.edits())
            if todo >= least:
                return Found(Verdict.APPLIES, "", lines, edits)
            reason = f"applied at {done} of {todo + done} places"
            return Found(Verdict.PARTIAL, reason, lines, edits)
        if not todo and done >= least:
            there = _sorted(splits.original(_line(spot)) for spot in after)
            return Found(Verdict.APPLIED, "", there)
        if todo or done:
            return Found(
                None, f"matches {todo + done} places; the hunk needs at least {least}"
            )
        return None


def _sorted(lines: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(lines)))


def _spot(change: Change, match: Match, view: View) -> Spot:
    kind = "-" if view is change.before else "+"
    changed = {
        id(match.nodes[id(line.part.node)])
        for line in view.logical_lines
        if change.lines[line.rows[0]].kind == kind and id(line.part.node) in match.nodes
    }
    inside = {id(child) for node in match.block.nodes for child in statements(node)}
    key = changed or _beside(change, match, view)
    return Spot(
        change,
        match,
        frozenset(key),
        frozenset(map(id, match.nodes.values())),
        frozenset(inside),
        view.weight,
    )


def _beside(change: Change, match: Match, view: View) -> set[int]:
    """The kept statements next to lines that only the other view has."""
    kept = [
        (line.rows[0], id(match.nodes[id(line.part.node)]))
        for line in view.logical_lines
        if id(line.part.node) in match.nodes
    ]
    rows = [row for row, line in enumerate(change.lines) if line.kind != " "]
    key = set()
    for row in rows:
        above = [node for at, node in kept if at < row]
        key.add(above[-1] if above else next(node for at, node in kept if at > row))
    return key


def _line(spot: Spot) -> int:
    """The source line of a change that is there already."""
    change = spot.change
    nodes = [
        spot.match.nodes[id(line.part.node)]
        for line in change.after.logical_lines
        if change.lines[line.rows[0]].kind == "+"
        and id(line.part.node) in spot.match.nodes
    ]
    node = nodes[0] if nodes else spot.match.block.nodes[0]
    return getattr(getattr(node, "pattern", node), "lineno", 0)


def _by_layout(source: Source, spots: Sequence[Spot]) -> tuple[list[Spot], list[Spot]]:
    """Tells two layouts of the same code apart by their text."""
    states = [(spot, layout_state(source, spot.change, spot.match)) for spot in spots]
    return (
        [spot for spot, state in states if state is LayoutState.BEFORE],
        [spot for spot, state in states if state is LayoutState.AFTER],
    )
