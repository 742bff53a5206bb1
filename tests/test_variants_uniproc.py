"""How forks may write UniProcExecutor's blocking path, and what is true of each."""

from typing import Any

import pytest

from drifted import Miniature, Output, Variant, read_variants

FRAME = """
class UniProcExecutor:
    def __init__(self, worker):
        self.driver_worker = worker
        self.default_timeout = 5
        self._lock = Lock()

    def collective_rpc(
        self, method, timeout=None, args=(), kwargs=None,
        non_block=False, single_value=False,
    ):
        if kwargs is None:
            kwargs = {}

        BODY

        try:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, AsyncModelRunnerOutput):
                return Future(result.get_output, single_value)
        except Exception as e:
            return Future(e)
        return Future(result if single_value else [result])


class Future:
    def __init__(self, *what):
        self.what = what


class Lock:
    def __enter__(self): ...
    def __exit__(self, *error): ...


def run_method(worker, method, args, kwargs):
    return getattr(worker, method)(*args, **kwargs)


def resolve(output):
    return output


def log(*words): ...
"""


class Worker:
    def __init__(self, result: object) -> None:
        self.result = result

    def step(self) -> object:
        return self.result


def works(space: dict[str, Any]) -> bool:
    """Blocking calls hand over resolved outputs, and leave others alone."""

    def call(result: object, **options: bool) -> Any:
        return space["UniProcExecutor"](Worker(result)).collective_rpc(
            "step", **options
        )

    once = Output()
    return (
        call(Output()) == ["tokens"]
        and call(Output(), single_value=True) == "tokens"
        and call("plain") == ["plain"]
        and call(None, single_value=True) is None
        and call(once) == ["tokens"]
        and once.resolved == 1
        and isinstance(call(Output(), non_block=True), space["Future"])
    )


MINIATURE = Miniature("0001-uniproc-executor.spatch", FRAME, works)

VARIANTS = read_variants("uniproc")


@pytest.mark.parametrize("case", VARIANTS, ids=lambda v: v.name)
def test_variant(case: Variant) -> None:
    MINIATURE.check(case)


def test_the_first_releases() -> None:
    """Before single values: the blocking path returns a list, always."""
    source = MINIATURE.source(
        "if not non_block:\n"
        "    return [run_method(self.driver_worker, method, args, kwargs)]"
    )
    after = source.with_text(MINIATURE.forward.evaluate(source).text)
    assert "        if isinstance(result, AsyncModelRunnerOutput):\n" in after.text
    space: dict[str, Any] = {"AsyncModelRunnerOutput": Output}
    exec(compile(after.text, "fork.py", "exec"), space)
    assert space["UniProcExecutor"](Worker(Output())).collective_rpc("step") == [
        "tokens"
    ]
