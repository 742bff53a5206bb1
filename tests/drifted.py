"""Miniatures of the three files of the series, and what they must do once patched.

Each stands for a fork: the same classes and methods as vLLM's, cut down to the lines
that matter, with one part (``BODY``) written in many ways. They run on stubs, so a
verdict can be held against behaviour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vllm_graft.engine.evaluate import CompiledFile, FileOutcome
from vllm_graft.engine.parser import parse_patch
from vllm_graft.engine.source import Source
from vllm_graft.results import DONE, Verdict

SERIES = Path(__file__).parents[1] / "patches" / "mrv2-async-output"


class Variant(NamedTuple):
    """One way to write the part that matters.

    Args:
        name: The test's name.
        verdict: What the patch must say of it.
        body: The code.
    """

    name: str
    verdict: Verdict
    body: str


def read_variants(name: str) -> list[Variant]:
    """The variants of ``variants/NAME.txt``: ``=== VERDICT: NAME``, then the code."""
    text = (Path(__file__).parent / "variants" / f"{name}.txt").read_text()
    variants = []
    for section in text.split("\n=== ")[1:]:
        head, _, body = section.partition("\n")
        verdict, _, title = head.partition(": ")
        code = "\n".join(line for line in body.split("\n") if line[:2] != "##")
        variants.append(Variant(title, Verdict(verdict), code.strip("\n")))
    return variants


class Miniature:
    """A file of the series in miniature.

    Args:
        patch: The patch file's name.
        frame: The source around ``BODY``, which stands on a line of its own.
        works: Whether a namespace made of the source behaves as it should once
            patched; runs it.
    """

    def __init__(
        self, patch: str, frame: str, works: Callable[[dict[str, Any]], bool]
    ) -> None:
        parsed = parse_patch(patch, (SERIES / patch).read_text())
        (file,) = parsed.files
        (back,) = parsed.reversed().files
        self.forward = CompiledFile(patch, file)
        self.backward = CompiledFile(patch, back, reverse=True)
        self._frame = textwrap.dedent(frame).lstrip("\n")
        self._works = works

    def source(self, body: str) -> Source:
        place = next(x for x in self._frame.split("\n") if x.strip() == "BODY")
        code = textwrap.indent(body, place[: -len("BODY")])
        return Source("fork.py", self._frame.replace(place, code))

    def works(self, source: Source) -> bool:
        space: dict[str, Any] = {"AsyncModelRunnerOutput": Output}
        exec(compile(source.text, source.path, "exec", dont_inherit=True), space)
        return self._works(space)

    def check(self, case: Variant) -> FileOutcome:
        """Asserts that the verdict is the expected one, and that it is true."""
        source = self.source(case.body)
        outcome = self.forward.evaluate(source)
        assert outcome.verdict is case.verdict, outcome
        if outcome.verdict in DONE:
            assert self.works(source), "a verdict of success on work that is not done"
        elif outcome.verdict is Verdict.APPLIES:
            assert not self.works(source), "there was nothing to do"
            self._check_result(source.with_text(outcome.text))
        elif outcome.verdict is Verdict.PARTIAL:
            self._check_result(source.with_text(outcome.text), whole=False)
        else:
            assert outcome.text == source.text
            assert any(hunk.reason for hunk in outcome.hunks)
        return outcome

    def _check_result(self, after: Source, *, whole: bool = True) -> None:
        assert self.works(after), after.text
        again = self.forward.evaluate(after)
        assert again.verdict in DONE
        assert again.text == after.text
        if not whole:
            return
        back = self.backward.evaluate(after)
        assert back.verdict is Verdict.APPLIES
        reverted = after.with_text(back.text)
        assert not self.works(reverted)
        assert self.forward.evaluate(reverted).text == after.text


class Output:
    """An AsyncModelRunnerOutput to be resolved; counts how often it is."""

    def __init__(
        self, value: object = "tokens", error: Exception | None = None
    ) -> None:
        self.value = value
        self.error = error
        self.resolved = 0

    def get_output(self, timeout: float | None = None) -> object:
        self.resolved += 1
        if self.error is not None:
            raise self.error
        return self.value
