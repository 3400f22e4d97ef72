"""Equations between widths that cannot hold: kept as statements come and go, explained together when they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.conflict_explanation import File, explain
from qvr_core.semantics.file.imported import Imports
from qvr_core.semantics.file.statement_records import Key, Record
from qvr_core.semantics.scope.holes import Holes
from qvr_core.semantics.scope.scope import Entry, Equation, FamilyEntry, ObjectEntry, words_of
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Place, Related
from qvr_core.semantics.types.dimensions import System

if TYPE_CHECKING:

    class Checker(Protocol):
        imports: Imports
        owners: dict[str, list[int]]
        system: System
        holes: Holes

        @property
        def records(self) -> Mapping[int, Record]: ...
        @property
        def entries(self) -> Mapping[str, Entry]: ...
        def position(self, key: Key) -> tuple[int, int]: ...
        def size_place(self, variable: str) -> Place | None: ...


class Contradictions:
    """The violated equations of a file."""

    def __init__(self, file: Checker) -> None:
        self._file = file
        self._wrong: set[Key] = set()
        """Those that are wrong whatever the holes are."""
        self._replicas: dict[str, set[Key]] = {}
        """Equations by the replicated arrow that is fanned out there."""
        self._explained: tuple[tuple[Key, ...], list[Diagnostic]] | None = None

    def fans_out(self, key: Key, replica: tuple[str, int] | None) -> None:
        """An equation is asserted; `replica` as in `Equation`."""
        if replica is not None:
            self._replicas.setdefault(replica[0], set()).add(key)

    def drop(self, key: Key, replica: tuple[str, int] | None) -> None:
        """An equation is taken back."""
        if replica is not None:
            self._replicas.get(replica[0], set()).discard(key)

    def put(self, keys: Iterable[Key]) -> None:
        """Equations that cannot hold are asserted."""
        self._wrong.update(keys)

    def forget(self, keys: Iterable[Key]) -> None:
        """Equations that cannot hold are taken back."""
        self._wrong.difference_update(keys)

    def look_again(self) -> None:
        """Equations or sizes have come or gone: what explained the others may be another size now."""
        self._explained = None

    def diagnostics(self) -> list[Diagnostic]:
        """As few errors as explain all of them."""
        violated = self._wrong | self._file.holes.failed.keys()
        if not violated:
            return []
        ordered = tuple(sorted(violated, key=self._file.position))
        if self._explained is None or self._explained[0] != ordered:
            self._explained = (ordered, explain(ordered, self._view()))
        return self._explained[1]

    def _view(self) -> File:
        impossible: dict[Key, tuple[str, Fraction]] = {
            key: (name, value)
            for key, (name, value) in self._file.holes.failed.items()
            if name is not None and value is not None
        }
        return File(
            self._file.system,
            self._equation,
            self._file.position,
            self._file.size_place,
            self._objects_in,
            impossible,
            self._replicas,
            self._copies,
            self._is_foreign,
        )

    def _is_foreign(self, name: str) -> bool:
        """Whether another file declares a name: nothing here can change it."""
        return any(map(self._file.imports.is_foreign, self._file.owners.get(name, ())[:1]))

    def _copies(self, family: str) -> int:
        entry = self._file.entries.get(family)
        return len(entry.copies) if isinstance(entry, FamilyEntry) else 1

    def _equation(self, key: Key) -> Equation:
        return self._file.records[key[0]].checked.equations[key[1]]

    def _objects_in(self, equation: Equation) -> list[Related]:
        names = dict.fromkeys((*words_of(equation.given.written), *words_of(equation.wanted.written)))
        return [
            Related(f"`{name}` is declared here", DeclarationSite(name))
            for name in names
            if isinstance(self._file.entries.get(name), ObjectEntry)
        ]
