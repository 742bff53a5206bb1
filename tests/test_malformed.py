"""Malformed patches and targets: one clear error each, with its place and a hint."""

import pytest

from vllm_graft.engine.evaluate import CompiledFile
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.source import Source
from vllm_graft.errors import PatchError, SourceError

HEAD = "Subject: s\n\n---\n"
FILE = HEAD + "--- a/t.py\n+++ b/t.py\n"  # the first hunk stands on line 6


def compiled(text: str) -> None:
    patch = parse_patch("p.spatch", text)
    for direction in (patch, patch.reversed()):
        for file in direction.files:
            CompiledFile(patch.path, file, reverse=direction.reverse)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "no Subject"),
        ("Subject: \n\n---\n", 1, "no Subject"),
        ("From: a\n\n---\n", 1, "no Subject"),
        ("Subject: a\nSubject: b\n\n---\n", 1, "Subject is given twice"),
        ("Subject: a\nColour: red\n\n---\n", 2, "not a header field: 'Colour: red'"),
        ("Subject: a\nno field\n", 2, "not a header field: 'no field'"),
        ("Subject: a", 2, "the patch ends after its header"),
        ("Subject: a\n\nwords\n", 4, "no --- line after the message"),
        ("Subject: a\n\n---\n", 4, "no file to patch"),
        ("Subject: a\r\n", 1, "carriage return in a patch file"),
        (HEAD + "+++ b/t.py\n", 4, "expected '--- a/PATH'"),
        (HEAD + "--- a/t.py\n", 5, "expected '+++ b/PATH'"),
        (HEAD + "--- t.py\n+++ t.py\n", 4, "path does not begin with a/"),
        (HEAD + "--- a/../t.py\n", 4, "unsafe path: '../t.py'"),
        (HEAD + "--- a//etc/passwd\n", 4, "unsafe path: '/etc/passwd'"),
        (HEAD + "--- a/x/./t.py\n", 4, "unsafe path: 'x/./t.py'"),
        (HEAD + "--- a/x//t.py\n", 4, "unsafe path: 'x//t.py'"),
        (HEAD + "--- a/.\n", 4, "unsafe path: '.'"),
        (HEAD + "--- a/t.py\n+++ b/u.py\n", 4, "renames a file"),
        (HEAD + "--- /dev/null\n+++ /dev/null\n", 4, "both sides are /dev/null"),
        (FILE, 4, "no hunk for this file"),
        (
            HEAD + "--- /dev/null\n+++ b/t.py\n@@ f\n-a\n+b\n",
            4,
            "hunks in a file that is new or goes",
        ),
        (FILE + "@@\n-a\n+b\n", 6, "a hunk without a scope"),
        (FILE + "@@ f g\n-a\n+b\n", 6, "not a scope: 'f g'"),
        (FILE + "@@ or\n-a\n+b\n", 6, "not a scope: 'or'"),
        (FILE + "@@ f @@ maybe\n-a\n+b\n", 6, "unknown option: 'maybe'"),
        (FILE + "@@ f @@ count=x\n-a\n+b\n", 6, "unknown option: 'count=x'"),
        (FILE + f"@@ f @@ count={'9' * 5000}\n-a\n+b\n", 6, "unknown option"),
        (FILE + "@@ f @@ count=0\n-a\n+b\n", 6, "a count that nothing satisfies"),
        (FILE + "@@ f @@ count=3..2\n-a\n+b\n", 6, "a count that nothing satisfies"),
        (FILE + "@@ f\n a\n", 8, "a hunk that changes nothing"),
        (FILE + "@@ f\n-a\n+b\n@@ or\n", 10, "a hunk that changes nothing"),
        (FILE + "@@ f\n-a\n+b\nwords\n", 9, "unexpected line: 'words'"),
        (FILE + "ensure f\n@@ f\n-a\n+b\n", 6, "cannot read this condition"),
        (FILE + "ensure f g has x\n@@ f\n-a\n+b\n", 6, "cannot read this condition"),
        (FILE + "ensure f has\n@@ f\n-a\n+b\n", 7, "a condition without a pattern"),
        (FILE + "ensure f has x +\n@@ f\n-a\n+b\n", 6, "pattern view is not Python"),
        (FILE + "ensure f has ...\n@@ f\n-a\n+b\n", 6, "that every block meets"),
        (FILE + "ensure f has # x\n@@ f\n-a\n+b\n", 6, "that every block meets"),
        (FILE + "@@ f\nwhen g\n-a\n+b\n", 7, "cannot read this condition"),
        (FILE + "@@ f\nwhere x in y\n-a\n+b\n", 7, "cannot read this constraint"),
        (FILE + "@@ f\nwhere $x in y)(z\n-$x\n+b\n", 7, "not an expression"),
        (FILE + "@@ f\nwhere $x in ,\n-$x\n+b\n", 7, "not an expression"),
        (FILE + "@@ f\nwhere $y in a\n-a\n+b\n", 7, "no line of the hunk has $y"),
        (FILE + "@@ f\n-a\n+b($x)\n", 8, "$x is added but nothing binds it"),
        (FILE + "@@ f\n a\n+b($_)\n", 8, "$_ on a + line"),
        (FILE + "@@ f\n a\n+b(1, ...)\n", 8, "an ellipsis among arguments on a + line"),
        (FILE + "@@ f\n a\n+class B(A, ...): x\n", 8, "an ellipsis among arguments"),
        (FILE + "@@ f\n a\n+def b(x, ...): x\n", 8, "an ellipsis among arguments"),
        (FILE + "@@ f\n a\n+if b:\n+    ...\n", 9, "an ellipsis on a + line"),
        (FILE + "@@ f\n a\n-if b:\n-    ...\n", 9, "an ellipsis on a - line"),
        (FILE + "@@ f\n a\n+b$x\n", 8, "only a part of 'b$x'"),
        (FILE + "@@ f\n from a.$m import b\n+b\n", 7, "only a part of 'a.$m'"),
        (FILE + "@@ f\n+a\n", 7, "the before view is empty"),
        (FILE + "@@ f\n ...\n+a\n", 7, "the before view matches everywhere"),
        (FILE + "@@ f\n-a\n", 7, "the after view is empty"),
        (FILE + "@@ f\n # only words\n+a\n", 7, "the before view is empty"),
        (FILE + "@@ f\n a\n+b c\n", 8, "the after view is not Python"),
        (FILE + "@@ f\n-if a:\n b\n", 8, "the before view is not Python"),
        (FILE + "@@ f\n else:\n     a\n+    b\n", 7, "the before view is not Python"),
        (FILE + "@@ f\n     a\n b\n+c\n", 8, "ends its block early"),
        (FILE + "@@ f\n     a\n+else:\n+    c\n", 9, "ends its block early"),
        (FILE + "@@ f\n a\n+\n b\n", 6, "changes only blank lines or indentation"),
        (FILE + "@@ f\n a\n ... without )\n+b\n", 8, "not an expression"),
        (FILE + "@@ f\n a\n+b\0\n", 7, "the after view is not Python"),
    ],
)
def test_patch(text: str, line: int, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        compiled(text)
    assert message in caught.value.message
    assert caught.value.where == f"p.spatch:{line}"
    assert caught.value.hint


@pytest.mark.parametrize("code", ["-" * 3000 + "b", "(" * 900 + ")" * 900, "a.b" * 900])
def test_patch_beyond_measure(code: str) -> None:
    """What is too deep for one interpreter is not for another."""
    error = None
    try:
        compiled(FILE + f"@@ f\n a\n+{code}\n")
    except PatchError as caught:
        error = caught
    assert error is None or (error.where and error.hint)


VALID = FILE + "@@ f\n-a\n+b\n"


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (b"def f(:\n    pass\n", "t.py:1:7", "not Python for this interpreter"),
        (b"x = 1\nif x:\ny = 2\n", "t.py:3:1", "not Python for this interpreter"),
        (b"x = '\xe9'\n", "t.py:1", "not utf-8: byte 0xe9"),
        (b"a\nb\nc\nx = '\xe9'\n", "t.py:4", "not utf-8: byte 0xe9"),
        (b"# coding: nonsense\n", "t.py:1", "unknown encoding: nonsense"),
        (b"# coding: ascii\nx = '\xe9'\n", "t.py:2", "not ascii: byte 0xe9"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "t.py:1", "encoding problem"),
        (b"# coding: hex\nx = 1\n", "t.py", "the codec hex does not decode"),
        (b"# coding: utf-7\nx = '+AGE-'\n", "t.py", "does not give back the bytes"),
    ],
)
def test_target(data: bytes, where: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        CompiledFile("p", parse_patch("p", VALID).files[0]).evaluate(
            Source.from_bytes("t.py", data)
        )
    assert message in caught.value.message
    assert caught.value.where == where
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "a = 'x\0y'\n",
        "def f():\n    return " + "-" * 100_000 + "1\n",
        "def f():\n    return " + "(" * 5000 + ")" * 5000 + "\n",
        "def f():\n    return x" + ".y" * 20_000 + "\n",
        "def f():\n    return " + "1 + " * 20_000 + "1\n",
        "if a: pass\n" + "elif b: pass\n" * 20_000,
    ],
    ids=["nul", "unary", "parentheses", "attributes", "sum", "elif"],
)
def test_target_beyond_measure(text: str) -> None:
    """Where the interpreter gives up, so do we, with an error of our own."""
    file = CompiledFile("p", parse_patch("p", VALID.replace("@@ f", "@@ **")).files[0])
    outcome, error = None, None
    try:
        outcome = file.evaluate(Source("t.py", text))
    except SourceError as caught:
        error = caught
    assert (error and error.where and error.hint) or (outcome and outcome.text == text)


def test_character_that_the_encoding_lacks() -> None:
    source = Source("t.py", "a = '\u20ac'\n", encoding="latin-1")
    with pytest.raises(SourceError, match="the patch writes '\u20ac'") as caught:
        source.to_bytes()
    assert caught.value.where == "t.py"
