"""The import-time graft: changed source, in memory, under the original file name.

``vllm-graft run`` plans once and leaves a *bundle*: a manifest with the digests of
every changed file before and after, and the new contents. Each process installs
:class:`Finder` at start-up. It knows nothing of patches, so that it costs next to
nothing, and it stands on the standard library alone, so that it works where the tool
is not installed.

Before the first changed module runs, every file of the bundle is compared with its
digest: all are grafted, or the import fails. No bytecode of changed source is
written, and :mod:`linecache` is given the changed lines, so that tracebacks,
``inspect.getsource``, torch and Triton see what runs.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

# `typing`, `hashlib` and `linecache` would double what this costs each process.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import ExceptHookArgs
    from types import CodeType, ModuleType, TracebackType
    from typing import Any

VARIABLE = "VLLM_GRAFT_HOOK"


class GraftImportError(ImportError):
    """The graft cannot be made in this process; nothing was half made."""


class Bundle:
    """Planned changes, as ``vllm-graft run`` left them.

    Args:
        folder: The folder with ``manifest.json`` and the new contents.

    Raises:
        GraftImportError: It is incomplete or was changed.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            with open(os.path.join(folder, "manifest.json"), "rb") as stream:  # noqa: PTH118, PTH123
                manifest: dict[str, Any] = json.load(stream)
            self.root: str = manifest["root"]
            self.files: dict[str, dict[str, str]] = manifest["files"]
        except (OSError, ValueError, KeyError) as error:
            raise GraftImportError(
                f"{folder}: the graft's bundle cannot be read ({error}); "
                "start the command with 'vllm-graft run' again"
            ) from error
        self._contents: dict[str, bytes] = {}

    def contents(self, module: str) -> bytes:
        """The changed source of a module; checks all files the first time."""
        if not self._contents:
            try:
                self._contents = {name: self._load(name) for name in self.files}
            except OSError as error:
                raise GraftImportError(
                    f"{error.filename} cannot be read ({error.strerror}); "
                    "start the command with 'vllm-graft run' again"
                ) from error
        return self._contents[module]

    def _load(self, module: str) -> bytes:
        from hashlib import sha256  # noqa: PLC0415

        entry = self.files[module]
        path = os.path.join(self.root, entry["path"])  # noqa: PTH118
        with open(path, "rb") as stream:  # noqa: PTH123
            before = sha256(stream.read()).hexdigest()
        if before != entry["before"]:
            raise GraftImportError(
                f"{path} has changed since the graft was planned; "
                "start the command with 'vllm-graft run' again"
            )
        content = os.path.join(self.folder, entry["after"])  # noqa: PTH118
        with open(content, "rb") as stream:  # noqa: PTH123
            data = stream.read()
        if sha256(data).hexdigest() != entry["after"]:
            raise GraftImportError(
                f"{content} is damaged; delete {self.folder} and start again"
            )
        return data


class Loader(SourceFileLoader):
    """Loads one module from changed source.

    Args:
        name: The module's name.
        path: The original file, which stays the module's ``__file__``.
        source: The changed source.
    """

    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self._source = source

    def get_data(self, path: str | bytes) -> bytes:
        """The changed source for the module's own path."""
        return self._source if path == self.path else super().get_data(str(path))

    def get_code(self, fullname: str) -> CodeType:
        """Compiles the changed source; neither reads nor writes bytecode.

        Whatever runs the code, also ``python -m``, comes here first, so that this is
        where :mod:`linecache` learns the lines.
        """
        import linecache  # noqa: PLC0415

        text = self.get_source(fullname) or ""
        # Not `splitlines`, which also ends lines where Python has none.
        lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
        # No modification time: linecache.checkcache() then leaves the entry alone.
        linecache.cache[self.path] = (len(text), None, lines, self.path)
        show_changed_source()
        return self.source_to_code(self._source, self.path)


class Finder:
    """Finds the changed modules; every other import is none of its business."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See :class:`importlib.abc.MetaPathFinder`."""
        entry = self.bundle.files.get(name)
        if entry is None:
            return None
        found = PathFinder.find_spec(name, path, target)
        wanted = os.path.join(self.bundle.root, entry["path"])  # noqa: PTH118
        if found is None or found.origin is None:
            return None  # the import fails, with Python's own message
        if os.path.realpath(found.origin) != os.path.realpath(wanted):
            raise GraftImportError(
                f"{name} is imported from {found.origin}, but the graft was planned "
                f"for {wanted}; name the tree with --tree, or correct PYTHONPATH",
                name=name,
            )
        loader = Loader(name, found.origin, self.bundle.contents(name))
        spec = ModuleSpec(name, loader, origin=found.origin)
        spec.has_location = True
        return spec


def show_changed_source() -> None:
    """Makes uncaught exceptions show lines by way of :mod:`linecache`.

    Python before 3.13 would read the files instead, in which other lines stand.
    """
    import threading  # noqa: PLC0415 - vLLM has imported it by now

    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _print_of_thread


def _print(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    import traceback  # noqa: PLC0415 - seldom needed

    traceback.print_exception(kind, error, trace)


def _print_of_thread(args: ExceptHookArgs) -> None:
    if args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread else "unknown"
    sys.stderr.write(f"Exception in thread {name}:\n")
    if args.exc_value is not None:
        _print(args.exc_type, args.exc_value, args.exc_traceback)


def install(folder: str) -> Finder:
    """Grafts every later import of a changed module in this process.

    Args:
        folder: The bundle.

    Raises:
        GraftImportError: One of the modules is imported already, or the bundle
            cannot be read.
    """
    bundle = Bundle(folder)
    early = [name for name in bundle.files if name in sys.modules]
    if early:
        raise GraftImportError(
            f"too late to graft: {', '.join(early)} was imported already; "
            "install the graft before anything imports vllm"
        )
    finder = Finder(bundle)
    sys.meta_path.insert(0, finder)
    return finder
