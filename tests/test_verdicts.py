"""Verdicts on small trees: each with its reason and its lines."""

import textwrap

import pytest

from vllm_graft.engine.evaluate import CompiledFile, FileOutcome
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.source import Source
from vllm_graft.results import Verdict

HEAD = "Subject: s\n\n---\n--- a/t.py\n+++ b/t.py\n"  # what follows begins on line 6


def text(margin: str) -> str:
    lines = textwrap.dedent(margin).strip("\n").split("\n")
    return "".join(f"{line.removeprefix('|')}\n" for line in lines)


def judge(hunks: str, source: str) -> FileOutcome:
    patch = parse_patch("p.spatch", HEAD + text(hunks))
    before = Source("t.py", text(source))
    outcome = CompiledFile("p.spatch", patch.files[0]).evaluate(before)
    if outcome.verdict not in (Verdict.APPLIES, Verdict.PARTIAL):
        assert outcome.text == before.text
    return outcome


REPLACE = """
    |@@ A.f
    | a = $x
    | ...
    |-b($x)
    |+c($x)
"""


@pytest.mark.parametrize(
    ("source", "verdict", "lines", "reason"),
    [
        pytest.param(
            """
            class A:
                def f(self):
                    a = 1
                    log()
                    b(1)
            """,
            Verdict.APPLIES,
            (5,),
            "",
            id="applies",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    a = 1
                    log()
                    c(1)
            """,
            Verdict.APPLIED,
            (5,),
            "",
            id="applied",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    a = 1
                    log()
                    b(2)
            """,
            Verdict.CONFLICT,
            (),
            "line 9 of the patch, `b($x)`, does not match line 5, `b(2)`",
            id="conflict: another argument",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    log()
                    a = 1
                    d()
            """,
            Verdict.CONFLICT,
            (),
            "line 9 of the patch, `b($x)`, does not match line 5, `d()`",
            id="conflict: another statement",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    d = 1
            """,
            Verdict.CONFLICT,
            (),
            "line 7 of the patch, `a = $x`, does not match line 3, `d = 1`",
            id="conflict: the first line already",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    a = 1
            """,
            Verdict.CONFLICT,
            (),
            "line 9 of the patch, `b($x)`, has no counterpart: the block ends before",
            id="conflict: the block ends",
        ),
        pytest.param(
            """
            class A:
                def f(self): pass
            """,
            Verdict.CONFLICT,
            (),
            "line 7 of the patch, `a = $x`, does not match line 2, `def f(self): pass`",
            id="conflict: nothing alike",
        ),
        pytest.param(
            """
            class A:
                def f(self):
                    a = 1
                    b(1)
                    if x:
                        a = 2
                        b(2)
            """,
            Verdict.AMBIGUOUS,
            (4, 7),
            "matches 2 places, at lines 4, 7; the hunk allows 1",
            id="ambiguous",
        ),
        pytest.param(
            """
            class A:
                def ff(self):
                    a = 1
            """,
            Verdict.ABSENT,
            (),
            "no definition A.f in this file; nearest: A.ff",
            id="absent",
        ),
        pytest.param(
            "# nothing here", Verdict.ABSENT, (), "no definition A.f", id="empty"
        ),
    ],
)
def test_one_hunk(
    source: str, verdict: Verdict, lines: tuple[int, ...], reason: str
) -> None:
    outcome = judge(REPLACE, source)
    (hunk,) = outcome.hunks
    assert (outcome.verdict, hunk.verdict, hunk.lines) == (verdict, verdict, lines)
    assert reason in hunk.reason


def test_lines_are_those_of_the_file_as_it_is() -> None:
    """Shared lines are split to be edited; the user's file is not split."""
    outcome = judge(
        REPLACE,
        """
        class A:
            def f(self):
                x = 1; a = 1; b(1)
                y = 2; z = 3
        """,
    )
    assert outcome.hunks[0].lines == (3,)


SUPERSEDED = """
    |ensure f has no old($_)
    |@@ f
    |-old($x)
    |+new($x)
"""


@pytest.mark.parametrize(
    ("body", "verdict", "reason"),
    [
        ("old(1)", Verdict.APPLIES, ""),
        ("new(1)", Verdict.APPLIED, ""),
        ("newer(1)", Verdict.SUPERSEDED, "solved another way"),
        ("x = old(1)", Verdict.CONFLICT, "does not match line 2, `x = old(1)`"),
        (
            "new(1)\n    x = old(1)",
            Verdict.CONFLICT,
            "looks applied, but post-condition not so: f has no `old($_)` (line 3)",
        ),
        (
            "old(1)\n    x = old(2)",
            Verdict.CONFLICT,
            "post-condition not so: f has no `old($_)`",
        ),
    ],
)
def test_post_condition(body: str, verdict: Verdict, reason: str) -> None:
    outcome = judge(SUPERSEDED, f"def f():\n    {body}")
    assert outcome.verdict is verdict
    assert reason in outcome.hunks[0].reason


def test_without_post_conditions_nothing_is_superseded() -> None:
    hunks = SUPERSEDED.replace("|ensure f has no old($_)\n    ", "")
    assert judge(hunks, "def f():\n    newer(1)").verdict is Verdict.CONFLICT


TWO = """
    |@@ f
    |-a()
    |+b()
    |@@ g
    |-a()
    |+b()
"""


@pytest.mark.parametrize(
    ("f", "g", "verdict"),
    [
        ("a()", "a()", Verdict.APPLIES),
        ("b()", "b()", Verdict.APPLIED),
        ("b()", "a()", Verdict.PARTIAL),
        ("a()", "x()", Verdict.CONFLICT),
        ("b()", "x()", Verdict.CONFLICT),
        ("a(); a()", "a()", Verdict.AMBIGUOUS),
    ],
)
def test_two_hunks(f: str, g: str, verdict: Verdict) -> None:
    outcome = judge(TWO, f"def f(): {f}\ndef g(): {g}")
    assert outcome.verdict is verdict
    if verdict is Verdict.PARTIAL:
        assert "a()" not in outcome.text


def test_a_missing_scope_beside_a_present_one_is_a_conflict() -> None:
    outcome = judge(TWO, "def f(): a()")
    assert outcome.verdict is Verdict.CONFLICT
    assert [h.verdict for h in outcome.hunks] == [Verdict.APPLIES, Verdict.ABSENT]


@pytest.mark.parametrize(
    ("body", "verdict", "reason"),
    [
        ("a()\n    a()\n    a()", Verdict.APPLIES, ""),
        ("b()\n    b()\n    a()", Verdict.PARTIAL, "applied at 2 of 3 places"),
        ("a()", Verdict.CONFLICT, "matches 1 places; the hunk needs at least 2"),
        ("a()\n    a()\n    a()\n    a()", Verdict.AMBIGUOUS, "allows 2 to 3"),
    ],
)
def test_count(body: str, verdict: Verdict, reason: str) -> None:
    hunks = """
        |@@ f @@ count=2..3
        |-a()
        |+b()
    """
    outcome = judge(hunks, f"def f():\n    {body}")
    assert outcome.verdict is verdict
    assert reason in outcome.hunks[0].reason


def test_like_functions_are_two_places() -> None:
    hunks = """
        |@@ *.f @@ count=2
        |-a()
        |+b()
    """
    source = "class A:\n    def f(self):\n        a()\n"
    outcome = judge(hunks, source + source.replace("A", "B"))
    assert (outcome.verdict, outcome.hunks[0].lines) == (Verdict.APPLIES, (3, 6))


def test_hunks_that_change_the_same_line() -> None:
    hunks = TWO.replace("@@ g", "@@ *").replace("+b()\n    |@@ *", "+c()\n    |@@ *")
    outcome = judge(hunks, "def f():\n    a()")
    assert outcome.verdict is Verdict.CONFLICT
    assert "change line 2" in outcome.reason


def test_result_that_is_no_python() -> None:
    hunks = """
        |@@ f
        | a[$x]
        |+use($x)
    """
    outcome = judge(hunks, "def f():\n    a[1:2]")
    assert outcome.verdict is Verdict.CONFLICT
    assert outcome.reason.startswith("the result is not Python")


def test_change_that_would_not_be_found_applied() -> None:
    """The new code matches the old pattern: it would be applied for ever."""
    hunks = """
        |@@ f
        |-a($x)
        |+a($x, $x)
        | b(...)
    """
    assert judge(hunks, "def f():\n    a(1)\n    b()").verdict is Verdict.APPLIES
    hunks = hunks.replace("-a($x)", "-a(...)").replace("$x, $x", "1, 2")
    assert judge(hunks, "def f():\n    a(0)\n    b()").verdict is Verdict.APPLIES
    hunks = hunks.replace("+a(1, 2)", "+a(1)\n        |+a(2)")
    assert judge(hunks, "def f():\n    a(0)\n    b()").verdict is Verdict.APPLIES


def test_guard() -> None:
    hunks = """
        |@@ f
        |when ** has no keep
        |-a()
        |+b()
    """
    outcome = judge(hunks, "def f(): a()\ndef g(): return keep")
    assert outcome.verdict is Verdict.ABSENT
    assert outcome.hunks[0].reason == "guard: not so: ** has no `keep` (line 2)"
    lines = [line for hunk in outcome.hunks for line in hunk.lines]
    assert lines == [1]


def test_a_condition_is_judged_anew_on_each_tree() -> None:
    hunks = text("""
        |ensure f has no $x.get($x)
        |@@ f
        |-a()
        |+b()
    """)
    file = CompiledFile("p", parse_patch("p", HEAD + hunks).files[0])
    for name in ("one", "two"):
        outcome = file.evaluate(
            Source("t.py", f"def f():\n    a()\n    {name}.get({name})\n")
        )
        assert outcome.verdict is Verdict.CONFLICT


def test_alternatives_of_a_condition() -> None:
    hunks = """
        |ensure f has
        |where $x in one, two
        | use($x)
        |or
        | skip()
        |@@ f
        |-a()
        |+b()
    """
    verdicts = [
        judge(hunks, f"def f():\n    a()\n    {body}").verdict
        for body in ("use(one)", "use(two)", "use(three)", "skip()")
    ]
    applies, conflict = Verdict.APPLIES, Verdict.CONFLICT
    assert verdicts == [applies, applies, conflict, applies]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("start()\nif x:\n    go(1)\nend()", Verdict.APPLIES),
        ("start()\nstay()\nend()", Verdict.CONFLICT),
        ("start()\ngo(1)\nstop()\nend()", Verdict.CONFLICT),
        ("start()\ngo(1)\nend()\nmore()", Verdict.CONFLICT),
    ],
)
def test_limits_of_an_ellipsis(body: str, verdict: Verdict) -> None:
    hunks = """
        |@@ f
        | start()
        | ... with go($x) without stop()
        |-end()
        |+finish($x)
        | ... without $_
    """
    source = "def f():\n" + textwrap.indent(body, "    ")
    outcome = judge(hunks, source)
    assert outcome.verdict is verdict
    assert ("finish(1)" in outcome.text) == (verdict is Verdict.APPLIES)
