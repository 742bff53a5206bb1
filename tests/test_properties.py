"""What holds for any source and any patch derived from it.

Sources are made of statements in every shape, with odd layout, comments and line
ends; a patch is made from a run of those statements as they stand in the source.
"""

import ast
import io
import tokenize
from collections.abc import Callable

from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from generated import (
    NAMES,
    Block,
    Frame,
    blocks,
    expressions,
    frames,
    mutated,
    render,
    simple,
)
from vllm_graft.engine.evaluate import CompiledFile, FileOutcome
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.source import Source, split_lines
from vllm_graft.engine.text import comments
from vllm_graft.errors import GraftError, PatchError
from vllm_graft.results import Verdict

HEAD = "Subject: s\n\n---\n--- a/t.py\n+++ b/t.py\n@@ scope\n"


def marked(kind: str, block: Block) -> str:
    return "".join(f"{kind}{line}\n" for line in render(block, "    "))


def judge(patch: str, text: str, *, reverse: bool = False) -> FileOutcome:
    parsed = parse_patch("p", patch)
    assert str(parsed) == patch
    assert parsed.reversed().reversed() == parsed
    file = (parsed.reversed() if reverse else parsed).files[0]
    return CompiledFile("p", file, reverse=reverse).evaluate(Source("t.py", text))


def check(patch: str, before: str, after: str) -> None:
    """Applying, applying again, and reverting give exactly what they should."""
    note(patch)
    note(before)
    outcome = judge(patch, before)
    assert outcome.verdict is Verdict.APPLIES, outcome.hunks
    assert outcome.text == after
    again = judge(patch, after)
    assert again.verdict is Verdict.APPLIED, again.hunks
    assert again.text == after
    back = judge(patch, after, reverse=True)
    assert back.verdict is Verdict.APPLIES, back.hunks
    assert back.text == before


def dump(text: str) -> str:
    return ast.dump(ast.parse(text))


# --- what is changed is exactly what the patch says ---------------------------------


@given(frames, blocks(), blocks())
def test_replacing_a_run(frame: Frame, old: Block, new: Block) -> None:
    old, new = ["old()", *old], [*new, "new()"]
    patch = f"{HEAD} above()\n{marked('-', old)}{marked('+', new)} below()\n"
    check(patch, frame.text(old), frame.text(new))


@given(frames, blocks())
def test_adding_a_run(frame: Frame, new: Block) -> None:
    patch = f"{HEAD} above()\n{marked('+', new)} below()\n"
    check(patch, frame.text([]), frame.text(new))


@given(frames, blocks())
def test_removing_a_run(frame: Frame, old: Block) -> None:
    patch = f"{HEAD} above()\n{marked('-', old)} below()\n"
    check(patch, frame.text(old), frame.text([]))


@given(frames, blocks(), blocks(), simple(), simple())
def test_what_an_ellipsis_runs_over_is_untouched(
    frame: Frame, one: Block, two: Block, old: str, new: str
) -> None:
    target: Block = [[("if target:", ["old()", old])]]
    result: Block = [[("if target:", [new, "new()"])]]
    changed = " if target:\n" + marked("-", target).partition("\n")[2]
    changed += marked("+", result).partition("\n")[2]
    patch = f"{HEAD} above()\n ...\n{changed} ...\n below()\n"
    before = [*one, *target, *two]
    check(patch, frame.text(before), frame.text([*one, *result, *two]))


@given(frames, expressions(), expressions(), NAMES)
def test_bound_expressions_keep_their_meaning(
    frame: Frame, one: str, two: str, name: str
) -> None:
    patch = f"{HEAD}-consume($x, k=$y).$z\n+$z.produce([$y], $x)\n"
    before = frame.text([f"consume({one}, k={two}).{name}"])
    after = frame.text([f"{name}.produce([{two}], {one})"])
    note(before)
    outcome = judge(patch, before)
    assert outcome.verdict is Verdict.APPLIES, outcome.hunks
    assert dump(outcome.text) == dump(after)
    assert sorted(comments(outcome.text)) == sorted(comments(before))
    assert judge(patch, outcome.text).verdict is Verdict.APPLIED
    assert dump(judge(patch, outcome.text, reverse=True).text) == dump(before)


@given(frames, blocks(notes=False), st.lists(simple(), min_size=1, max_size=3))
def test_moving_takes_the_text_along(
    frame: Frame, passed: Block, moved: list[str]
) -> None:
    run: Block = [[("if moved:", ["# mine", *moved])]]
    target: Block = [[("while there:", passed)]]
    result: Block = [[("while there:", [*passed, *run])]]
    patch = (
        f"{HEAD} above()\n-if moved:\n-    ...\n while there:\n     ...\n"
        "+    if moved:\n+        ...\n below()\n"
    )
    check(patch, frame.text([*run, *target]), frame.text(result))


@given(frames, st.lists(simple(), max_size=3))
def test_shared_lines_are_split_and_nothing_else(
    frame: Frame, lines: list[str]
) -> None:
    old = ["old()", *(x for x in lines if "\n" not in x and "#" not in x)]
    patch = f"{HEAD} above()\n{marked('-', [*old])}+new()\n below()\n"
    apart = [f"{frame.unit}{line}" for line in ["above()", *old, "below()"]]
    shared = f"{frame.unit}above(); {'; '.join(old)}; below()  # end"
    before = frame.text([*old]).replace(frame.newline.join(apart), shared)
    assume(shared in before)
    note(before)
    outcome = judge(patch, before)
    assert outcome.verdict is Verdict.APPLIES, outcome.hunks
    assert dump(outcome.text) == dump(frame.text(["new()"]))
    assert comments(outcome.text) == comments(before)
    kept = [line for line in split_lines(before) if "above()" not in line]
    assert [line for line in split_lines(outcome.text) if line in kept] == kept
    assert judge(patch, outcome.text).verdict is Verdict.APPLIED


# --- bad input ------------------------------------------------------------------------

MANY = settings(max_examples=5 * settings().max_examples)


def refusal(action: Callable[[], None]) -> GraftError | None:
    """The error that an action ends with; it has a place and a hint."""
    try:
        action()
    except GraftError as error:
        assert error.where  # noqa: PT017
        assert error.hint  # noqa: PT017
        return error
    return None


PATCH = r"""Subject: s
Requires: t.py

words
---
--- a/t.py
+++ b/t.py
ensure scope has $x
# remark
ensure ** has no
where $y in a, b
 use($y)
or
 ...
 return $x
@@ scope, A.* @@ optional count=1..3
where $flag in self.flag, $a.flag
when ** has no "x"
 above($flag, ...)
 ... with $x without $_
-if $flag:
-    return [f"{$x}"]
+return $x

@@ or
 def f(a, ...):
+    "doc"
     ...
"""
SOURCE = """# -*- coding: utf-8 -*-
class A(B, k=1):
    def f(self, a=1):
        above(self.flag, 1); x = '\u65e5'
        if self.flag: return [f"{x}"]

def scope():
    try: above(self.flag)
    except E as e:  # no
        pass
    return x
"""


@given(mutated(PATCH))
@MANY
def test_patches_fail_with_a_place_and_a_hint(text: str) -> None:
    def read() -> None:
        patch = parse_patch("p", text)
        assert str(patch) == text
        for one in (patch, patch.reversed()):
            for file in one.files:
                compiled = CompiledFile("p", file, reverse=one.reverse)
                compiled.evaluate(Source("t.py", SOURCE))

    error = refusal(read)
    assert error is None or isinstance(error, PatchError)


COMPILED = CompiledFile("p", parse_patch("p", PATCH).files[0])


@given(mutated(SOURCE))
@MANY
def test_sources_fail_with_a_place_and_a_hint(text: str) -> None:
    def read() -> None:
        outcome = COMPILED.evaluate(Source("t.py", text))
        if outcome.verdict not in (Verdict.APPLIES, Verdict.PARTIAL):
            assert outcome.text == text

    refusal(read)


@given(st.binary(max_size=40), st.sampled_from(["utf-8", "latin-1", "utf-16", "idna"]))
def test_bytes_come_back_or_are_refused(data: bytes, codec: str) -> None:
    data = f"# coding: {codec}\n".encode() + data

    def read() -> None:
        assert Source.from_bytes("t.py", data).to_bytes() == data

    refusal(read)


# --- reading text -------------------------------------------------------------------


@given(blocks())
def test_comments_are_those_of_tokenize(block: Block) -> None:
    text = "\n".join(render(block, "    ")) + "\n"
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    wanted = [t.string for t in tokens if t.type == tokenize.COMMENT]
    assert comments(text) == wanted
