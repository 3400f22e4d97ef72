"""Documents that import one another: files are found, read and analysed once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from qvr_core.analysis import Analyzer
from qvr_core.semantics.modules.module import Module
from qvr_core.semantics.modules.paths import STD, WrongPath, location_of
from qvr_core.syntax.statements import Document
from qvr_core.syntax.tree import ImportDecl, Statement

P = ParamSpec("P")
T = TypeVar("T")


class Reader(Protocol):
    """Where texts come from."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        """Why an import may not be followed, in words."""
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


class Workspace:
    """The files that imports have led to (`semantics.modules.table.Library`).

    An open document counts before the file of its location: `put` says what it is now, and `reaching` who is to follow.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.lock = RLock()
        self._open: dict[str, Module] = {}
        self._read: dict[str, Analyzer | None] = {}
        """What was read; None where there is no file."""
        self._texts: dict[str, str | None] = {}
        self._imports: dict[str, tuple[object, tuple[tuple[str, str], ...]]] = {}

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        return None if location in self._open else self._reader.refusal(location, importer, written)

    @alone
    def find(self, location: str, importer: str, written: str) -> Module | str:
        held = self._open.get(location)
        if held is not None:
            return held
        text = self._text(location)
        if text is None:
            return f"there is no file {written}"
        analyzer = self._read.get(location)
        if analyzer is None:
            analyzer = self._read[location] = Analyzer(text, None, location, self)
        return analyzer.module()

    @alone
    def cycle(self, location: str, importer: str) -> Sequence[str] | None:
        before: dict[str, str] = {}
        pending = deque([location])
        while pending:
            each = pending.popleft()
            for other, written in self._imported(each):
                if self.refusal(other, each, written) is not None:
                    continue
                if other == importer:
                    ring = [each]
                    while ring[-1] != location:
                        ring.append(before[ring[-1]])
                    return ring[::-1]
                if other not in before and other != location:
                    before[other] = each
                    pending.append(other)
        return None

    @alone
    def holds(self, modules: Mapping[str, Module]) -> bool:
        """Whether files are still what they were."""
        return all(self._now(location) is module for location, module in modules.items())

    def _now(self, location: str) -> Module | None:
        held, analyzer = self._open.get(location), self._read.get(location)
        return analyzer.module() if held is None and analyzer is not None else held

    # ---------------------------------------------------------------- changes

    @alone
    def put(self, module: Module) -> None:
        """A document is open, and this is what it is now; none stands in the place of a file of the library."""
        if not module.location.startswith(STD):
            self._open[module.location] = module

    @alone
    def remove(self, location: str) -> None:
        """A document is closed: what is on disk counts."""
        self._open.pop(location, None)
        self.forget(location)

    @alone
    def forget(self, location: str) -> None:
        """A file has changed on disk, appeared or gone."""
        self._read.pop(location, None)
        self._texts.pop(location, None)
        self._imports.pop(location, None)

    @alone
    def reaching(self, location: str) -> list[str]:
        """The files whose imports lead to a location, each behind those that it imports.  Files that are not open are
        brought up to date on the way: whoever asks does so in this order."""
        known = {*self._open, *(each for each, held in self._read.items() if held is not None)}
        users: dict[str, set[str]] = {}
        for each in known:
            for other, _ in self._imported(each):
                users.setdefault(other, set()).add(each)
        order: list[str] = []
        entered: set[str] = set()
        pending: list[tuple[str, bool]] = [(location, False)]
        while pending:
            each, done = pending.pop()
            if done:
                order.append(each)
            elif each not in entered:
                entered.add(each)
                pending.append((each, True))
                pending += ((user, False) for user in sorted(users.get(each, ())) if user not in entered)
        return order[-2::-1]

    @alone
    def follow(self, location: str) -> bool:
        """Bring a file that is not open up to date with what it imports; False where it is open."""
        if location in self._open:
            return False
        analyzer = self._read.get(location)
        if analyzer is not None:
            analyzer.refresh()
        return True

    # ---------------------------------------------------------------- texts

    def _text(self, location: str) -> str | None:
        if location not in self._texts:
            self._texts[location] = self._reader.text(location)
        return self._texts[location]

    def _imported(self, location: str) -> tuple[tuple[str, str], ...]:
        """The locations that a file imports, each as it is written, whether there is anything or not."""
        held = self._open.get(location)
        source = held if held is not None else self._text(location)
        if source is None:
            return ()
        known = self._imports.get(location)
        if known is None or known[0] is not source:
            statements = (Document(source) if isinstance(source, str) else source.layout).statements
            known = self._imports[location] = (source, tuple(locations(statements, location)))
        return known[1]


def locations(statements: Iterable[Statement], location: str) -> Iterator[tuple[str, str]]:
    """Where the imports of a text lead, each as it is written, as far as their paths can be followed."""
    for statement in statements:
        node = statement.header.unit.node
        if isinstance(node, ImportDecl):
            found = location_of(node.path.value, location)
            if not isinstance(found, WrongPath):
                yield found, node.path.value


def texts_of(modules: Mapping[str, Module]) -> dict[str, str]:
    """The texts of imported files, by their locations."""
    return {location: module.text for location, module in modules.items()}


class Bundle:
    """Texts that are at hand, those that a run was made of: nothing is read."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        return None

    def text(self, location: str) -> str | None:
        return self._texts.get(location)
