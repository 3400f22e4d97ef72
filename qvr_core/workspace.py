"""Documents that import one another: files are found, read and analysed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from qvr_core.analysis import PACKAGE, Analyzer
from qvr_core.semantics.modules.import_reach import Reach
from qvr_core.semantics.modules.import_table import Library
from qvr_core.semantics.modules.module import Module
from qvr_core.semantics.modules.package import package_text
from qvr_core.semantics.modules.paths import STD, WrongPath, location_of
from qvr_core.syntax.source import split_lines
from qvr_core.syntax.statements import Document
from qvr_core.syntax.tree.declarations import ImportDecl

P = ParamSpec("P")
T = TypeVar("T")


ENOUGH = 100_000
"""Characters that are too many to be read while somebody waits: nobody counts on."""


MOST_FILES = 1_000
"""That an import may lead to, by those of the files that it names."""

MOST_CHECKS = 50_000
"""Of the files that an import leads to, each with those that it leads to in turn."""

MOST_LETTERS = 100_000_000
"""In all files that are read for imports."""

LONGEST_WAIT = 120
"""Seconds for what another thread reads."""


class Reader(Protocol):
    """Where texts come from."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        """Why an import may not be followed, in words."""
        ...

    def near(self, location: str, written: str) -> str | None:
        """The path that was meant where there is no file; None where nothing is like it."""
        ...

    def text(self, location: str) -> str | None:
        """The text at a location; None where there is none."""
        ...


def alone(method: Callable[Concatenate[Workspace, P], T]) -> Callable[Concatenate[Workspace, P], T]:
    """Documents are analysed in several threads, and the files that they share in one at a time."""

    @wraps(method)
    def made(self: Workspace, *args: P.args, **more: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **more)

    return made


class Closed:
    """A file that was read, and is analysed when it is imported."""

    def __init__(self, location: str, text: str) -> None:
        self._location, self._text = location, text
        self._analyzer: Analyzer | None = None
        self._module: Module | None = None
        self._lock = RLock()
        self.behind = False
        """Something that it imports has changed since."""

    @property
    def current(self) -> Module | None:
        """The file as it is; None where work has to be done for that."""
        return None if self.behind else self._module

    def made(self, library: Library) -> Module | None:
        """The file as it is now; None where somebody else has been at it for too long."""
        if (known := self.current) is not None:
            return known
        if not self._lock.acquire(timeout=LONGEST_WAIT):
            return None
        try:
            if (known := self.current) is not None:
                return known
            self._module, self.behind = None, False
            if self._text == package_text(self._location) and self._analyzer is None:
                module = PACKAGE.find(self._location, "", "")
                self._module = module if isinstance(module, Module) else None
                return self._module
            if self._analyzer is None:
                self._analyzer = Analyzer(self._text, None, self._location, library)
            else:
                self._analyzer.refresh()
            self._module = self._analyzer.module()
            return self._module
        finally:
            self._lock.release()


class Workspace:
    """The files that imports have led to (`semantics.modules.import_table.Library`).

    An open document counts before the file of its location: `put` says what it is now, and `reaching` who is to follow.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.lock = RLock()
        self._open: dict[str, Module] = {}
        self._read: dict[str, Closed] = {}
        self._texts: dict[str, str | None] = {}
        self._letters = 0
        """Of the texts."""
        self._beyond: set[str] = set()
        """Files that are not read, since the others are large enough."""
        self._imports: dict[str, tuple[object, tuple[tuple[str, str], ...]]] = {}
        self._reach = Reach(self._follow)

    @alone
    def refusal(self, location: str, importer: str, written: str) -> str | None:
        if (why := self._refused(location, importer, written)) is not None:
            return why
        files = self._reach.files(location)
        if location in self._beyond:
            return f"{written} is not read: the files that are imported have {self._letters:,} characters without it"
        if self._reach.leads(location, importer):
            return None  # a ring, which is told as one
        if files > MOST_FILES:
            return (
                f"{written} leads to {files:,} files by its imports, and no import may lead to more than {MOST_FILES:,}"
            )
        if (checks := self._reach.checks(location)) > MOST_CHECKS:
            return (
                f"{written} leads to {files:,} files, each of which is checked with those that it leads to: "
                f"{checks:,} checks, and no import may take more than {MOST_CHECKS:,}"
            )
        return None

    def _refused(self, location: str, importer: str, written: str) -> str | None:
        """Why a file may not be read, whatever it imports."""
        if location in self._open:
            return None
        return self._reader.refusal(location, importer, written)

    def near(self, location: str, written: str) -> str | None:
        return self._reader.near(location, written)

    def find(self, location: str, importer: str, written: str) -> Module | str:
        for held in self._before(location):
            held.made(self)
        while True:
            with self.lock:
                held = self._open.get(location) or self._closed(location)
            if not isinstance(held, Closed):
                return held or f"there is no file {written}"
            # others ask for other files meanwhile
            module = held.made(self)
            with self.lock:
                if module is None:
                    return f"{written} is being read"
                if self._read.get(location) is held:
                    return module

    @alone
    def _before(self, location: str) -> list[Closed]:
        """The closed files that a file leads to and that are not current, each behind those that it imports: so that
        however long a chain of imports is, none is analysed inside another."""
        order: list[Closed] = []
        entered: set[str] = set()
        pending: list[tuple[str, bool]] = [(location, False)]
        while pending:
            each, done = pending.pop()
            if done:
                held = self._closed(each) if each != location else None
                order += [held] if held is not None else []
            elif each not in entered and self._now(each) is None:
                entered.add(each)
                pending.append((each, True))
                pending += ((other, False) for other in reversed(self._reach.imported(each)))
        return order

    def _closed(self, location: str) -> Closed | None:
        """A file that is not open; None where there is none."""
        held, text = self._read.get(location), self._text(location)
        if held is None and text is not None:
            held = self._read[location] = Closed(location, text)
        return held

    @alone
    def cycle(self, location: str, importer: str) -> Sequence[str] | None:
        return self._reach.way(location, importer)

    def _follow(self, location: str) -> Sequence[str]:
        """The files that one imports, as far as they may be followed."""
        imported = self._imported(location)
        allowed = (other for other, written in imported if self._refused(other, location, written) is None)
        return tuple(dict.fromkeys(allowed))

    @alone
    def holds(self, modules: Mapping[str, Module]) -> bool:
        """Whether files are still what they were."""
        return all(self._now(location) is module for location, module in modules.items())

    def _now(self, location: str) -> Module | None:
        opened, held = self._open.get(location), self._read.get(location)
        if opened is None and held is None:
            return PACKAGE.known(location)  # a file of the library that another one of it uses
        return opened if opened is not None or held is None else held.current

    @alone
    def waiting(self, location: str) -> int:
        """The characters of closed files that are to be read or checked before a file can be imported."""
        seen, pending, work = {location}, [location], 0
        while pending and work < ENOUGH:
            each = pending.pop()
            if self._now(each) is not None:
                continue
            text = self._text(each) if self._reader.refusal(each, each, each) is None else None
            work += len(text or "")
            if text is not None and len(text) < ENOUGH:
                found = {other for other, _ in self._imported(each)} - seen
                seen |= found
                pending += found
        return work

    # ---------------------------------------------------------------- changes

    @alone
    def put(self, module: Module) -> None:
        """A document is open, and this is what it is now; none stands in the place of a file of the library."""
        location = module.location
        if location.startswith(STD):
            return
        fresh, before = location not in self._open, self._imported(location)
        self._open[location] = module
        if fresh or self._imported(location) != before:
            self._reach.clear()

    @alone
    def remove(self, location: str) -> None:
        """A document is closed: what is on disk counts."""
        self._open.pop(location, None)
        self.forget(location)

    @alone
    def forget(self, location: str) -> None:
        """A file has changed on disk, appeared or gone."""
        self._read.pop(location, None)
        self._letters -= len(self._texts.pop(location, None) or "")
        self._imports.pop(location, None)
        self._beyond.clear()
        self._reach.clear()

    @alone
    def reaching(self, location: str) -> list[str]:
        """The files whose imports lead to a location, each behind those that it imports."""
        known = {*self._open, *self._read}
        users = [(other, each) for each in known for other, _ in self._imported(each)]
        if not any(other == location for other, _ in users):
            return []
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph(users)
        order = nx.dfs_postorder_nodes(graph, location, sort_neighbors=lambda found: iter(sorted(found, reverse=True)))
        return [each for each in order if each != location][::-1]

    @alone
    def follow(self, location: str) -> bool:
        """Have a file that is not open brought up to date before it is imported again; False where it is open."""
        if location in self._open:
            return False
        held = self._read.get(location)
        if held is not None:
            held.behind = True
        return True

    # ---------------------------------------------------------------- texts

    def _text(self, location: str) -> str | None:
        if location not in self._texts and self._letters > MOST_LETTERS:
            self._beyond.add(location)
            return None
        if location not in self._texts:
            self._texts[location] = self._reader.text(location)
            self._letters += len(self._texts[location] or "")
        return self._texts[location]

    def _imported(self, location: str) -> tuple[tuple[str, str], ...]:
        """The locations that a file imports, each as it is written, whether there is anything or not."""
        held = self._open.get(location)
        source = held if held is not None else self._text(location)
        if source is None:
            return ()
        known = self._imports.get(location)
        if known is None or known[0] is not source:
            decls = imports_of(source) if isinstance(source, str) else (each.decl for each in source.table.imports)
            used = () if isinstance(source, str) else ((each, each) for each in source.table.prelude)
            known = self._imports[location] = (source, (*locations(decls, location), *used))
        return known[1]


def imports_of(text: str) -> Iterator[ImportDecl]:
    """The imports of a text, from those of its lines alone that may be some: it may be long."""
    lines = (line.lstrip() for line in split_lines(text)[0])
    document = Document("\n".join(line for line in lines if line.startswith(("import", "from"))))
    nodes = (statement.header.unit.node for statement in document.statements)
    yield from (node for node in nodes if isinstance(node, ImportDecl))


def locations(decls: Iterable[ImportDecl], location: str) -> Iterator[tuple[str, str]]:
    """Where the imports of a text lead, each as it is written, as far as their paths can be followed."""
    for decl in decls:
        found = location_of(decl.path.value, location)
        if not isinstance(found, WrongPath):
            yield found, decl.path.value


def texts_of(modules: Mapping[str, Module]) -> dict[str, str]:
    """The texts of imported files, by their locations."""
    return {location: module.text for location, module in modules.items()}


class Bundle:
    """Texts that are at hand, those that a run was made of: nothing is read but the library."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        return None

    def near(self, location: str, written: str) -> str | None:
        return None

    def text(self, location: str) -> str | None:
        return self._texts[location] if location in self._texts else package_text(location)
