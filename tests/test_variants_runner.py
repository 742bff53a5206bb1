"""How forks may write Model Runner V2's last lines, and what is true of each."""

from typing import Any

import pytest

from drifted import Miniature, Output, Variant, read_variants

FRAME = """
def record_function(name):
    return open("/dev/null")


def log(*words): ...


def finish(output):
    return output.get_output()


class Runner:
    pass


class GPUModelRunner(Runner):
    def __init__(self, vllm_config):
        self.vllm_config = vllm_config
        self.scheduler_config = vllm_config.scheduler_config
        self.use_async_scheduling = self.scheduler_config.async_scheduling
        self.output_copy_stream = "stream"
        self.is_last_rank = True

    def sample_tokens(self, values):
        if not self.is_last_rank:
            return None
        BODY

    def execute_model(self, values):
        return None
"""


def works(space: dict[str, Any]) -> bool:
    """The last rank hands over the output unresolved, in both scheduling modes."""

    class AsyncOutput(Output):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__()

    space["AsyncOutput"] = space["AsyncPoolingOutput"] = AsyncOutput

    class Config:
        def __init__(self, flag: bool) -> None:
            self.scheduler_config = self
            self.async_scheduling = flag

    def outputs(flag: bool) -> list[Any]:
        runner = space["GPUModelRunner"](Config(flag))
        methods = [
            getattr(runner, "sample_tokens", None),
            getattr(runner, "pool", None),
        ]
        methods.append(getattr(runner, "postprocess", None))
        return [method("x") for method in methods if method]

    return all(
        isinstance(output, Output) and output.resolved == 0
        for flag in (True, False)
        for output in outputs(flag)
    )


MINIATURE = Miniature("0003-gpu-model-runner.spatch", FRAME, works)
FIRST_DAYS = Miniature(
    "0003-gpu-model-runner.spatch",
    FRAME.replace("sample_tokens", "postprocess"),
    works,
)
POOLING = Miniature(
    "0003-gpu-model-runner.spatch",
    FRAME.replace(
        "BODY",
        "out = AsyncOutput(values)\n"
        "        if self.use_async_scheduling:\n"
        "            return out\n"
        "        return out.get_output()\n\n"
        "    def pool(self, values):\n"
        "        BODY",
    ),
    works,
)
VARIANTS = read_variants("runner")


@pytest.mark.parametrize("case", VARIANTS, ids=lambda v: v.name)
def test_sampling(case: Variant) -> None:
    MINIATURE.check(case)


@pytest.mark.parametrize("case", VARIANTS, ids=lambda v: v.name)
def test_first_days(case: Variant) -> None:
    """In November 2025 the branch stood in ``postprocess``."""
    FIRST_DAYS.check(case)


@pytest.mark.parametrize(
    "case", [v for v in VARIANTS if v.verdict == "applies"], ids=lambda v: v.name
)
def test_pooling(case: Variant) -> None:
    body = case.body.replace("AsyncOutput", "AsyncPoolingOutput")
    POOLING.check(case._replace(body=body))


def test_the_flag_goes_where_nothing_else_reads_it() -> None:
    (case,) = [v for v in VARIANTS if v.name == "upstream"]
    assert "use_async_scheduling" not in MINIATURE.check(case).text


def test_the_flag_stays_where_something_else_reads_it() -> None:
    (case,) = [v for v in VARIANTS if v.name == "flag read elsewhere"]
    outcome = MINIATURE.check(case)
    assert "self.use_async_scheduling = self.scheduler_config" in outcome.text
    assert "guard" in outcome.hunks[0].reason
