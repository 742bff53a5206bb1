"""A release of vLLM as a git repository with one commit, ready to be patched."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_graft import git
from vllm_graft.errors import FetchError
from vllm_graft.index.archive import unpack
from vllm_graft.index.client import Index
from vllm_graft.index.download import download

if TYPE_CHECKING:
    from vllm_graft.index.download import Progress
    from vllm_graft.index.releases import Release, ReleaseFile

#: Compiled libraries of a wheel: hundreds of megabytes that no patch touches.
_COMPILED = ("*.so", "*.so.*", "*.pyd", "*.dylib")


@dataclass(frozen=True)
class Fetched:
    """A release that was made a repository. It can be used as a path.

    Attributes:
        path: The repository.
        version: The release.
        filename: The file of the release that it was made from.
        kind: ``sdist`` or ``wheel``.
        sha256: The digest of that file, as verified.
        commit: The one commit. It depends on that file alone.
        notes: What the user should know.
    """

    path: Path
    version: str
    filename: str
    kind: str
    sha256: str
    commit: str
    notes: tuple[str, ...]

    def __fspath__(self) -> str:
        return str(self.path)


def fetch(
    version: str,
    dest: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
    index: Index | None = None,
) -> Fetched:
    """Make a git repository of a release.

    It has the branch ``main`` with one commit of every file of the source
    distribution, those that its own .gitignore names included, and the tag
    ``v<version>``. Author, committer and date of the commit are fixed, so that it
    has the same id on every machine.

    A release without a source distribution is made from its wheel. Compiled
    libraries then lie in the folder, but are not committed.

    Args:
        version: The release, as in ``0.23.0``.
        dest: The folder to make; ``vllm-<version>`` if it is left out. It must
            not exist, or be empty.
        progress: Called with the bytes that arrived and those expected.
        index: The package index; by default the one that pip uses.

    Raises:
        FetchError: The release cannot be read, does not match its digest, or
            ``dest`` is not empty. Nothing is at ``dest`` then.
        GitError: git cannot make the repository.
    """
    if index is None:
        with Index() as opened:
            return fetch(version, dest, progress=progress, index=opened)
    target = Path(f"vllm-{version}" if dest is None else dest).absolute()
    _check_free(target)
    release = index.release(version)
    file, notes = _choose(release)
    archive = download(index.session, file, progress)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=f".{target.name}-"
        ) as scratch:
            # A folder inside, as mkdtemp's own is closed to others.
            tree = Path(scratch, "tree")
            tree.mkdir()
            newest = unpack(archive, tree)
            commit = _commit(tree, release.version, file, newest)
            os.replace(tree, target)  # noqa: PTH105 - onto an empty folder too
    except OSError as error:
        raise FetchError(
            f"cannot make the folder: {error.strerror or error}",
            where=str(target),
            hint="Choose another destination.",
        ) from error
    return Fetched(
        path=target,
        version=release.version,
        filename=file.filename,
        kind=file.kind,
        sha256=str(file.sha256),
        commit=commit,
        notes=(*index.notes, *notes),
    )


def _check_free(target: Path) -> None:
    taken = target.is_symlink() or target.is_file()
    if taken or (target.is_dir() and any(target.iterdir())):
        raise FetchError(
            "the destination exists and is not an empty folder",
            where=str(target),
            hint="Name another one, or remove it first.",
        )


def _choose(release: Release) -> tuple[ReleaseFile, list[str]]:
    """The file to make the repository from, and what to tell about it."""
    notes = []
    file = release.sdist
    if file is None:
        file = release.wheel
        notes.append(
            f"vLLM {release.version} has no source distribution: the repository is "
            "made from a wheel, without tests and build files; its compiled "
            "libraries are not committed"
        )
    if file is None:
        raise FetchError(
            f"vLLM {release.version} has neither source distribution nor wheel",
            hint="Choose another release.",
        )
    if file.yanked:
        notes.append(f"{file.filename} was yanked from the package index")
    return file, notes


def _commit(tree: Path, version: str, file: ReleaseFile, when: int) -> str:
    """Commit all of ``tree``; return the commit's id."""
    env = _private_environment(tree / ".git", when)

    def run(*args: str) -> str:
        # git's upkeep would go on in the background while the tree is moved.
        upkeep = ("-c", "maintenance.auto=false")
        return git.run(*git.PRIVATE, *upkeep, *args, cwd=tree, env=env)

    run("init", "--quiet", "--template=", "--initial-branch=main")
    info = tree / ".git" / "info"
    info.mkdir(exist_ok=True)
    # Every byte as it is, whatever the tree's own .gitattributes asks for.
    (info / "attributes").write_text("* -text -filter -ident -working-tree-encoding\n")
    add = ["add", "--all", "--force", "--", "."]
    if file.kind == "wheel":
        (info / "exclude").write_text("".join(f"{glob}\n" for glob in _COMPILED))
        add += [f":(exclude,glob)**/{glob}" for glob in _COMPILED]
    run(*add)
    source = f"Made from {file.filename}\nsha256:{file.sha256}"
    run("commit", "--quiet", "--message", f"vLLM {version}", "--message", source)
    run("tag", "--no-sign", f"v{version}")
    return run("rev-parse", "HEAD")


def _private_environment(folder: Path, when: int) -> dict[str, str]:
    """What keeps this user, machine and calling git out of the repository.

    Args:
        folder: The repository's own folder, ``.git``.
        when: The date of the commit.
    """
    return {
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "vllm-graft"),
        **dict.fromkeys(
            ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "vllm-graft@localhost"
        ),
        **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{when} +0000"),
        **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_DEFAULT_HASH": "sha1",
        # git sets these for its hooks, to the repository that it works on.
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(folder.parent),
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    }
