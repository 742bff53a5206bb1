"""Start-up code that travels to every Python process by ``PYTHONPATH``.

Environment variables say what to do:

``VLLM_GRAFT_HOOK``
    The import-time graft: handed to ``vllm_graft.hook.install``.
``VLLM_GRAFT_CPU``
    ``1`` makes Model Runner V2 run without a GPU: ``vllm_graft.cpu.install``.

Both only register import hooks; nothing heavy is imported here. The package is
loaded from the folder above this one, without putting that folder (it may be a
``site-packages`` full of the tool's own dependencies) on ``sys.path``. Any other
``sitecustomize`` further down ``sys.path`` runs afterwards, as if this one were
not there. A failure ends the process: to go on without what was asked for would
be a silent error, and ``site`` swallows exceptions.
"""

# ruff: noqa: INP001, PLC0415, UP036 - no package, cheap, and read by any Python

from __future__ import annotations

import os
import sys


def _load_package() -> None:
    """Import ``vllm_graft`` from beside this file, whatever ``sys.path`` has."""
    # By hand: `importlib.util` imports much, in every process there is.
    from importlib.machinery import ModuleSpec, SourceFileLoader

    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    origin = os.path.join(folder, "__init__.py")  # noqa: PTH118
    loader = SourceFileLoader("vllm_graft", origin)
    spec = ModuleSpec("vllm_graft", loader, origin=origin, is_package=True)
    spec.has_location = True
    module = type(sys)("vllm_graft")
    module.__spec__ = spec
    module.__file__ = origin
    module.__path__ = spec.submodule_search_locations = [folder]
    module.__package__ = "vllm_graft"
    module.__loader__ = loader
    sys.modules["vllm_graft"] = module
    loader.exec_module(module)


def _install() -> None:
    hook = os.environ.get("VLLM_GRAFT_HOOK")
    cpu = os.environ.get("VLLM_GRAFT_CPU") == "1"
    if not (hook or cpu):
        return
    _load_package()
    if hook:
        # First, so that it sees every import of a patched module.
        import vllm_graft.hook

        vllm_graft.hook.install(hook)
    if cpu:
        import vllm_graft.cpu

        vllm_graft.cpu.install()


def _chain() -> None:
    """Run the ``sitecustomize`` that this one shadows, if there is one."""
    from importlib.machinery import PathFinder

    here = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120
    path = [entry for entry in sys.path if os.path.realpath(entry) != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# Tools that an engine starts may be older Pythons; they have no part in this.
if sys.version_info >= (3, 10):
    try:
        _install()
    except Exception:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        sys.stderr.write("vllm-graft: start-up failed, ending the process\n")
        sys.stderr.flush()
        # Not SystemExit: at this stage Python would report it as its own failure.
        os._exit(70)
    _chain()
