"""How forks may write UniProcExecutor's blocking path, and what is true of each."""

from typing import Any

import pytest

from miniatures import Miniature, Output, Variant, variant

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

VARIANTS = [
    variant(
        "upstream",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
    """,
    ),
    variant(
        "renamed",
        "applies",
        """
        if not non_block:
            out = run_method(self.driver_worker, method, args, kwargs)
            return out if single_value else [out]
    """,
    ),
    variant(
        "annotated",
        "applies",
        """
        if not non_block:
            result: object = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
    """,
    ),
    variant(
        "logging between",
        "applies",
        """
        if not non_block:
            log("calling", method)
            result = run_method(self.driver_worker, method, args, kwargs)
            log("called", method)  # for the record
            return result if single_value else [result]
    """,
    ),
    variant(
        "test turned round",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            return [result] if not single_value else result
    """,
    ),
    variant(
        "early return",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if single_value:
                return result
            return [result]
    """,
    ),
    variant(
        "if and else",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if single_value:
                return result
            else:
                return [result]
    """,
    ),
    variant(
        "early return of the list",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if not single_value:
                return [result]
            return result
    """,
    ),
    variant(
        "under a lock",
        "applies",
        """
        if not non_block:
            with self._lock:
                result = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
    """,
    ),
    variant(
        "all under a lock",
        "applies",
        """
        if not non_block:
            with self._lock:
                result = run_method(self.driver_worker, method, args, kwargs)
                return result if single_value else [result]
    """,
    ),
    variant(
        "keyword arguments",
        "applies",
        """
        if not non_block:
            result = run_method(
                self.driver_worker, method, args=args, kwargs=kwargs)
            return result if single_value else [result]
    """,
    ),
    variant(
        "compared to False",
        "applies",
        """
        if non_block is False:
            result = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
    """,
    ),
    variant(
        "odd formatting",
        "applies",
        """
        if (not non_block):  # blocking

            result = \\
                run_method(self.driver_worker, # the worker
                           method, args, kwargs,)

            # one or many
            return (result if single_value
                    else [result]);
    """,
    ),
    variant(
        "on one line",
        "applies",
        """
        if not non_block: result = run_method(self.driver_worker, method, args, kwargs); return result if single_value else [result]
    """,
    ),
    variant(
        "resolved already",
        "applied",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, AsyncModelRunnerOutput):
                result = result.get_output()
            return result if single_value else [result]
    """,
    ),
    variant(
        "resolved already, with a log line",
        "applied",
        """
        if not non_block:
            out = run_method(self.driver_worker, method, args, kwargs)
            log("called")
            if isinstance(out, AsyncModelRunnerOutput):
                out = out.get_output()
            return out if single_value else [out]
    """,
    ),
    variant(
        "resolved with a timeout",
        "superseded",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, AsyncModelRunnerOutput):
                log("resolving")
                result = result.get_output(timeout=self.default_timeout)
            return result if single_value else [result]
    """,
    ),
    variant(
        "resolved under a lock",
        "applied",
        """
        if not non_block:
            with self._lock:
                result = run_method(self.driver_worker, method, args, kwargs)
                if isinstance(result, AsyncModelRunnerOutput):
                    result = result.get_output()
            return result if single_value else [result]
    """,
    ),
    # Nothing below is done, and much of it looks as if it were.
    variant(
        "resolved elsewhere only",
        "applies",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            return result if single_value else [result]
        other = None
        if isinstance(other, AsyncModelRunnerOutput):
            other = other.get_output()
    """,
    ),
    variant(
        "resolved on one branch only",
        "conflict",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if single_value:
                if isinstance(result, AsyncModelRunnerOutput):
                    result = result.get_output()
                return result
            return [result]
    """,
    ),
    variant(
        "resolved, and thrown away",
        "conflict",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, AsyncModelRunnerOutput):
                result.get_output()
            return result if single_value else [result]
    """,
    ),
    variant(
        "resolved too late",
        "conflict",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            answer = result if single_value else [result]
            if isinstance(result, AsyncModelRunnerOutput):
                result = result.get_output()
            return answer
    """,
    ),
    variant(
        "another class resolved",
        "conflict",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, Future):
                result = result.get_output()
            return result if single_value else [result]
    """,
    ),
    variant(
        "a helper that does nothing",
        "conflict",
        """
        if not non_block:
            result = resolve(run_method(self.driver_worker, method, args, kwargs))
            return result if single_value else [result]
    """,
    ),
    variant(
        "non-blocking path resolved",
        "conflict",
        """
        if non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            if isinstance(result, AsyncModelRunnerOutput):
                result = result.get_output()
            return Future(result)
        return self.blocking(method)
    """,
    ),
    variant(
        "in code that never runs",
        "conflict",
        """
        if not non_block:
            result = run_method(self.driver_worker, method, args, kwargs)
            return (result,)[0] if single_value else [result]
            if isinstance(result, AsyncModelRunnerOutput):
                result = result.get_output()
            return result
    """,
    ),
]


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
