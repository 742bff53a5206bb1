"""How forks may write what the hardening series changes, and what is true of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hardening import (
    EXECUTOR,
    QUEUE,
    miniature,
    sends_once,
    suppresses_context,
    thread_answers,
)
from vllm_graft import MemoryTree, Series, Tree, load_series, status
from vllm_graft.overlay import OverlayTree
from vllm_graft.planner import make_plan
from vllm_graft.results import DONE

SERIES = load_series("async-output-hardening")


class Variant(NamedTuple):
    """One way to write a method: the name, the verdicts of its patches, the code."""

    name: str
    verdicts: list[str]
    body: str


def read_variants(name: str) -> list[Variant]:
    text = (Path(__file__).parent / "variants" / f"{name}.txt").read_text()
    found = []
    for section in text.split("\n=== ")[1:]:
        head, _, body = section.partition("\n")
        verdicts, _, title = head.partition(": ")
        found.append(Variant(title, verdicts.split(), body))
    return found


ENQUEUE, THREAD = map(read_variants, ("hardening", "hardening-thread"))


def some(patches: slice) -> Series:
    return SERIES._replace(patches=SERIES.patches[patches])


def grafted(
    tree: Tree, series: Series = SERIES, *, reverse: bool = False
) -> OverlayTree:
    return OverlayTree(tree, make_plan(tree, [series], reverse=reverse).changes)


def texts(tree: Tree) -> list[bytes | None]:
    return [tree.read(EXECUTOR), tree.read(QUEUE)]


def check(
    tree: Tree, series: Series, verdicts: list[str], works: Callable[[Tree], bool]
) -> None:
    """The verdicts are the expected ones, and what they promise is true."""
    found = status(tree, [series]).series[0].patches
    assert [p.verdict.value for p in found] == verdicts
    if set(verdicts) & {"conflict", "ambiguous"}:
        assert all(p.ok or any(h.reason for h in p.hunks) for p in found)
        return
    done = all(p.verdict in DONE for p in found)
    assert works(tree) is done
    hardened = grafted(tree, series)
    assert works(hardened)
    assert texts(grafted(hardened, series)) == texts(hardened)
    if done:
        return
    reverted = grafted(hardened, series, reverse=True)
    assert not works(reverted)
    assert texts(grafted(reverted, series)) == texts(hardened)


@pytest.mark.parametrize("case", ENQUEUE, ids=lambda v: v.name)
def test_enqueue_output(case: Variant) -> None:
    check(miniature(enqueue=case.body), some(slice(3)), case.verdicts, sends_once)


@pytest.mark.parametrize("case", THREAD, ids=lambda v: v.name)
def test_the_thread(case: Variant) -> None:
    # What it sends is hardened; the variant is about the thread alone.
    tree = grafted(miniature(thread=case.body), some(slice(3)))
    check(tree, some(slice(3, 4)), case.verdicts, thread_answers)


def works(tree: Tree) -> bool:
    return sends_once(tree) and thread_answers(tree) and suppresses_context(tree)


@pytest.fixture(scope="module")
def hardened() -> Tree:
    return grafted(miniature())


def test_the_whole_series_works(hardened: Tree) -> None:
    assert works(hardened)


#: Each edit undone, in the text of the series: what it is, its text, another one.
MUTATIONS = {
    "an-output-that-cannot-be-resolved": (
        'except Exception as e:\n                logger.exception("An async',
        'except () as e:\n                logger.exception("An async',
    ),
    "the-cause": ("self.describe_error(given)", "str(given)"),
    "the-context": ("link.__cause__ or context", "link.__cause__"),
    "what-an-error-hides": ("None if link.__suppress_context__ else ", ""),
    "one-way-to-send": ("self.send_response(queue, reply)", "queue.enqueue(reply)"),
    "what-was-sent": ("if moved_on or ", "if "),
    "a-remote-reader": ("response_mq.n_remote_reader or ", ""),
    "a-failure-that-cannot-be-sent": (" or response[0] == failure", ""),
    "an-end-that-nothing-holds-up": ("raise SystemExit(1)", "raise OSError"),
    "a-failure-instead": (
        "self.send_response(response_mq, (failure, self.describe_error(e)))",
        "return",
    ),
    "a-device-that-cannot-be-set": (
        'except Exception as e:\n            logger.exception("The async',
        'except () as e:\n            logger.exception("The async',
    ),
    "what-needs-no-device": (
        "device_error is not None and isinstance(given, AsyncModelRunnerOutput)",
        "device_error is not None",
    ),
    "the-error-of-the-device": ("given = device_error", "pass"),
    "whatever-ends-the-thread": ("except BaseException:", "except Exception:"),
    "the-end-of-the-worker": ("os.kill(os.getpid(), signal.SIGTERM)", "pass"),
    "the-end-of-the-thread": ("signal.SIGTERM)\n                return", "None)"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_no_edit_of_the_worker_is_idle(hardened: Tree, name: str) -> None:
    old, new = MUTATIONS[name]
    worker = (hardened.read(EXECUTOR) or b"").decode()
    assert worker.count(old) == 1
    files = {EXECUTOR: worker.replace(old, new).encode(), QUEUE: hardened.read(QUEUE)}
    assert not works(MemoryTree({p: t for p, t in files.items() if t}, "0.0.0"))


def test_the_edit_of_the_queue_is_not_idle(hardened: Tree) -> None:
    files = {EXECUTOR: hardened.read(EXECUTOR), QUEUE: miniature().read(QUEUE)}
    assert not works(MemoryTree({p: t for p, t in files.items() if t}, "0.0.0"))
