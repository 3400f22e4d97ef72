"""Holes: which unknown sizes are tied to each other, what they are solved to, and which nothing fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from fractions import Fraction

from qvr_core.semantics.types.codes import UNSOLVED_HOLE
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Place, Related
from qvr_core.semantics.types.dimensions import Row, System
from qvr_core.semantics.types.spaces import Linear

Key = tuple[int, int]
Position = Callable[[Key], tuple[int, int]]


class Holes:
    """The unknowns of a file with their values; keeps them current as equations come and go."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.owners: dict[str, set[int]] = {}
        """Statements that write a hole."""
        self.values: dict[str, int] = {}
        self.failed: dict[Key, tuple[str | None, Fraction | None]] = {}
        """Equations with holes that cannot hold, with the unknown and the value that is no size."""
        self._pending: set[str] = set()

    def own(self, variable: str, uid: int) -> None:
        self.owners.setdefault(variable, set()).add(uid)
        self._pending.add(variable)

    def disown(self, variable: str, uid: int) -> None:
        users = self.owners.get(variable)
        if users is not None:
            users.discard(uid)
            if not users:
                del self.owners[variable]
        self._pending.add(variable)

    def put(self, key: Key, pairs: Iterable[tuple[Linear, Linear]]) -> tuple[Row, ...]:
        rows = self.system.put(key, pairs)
        self._touch(key)
        return rows

    def drop(self, key: Key) -> None:
        self._touch(key)
        self.system.drop(key)
        self.failed.pop(key, None)

    def _touch(self, key: Key) -> None:
        for row in self.system.rows.get(key, ()):
            for name, _ in row.terms:
                if name not in self.system.known:
                    self._pending.add(name)

    def solve(self, position: Position) -> set[str]:
        """Solve every region that was touched; the unknowns whose value changed."""
        moved: set[str] = set()
        while self._pending:
            unknowns, keys = self.system.region([self._pending.pop()])
            unknowns = {name for name in unknowns if name not in self.system.known}
            self._pending -= unknowns
            for key in keys:
                self.failed.pop(key, None)
            solution = self.system.solve(sorted(keys, key=position))
            for key, name, value in solution.failed:
                self.failed[key] = (name, value)
            for name in unknowns:
                new = solution.values.get(name) if name in self.owners else None
                if new != self.values.get(name):
                    moved.add(name)
                    if new is None:
                        del self.values[name]
                    else:
                        self.values[name] = new
        for name in [name for name in self.values if name in self.system.known]:
            del self.values[name]
        return moved

    def _first(self, name: str, position: Position) -> tuple[int, int, str]:
        return (*min(position((uid, 0)) for uid in self.owners[name]), name)

    def diagnostics(
        self,
        position: Position,
        place_of: Callable[[str], Place | None],
        written: Callable[[str], str],
        doubtful: Callable[[], Set[int]],
        open_set: Callable[[str], bool],
    ) -> Iterator[Diagnostic]:
        """One error for each group of tied holes that nothing fixes; none where a `doubtful` statement has one, or an
        `open_set`, whose size comes with the data."""
        open_holes = {name for name in self.owners if name not in self.values and name not in self.system.known}
        excused = doubtful() if open_holes else frozenset[int]()
        while open_holes:
            unknowns, keys = self.system.region([next(iter(open_holes))])
            group = (unknowns & open_holes) or {next(iter(open_holes))}
            open_holes -= unknowns | group
            if any(key in self.failed for key in keys) or any(map(open_set, group)):
                continue
            if any(not excused.isdisjoint(self.owners[name]) for name in group):
                continue
            tied = sorted((name for name in group if written(name)), key=lambda name: self._first(name, position))
            if tied:
                yield from _unsolved(tied, place_of, written)


def _unsolved(
    tied: list[str], place_of: Callable[[str], Place | None], written: Callable[[str], str]
) -> Iterator[Diagnostic]:
    first, *others = tied
    place = place_of(first)
    if place is None:
        return
    what = written(first)
    owner = place.name if isinstance(place, DeclarationSite) else None
    subject = f"the size `{what}`" + (f" of `{owner}`" if owner and what == "_" else "")
    message = f"nothing fixes {subject}: write a number, or use it where a size is known"
    if others:
        message = f"nothing fixes {subject} and the sizes that are tied to it: one of them must be known"
    related = [Related("this size is tied to it", where) for name in others if (where := place_of(name)) is not None]
    yield Diagnostic(UNSOLVED_HOLE, message, place, tuple(related))
