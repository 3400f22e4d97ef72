"""Markdown cases: `qvr` blocks whose expected diagnostics and types stand in the source itself.

A line `#   ^^^^ error[compose-mismatch]: text` below a code line marks a range of that line; where the range starts in
the first column, `#@0-6 error[…]` says it in numbers.  `# type: name : A -> B` gives the type that is shown for a name.
Mark lines are taken out before the block is checked.  `text` is a part of the message.

A block opened with ```` ```qvr file=layers.qvr ```` is a file of that name, which the other blocks below the same
heading may import; it is a case itself as well.

A block without marks must be clean.  Hints that something is unused count only in blocks
opened with ```` ```qvr unused ````.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from qvr_core.analysis import LocatedDiagnostic, Snapshot, analyse
from qvr_core.disk import LibraryOnly
from qvr_core.semantics.modules.paths import STD
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.type_text import structure
from qvr_core.workspace import Bundle, Workspace

MARK = re.compile(
    r"^\s*#(?P<pad>\s*)(?P<carets>\^+)\s*(?P<level>error|warning|information|hint)\[(?P<code>[\w-]+)\]:?(?P<text>.*)$"
)
NUMBERED = re.compile(
    r"^\s*#@(?P<start>\d+)-(?P<end>\d+)\s*(?P<level>error|warning|information|hint)\[(?P<code>[\w-]+)\]:?(?P<text>.*)$"
)
TYPE = re.compile(r"^\s*#\s*type:\s*(?P<name>\w+)\s*:\s*(?P<type>.*)$")
FENCE = re.compile(r"^```qvr\b(?P<flags>.*)$")


class BesideLibrary(Bundle):
    """The texts at hand, and the library that comes with the package."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        return LibraryOnly().refusal(location, importer, written) if location.startswith(STD) else None

    def near(self, location: str, written: str) -> str | None:
        return LibraryOnly().near(location, written) if location.startswith(STD) else None

    def text(self, location: str) -> str | None:
        return LibraryOnly().text(location) if location.startswith(STD) else super().text(location)


UNUSED = ("unused", "unused-binding")


@dataclass(frozen=True)
class Mark:
    """An expected diagnostic: on line `line` of the stripped text, columns `start` to `end`."""

    line: int
    start: int
    end: int
    level: str
    code: str
    text: str


@dataclass(frozen=True)
class Case:
    """One block of a Markdown file."""

    path: Path
    heading: str
    number: int
    source: str
    marks: tuple[Mark, ...]
    types: tuple[tuple[str, str], ...]
    flags: frozenset[str] = field(default_factory=frozenset[str])
    files: tuple[tuple[str, str], ...] = ()
    """The files below the same heading, with their texts."""

    @property
    def wrong(self) -> bool:
        """Whether an error is marked; `problems` sees that all are, in the pages that are asked for them."""
        return any(mark.level == "error" for mark in self.marks)

    @property
    def file(self) -> str:
        """What its file is called."""
        return next((flag.removeprefix("file=") for flag in self.flags if flag.startswith("file=")), "main.qvr")

    def snapshot(self) -> Snapshot:
        """Its analysis, beside the files that it may import."""
        return analysed(self.source, self.file, self.files)

    @property
    def name(self) -> str:
        return f"{self.path.stem}:{self.number}:{self.heading}"


@cache
def analysed(text: str, file: str, files: tuple[tuple[str, str], ...]) -> Snapshot:
    """What several tests ask about the same block is analysed once a process."""
    return analyse(text, None, file, Workspace(BesideLibrary(dict(files))))


@cache
def read_cases(path: Path) -> tuple[Case, ...]:
    """The blocks of a Markdown file, in order."""
    found = list(_blocks(path))
    files: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for case in found:
        if any(flag.startswith("file=") for flag in case.flags):
            files[case.heading].append((case.file, case.source))
    return tuple(replace(case, files=tuple(files[case.heading])) for case in found)


def _blocks(path: Path) -> Iterator[Case]:
    heading, number = "", 0
    lines = iter(path.read_text(encoding="utf-8").split("\n"))
    for line in lines:
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
        opening = FENCE.match(line)
        if opening is None:
            continue
        block: list[str] = []
        for inner in lines:
            if inner.startswith("```"):
                break
            block.append(inner)
        number += 1
        yield _case(path, heading, number, block, frozenset(opening["flags"].split()))


def _case(path: Path, heading: str, number: int, block: list[str], flags: frozenset[str]) -> Case:
    kept: list[str] = []
    marks: list[Mark] = []
    types: list[tuple[str, str]] = []
    for line in block:
        if (found := MARK.match(line)) is not None:
            start = found.start("carets")
            span = (start, start + len(found["carets"]))
        elif (found := NUMBERED.match(line)) is not None:
            span = (int(found["start"]), int(found["end"]))
        elif (found := TYPE.match(line)) is not None:
            types.append((found["name"], found["type"].strip()))
            continue
        else:
            kept.append(line)
            continue
        marks.append(Mark(len(kept) - 1, *span, found["level"], found["code"], found["text"].strip()))
    return Case(path, heading, number, "\n".join(kept) + "\n", tuple(marks), tuple(types), flags)


# ---------------------------------------------------------------- checking


def problems(case: Case) -> list[str]:
    """What differs between a case and what the checker says, in words."""
    snapshot = case.snapshot()
    left = list(case.marks)
    found: list[str] = []
    for diagnostic in snapshot.diagnostics():
        if diagnostic.code.name in UNUSED and "unused" not in case.flags:
            if any(mark.code == diagnostic.code.name for mark in left):
                pass
            else:
                continue
        match = next((mark for mark in left if _matches(mark, diagnostic, case)), None)
        if match is None:
            found.append(f"not expected:\n{_shown(diagnostic, case)}")
        else:
            left.remove(match)
    found += [f"missing: line {m.line + 1}, columns {m.start}-{m.end}: {m.level}[{m.code}]: {m.text}" for m in left]
    for name, expected in case.types:
        actual = shown_type(snapshot, name)
        if actual != expected:
            found.append(f"type of {name}: expected {expected!r}, but it is {actual!r}")
    return found


def _matches(mark: Mark, diagnostic: LocatedDiagnostic, case: Case) -> bool:
    start, end = diagnostic.range
    stop = end.column if end.line == start.line else len(case.source.split("\n")[start.line])
    return (
        mark.line == start.line
        and (mark.start, mark.end) == (start.column, max(stop, start.column + 1))
        and mark.level == diagnostic.severity.name.lower()
        and mark.code == diagnostic.code.name
        and mark.text in diagnostic.message
    )


def _shown(diagnostic: LocatedDiagnostic, case: Case) -> str:
    start, end = diagnostic.range
    line = case.source.split("\n")[start.line]
    width = max(1, (end.column if end.line == start.line else len(line)) - start.column)
    mark = "#" + " " * (start.column - 1) + "^" * width if start.column else f"#@0-{width}"
    level = diagnostic.severity.name.lower()
    return f"{line}\n{mark} {level}[{diagnostic.code.name}]: {diagnostic.message}"


def shown_type(snapshot: Snapshot, name: str) -> str | None:
    """The type of a declared name, as a hover writes it without the name."""
    model: Model = snapshot.model
    if name in model.objects:
        return structure(model.objects[name].space.space)
    arrow = model.arrows.get(name) or (model.lets[name].arrow if name in model.lets else model.programs.get(name))
    if arrow is None:
        return None
    return f"{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}"
