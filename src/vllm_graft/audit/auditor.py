"""Audits folders with the rules of some series."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vllm_graft.audit.context import Context, Hit, Kind
from vllm_graft.audit.files import SourceFile, home, python_files
from vllm_graft.audit.findings import Finding, Note, Report, fingerprinted, region
from vllm_graft.audit.ignores import MARK, OWN_RULES, anchor, apply_ignores
from vllm_graft.audit.inference import Types
from vllm_graft.audit.kinds import make_kind
from vllm_graft.audit.modules import Module
from vllm_graft.audit.project import Project
from vllm_graft.audit.rules import Rule, known_ids
from vllm_graft.version import vllm_version

#: Told after each file: how many are done, of how many, and its name.
Progress = Callable[[int, int, str], None]


def audit(
    paths: Sequence[Path],
    rules: Sequence[Rule],
    *,
    vllm: Path | None = None,
    installed: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Looks for code that a series breaks; imports and changes nothing.

    Args:
        paths: Folders and files.
        rules: The rules of the series.
        vllm: The folder with the vLLM that the code builds on; by default one of
            ``paths`` that holds it or lies beside it.
        installed: The same for the case that there is none; without it, names still
            tell what is meant, but not what vLLM's own classes inherit.
        progress: Told of every file.

    Raises:
        GraftError: A path does not exist.
    """
    notes: list[Note] = []
    files = list(_all_files(paths, notes))
    base = vllm or next(filter(_holds_vllm, _roots(files, paths)), installed)
    report = Report([*rules, *OWN_RULES], notes=notes, files=len(files), vllm=base)
    report.vllm_version = vllm_version(base) if base else None
    if base is None:
        notes.append(
            Note(
                ", ".join(map(str, paths)),
                "no vLLM at hand: its classes are known by name only; name a tree "
                "with --vllm",
            )
        )
    if not files:
        notes.append(Note(", ".join(map(str, paths)), "holds no Python file"))
    auditor = _Auditor(files, paths, base, rules, notes)
    ids = {rule.id for rule in rules}
    known = known_ids() | ids
    findings: list[Finding] = []
    for number, file in enumerate(files, 1):
        findings += auditor.findings(file, known, ids)
        if progress is not None:
            progress(number, len(files), file.path.name)
    report.findings = fingerprinted(findings)
    report.notes = sorted({Note(_relative(n.where), n.message) for n in notes})
    return report


def _all_files(paths: Sequence[Path], notes: list[Note]) -> Iterator[SourceFile]:
    seen: set[Path] = set()
    for path in paths:
        for file in python_files(path, notes):
            if file.path not in seen:
                seen.add(file.path)
                yield file


def _roots(files: Sequence[SourceFile], paths: Sequence[Path]) -> list[Path]:
    """The folders that imports start from."""
    packages = [file.root for file in files if file.is_package or "." in file.name]
    folders = [home(path)[0] for path in paths if path.is_dir()]
    return list(dict.fromkeys([*packages, *folders]))


def _holds_vllm(root: Path) -> bool:
    return (root / "vllm" / "__init__.py").is_file()


class _Auditor:
    def __init__(
        self,
        files: Sequence[SourceFile],
        paths: Sequence[Path],
        base: Path | None,
        rules: Sequence[Rule],
        notes: list[Note],
    ) -> None:
        roots = _roots(files, paths)
        if base is not None:
            base = Path(os.path.abspath(base))  # noqa: PTH100
        above = [base] if base else []
        by_path = {str(file.path): file for file in files}
        self.notes = notes
        self.project = Project([*roots, *above], notes, by_path)
        self.context = Context(self.project, self._base(base), Types(self.project))
        self.kinds: list[tuple[Kind, Rule]] = [
            (make_kind(rule, self.context), rule) for rule in rules
        ]
        self.patterns = [kind.pattern(rule) for kind, rule in self.kinds]
        self.words = frozenset().union(*(words for words, _ in self.patterns))

    def _base(self, base: Path | None) -> Project | None:
        """Where originals are looked up: vLLM, even where a path holds a fork."""
        if base is None:
            return None
        first = self.project.module("vllm")
        if first is not None and first.file.root == base:
            return self.project
        return Project([base], self.notes)

    def findings(
        self, file: SourceFile, known: set[str], active: set[str]
    ) -> list[Finding]:
        """The findings in a file, those that are suppressed included."""
        try:
            data = file.path.read_bytes()
        except OSError as error:
            self._note(file, f"cannot be read: {error.strerror}")
            return []
        present = {word for word in self.words if word in data}
        wanted = [
            number
            for number, (words, pattern) in enumerate(self.patterns)
            if not present.isdisjoint(words) and pattern.search(data)
        ]
        if not wanted and MARK not in data:
            return []
        module = self.project.load(file, data)
        if module is None:
            return []
        path = _relative(str(file.path))
        try:
            found = [
                _finding(self.kinds[number][1], hit, module, path)
                for number in wanted
                for hit in self._hits(number, module)
            ]
            return list(apply_ignores(module, path, found, known, active))
        except RecursionError:
            self._note(file, "cannot be audited: nested too deeply")
            return []

    def _hits(self, number: int, module: Module) -> Iterator[Hit]:
        lines = module.matching_lines(self.patterns[number][1])
        yield from self.kinds[number][0].hits(list(module.sites(lines)))

    def _note(self, file: SourceFile, message: str) -> None:
        self.notes.append(Note(str(file.path), message))


def _finding(rule: Rule, hit: Hit, module: Module, path: str) -> Finding:
    return Finding(
        rule,
        path,
        region(module.lines, hit.node),
        hit.scope.name or hit.owner,
        hit.subject,
        hit.detail,
        anchor(hit.node),
        module.file.home,
    )


def _relative(path: str) -> str:
    """A path as it is shown: relative where it is below the current folder."""
    here = os.getcwd() + os.sep  # noqa: PTH109
    return path.removeprefix(here)
