"""Which files lead to which by their imports, worked out once and kept until imports change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


class Reach:
    """The files that each file leads to, by `follow`, which says what one imports."""

    def __init__(self, follow: Callable[[str], Sequence[str]]) -> None:
        self._follow = follow
        self._followed: dict[str, Sequence[str]] = {}
        self._numbers: dict[str, int] = {}
        self._reached: dict[str, int] = {}
        """The files that each leads to, itself among them, as bits of their numbers."""
        self._checks: dict[str, int] = {}
        self._nearer: tuple[str, Mapping[str, str]] = ("", {})
        """A file, and by which import each of the others gets nearer to it."""

    def clear(self) -> None:
        """Imports of a file have changed, or whether it is there."""
        self._followed.clear()
        self._numbers.clear()
        self._reached.clear()
        self._checks.clear()
        self._nearer = ("", {})

    def imported(self, location: str) -> Sequence[str]:
        """The files that one imports."""
        known = self._followed.get(location)
        if known is None:
            known = self._followed[location] = self._follow(location)
        return known

    def files(self, location: str) -> int:
        """How many files one leads to, itself among them."""
        return self._reachable(location).bit_count()

    def checks(self, location: str) -> int:
        """How many files those that one leads to lead to, all counted: each is checked with what it imports."""
        if location not in self._checks:
            reached = self._reachable(location)
            counts = {each: bits.bit_count() for each, bits in self._reached.items()}
            self._checks[location] = sum(counts[each] for each, at in self._numbers.items() if reached >> at & 1)
        return self._checks[location]

    def leads(self, location: str, target: str) -> bool:
        """Whether one file leads to another."""
        reached = self._reachable(location)
        return target in self._numbers and bool(reached >> self._numbers[target] & 1)

    def way(self, location: str, target: str) -> list[str] | None:
        """The files by which `location` leads to `target`, a shortest way, without the latter; None where there is
        none."""
        if not self.leads(location, target):
            return None
        if self._nearer[0] != target or location not in self._nearer[1]:
            self._nearer = (target, self._toward(target))
        way = [location]
        while (nearer := self._nearer[1][way[-1]]) != target:
            way.append(nearer)
        return way

    def _toward(self, target: str) -> dict[str, str]:
        """Of each file that leads to `target`, which of its imports is the shortest way there, of several the first by
        name: whichever file was read first."""
        import networkx as nx

        users: nx.DiGraph[str] = nx.DiGraph((other, each) for each in self._reached for other in self.imported(each))
        return dict(nx.bfs_predecessors(users, target, sort_neighbors=lambda found: iter(sorted(found))))

    def _reachable(self, location: str) -> int:
        """The files that a location leads to: those of a ring of imports lead to the same ones."""
        if location not in self._reached:
            for ring in _rings(self._new(location)):
                self._close(ring)
        return self._reached[location]

    def _new(self, location: str) -> dict[str, Iterable[str]]:
        """What each file imports of those that a location leads to and that are not known to do yet."""
        found: dict[str, Iterable[str]] = {}
        pending = [location]
        while pending:
            each = pending.pop()
            if each not in found and each not in self._reached:
                self._numbers.setdefault(each, len(self._numbers))
                found[each] = others = self.imported(each)
                pending += reversed(others)
        return found

    def _close(self, ring: Collection[str]) -> None:
        """The files of a component lead to one another, and to what any of them imports."""
        reached = 0
        for each in ring:
            reached |= 1 << self._numbers[each]
            for other in self.imported(each):
                reached |= self._reached.get(other, 0)
        self._reached.update(dict.fromkeys(ring, reached))


def _rings(graph: dict[str, Iterable[str]]) -> Iterator[Collection[str]]:
    """The components of files that lead to one another, each behind those that it leads to."""
    try:
        order = [(each,) for each in TopologicalSorter(graph).static_order() if each in graph]
    except CycleError:
        import networkx as nx

        yield from nx.strongly_connected_components(nx.DiGraph(graph).subgraph(graph))
    else:
        yield from order
