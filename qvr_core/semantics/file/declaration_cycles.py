"""Declarations that refer to each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.imported import Statements
from qvr_core.semantics.file.references import References, mentions
from qvr_core.semantics.types.codes import CYCLE
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Origin, Related
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    import networkx as nx

    class Node(Protocol):
        statement: Statement
        names: tuple[str, ...]
        references: References

    class Graph(Protocol):
        layout: Statements
        owners: dict[str, list[int]]
        users: dict[str, set[int]]

        @property
        def records(self) -> Mapping[int, Node]: ...


class Circles:
    """The statements that stand in circles.  What they declare fits everywhere, so that a circle is one error."""

    def __init__(self, file: Graph) -> None:
        self.file = file
        self.members: set[int] = set()

    def update(self, fresh: set[int], touched: Iterable[str]) -> set[int]:
        """Take over an edit; the statements that joined or left a circle."""
        file = self.file
        candidates = {uid for uid in (*fresh, *self.members) if uid in file.records}
        for name in touched:
            candidates.update(file.owners.get(name, ())[:1])
        found = self._circular(uid for uid in candidates if self._has_users(uid))
        moved = {uid for uid in found ^ self.members if uid in file.records}
        self.members = found
        return moved

    def _has_users(self, uid: int) -> bool:
        return any(name in self.file.users for name in self.file.records[uid].names)

    def _circular(self, candidates: Iterable[int]) -> set[int]:
        """The members of all circles that the candidates lead to: any that an edit has closed goes through one."""
        reached = self._reached(candidates)
        try:
            # nearly every file has none, and networkx is loaded where one has
            TopologicalSorter(reached).prepare()
        except CycleError:
            return {uid for circle in _circles(reached) for uid in circle}
        return set()

    def _reached(self, candidates: Iterable[int]) -> dict[int, Iterable[int]]:
        """What the candidates lead to: for each statement, those that it refers to."""
        reached: dict[int, Iterable[int]] = {}
        pending = list(candidates)
        while pending:
            uid = pending.pop()
            if uid not in reached:
                reached[uid] = others = tuple(self._successors(uid))
                pending += others
        return reached

    def _successors(self, uid: int) -> Iterator[int]:
        owners = self.file.owners
        for name in self.file.records[uid].references.uses:
            declared = owners.get(name)
            if declared:
                yield declared[0]

    # ---------------------------------------------------------------- findings

    def diagnostics(self) -> Iterator[Diagnostic]:
        """One error for each circle, at the first of its declarations."""
        graph: dict[int, Iterable[int]] = {
            uid: [other for other in self._successors(uid) if other in self.members] for uid in self.members
        }
        for circle in _circles(graph) if graph else ():
            yield self._error(self._path(circle))

    def _path(self, circle: nx.DiGraph[int]) -> list[int]:
        """A shortest way from the first statement of a circle back to itself; of several, the one that is declared
        first."""
        import networkx as nx

        line = self.file.layout.start_line
        first = min(circle, key=line)
        before: dict[int, int] = dict(
            nx.bfs_predecessors(circle, first, sort_neighbors=lambda found: iter(sorted(found, key=line)))
        )
        path = [next(uid for uid in (first, *before) if circle.has_edge(uid, first))]
        while path[-1] != first:
            path.append(before[path[-1]])
        return path[::-1]

    def _error(self, path: list[int]) -> Diagnostic:
        ring = [*path, path[0]]
        steps = [self._name_of(uid, user) for user, uid in pairwise(ring)]
        origin = next(iter(self._places(path[0], steps[0])))
        own = steps[-1]
        message = f"`{own}` is declared in terms of itself: " + " → ".join([own, *steps])
        related = [Related(f"`{name}` is declared here", DeclarationSite(name)) for name in dict.fromkeys(steps)]
        return Diagnostic(CYCLE, message, origin, tuple(related))

    def _name_of(self, uid: int, user: int) -> str:
        """By which of its names `user` refers to the statement `uid`."""
        uses = self.file.records[user].references.uses
        return next(name for name in self.file.records[uid].names if name in uses)

    def _places(self, uid: int, name: str) -> Iterator[Origin]:
        for unit, span in mentions(self.file.records[uid].statement, name):
            yield Origin(unit, span)


def _circles(graph: dict[int, Iterable[int]]) -> Iterator[nx.DiGraph[int]]:
    """The circles of a graph, each with its edges."""
    import networkx as nx

    whole: nx.DiGraph[int] = nx.DiGraph(graph)
    for part in nx.strongly_connected_components(whole):
        circle: nx.DiGraph[int] = whole.subgraph(part)
        if circle.size():
            yield circle
