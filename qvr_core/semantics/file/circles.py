"""Declarations that refer to each other in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.imported import Statements
from qvr_core.semantics.file.references import References, mentions
from qvr_core.semantics.types.codes import CYCLE
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Origin, Related
from qvr_core.syntax.tree import Statement

if TYPE_CHECKING:

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


def _reached(start: int, step: Callable[[int], Iterator[int]]) -> set[int]:
    """Everything that `step` leads to, however often it is taken."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        for other in step(pending.pop()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen


FEW = 50
"""Up to so many edited statements each looks for its own circle; beyond that the whole file is peeled."""


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
        found: set[int] = set()
        for uid in candidates if len(candidates) <= FEW else self._peeled():
            if uid not in found:
                found |= self._circle(uid)
        moved = {uid for uid in found ^ self.members if uid in file.records}
        self.members = found
        return moved

    def _successors(self, uid: int) -> Iterator[int]:
        owners = self.file.owners
        for name in self.file.records[uid].references.uses:
            declared = owners.get(name)
            if declared:
                yield declared[0]

    def _circle(self, uid: int) -> set[int]:
        """The strongly connected statements around `uid`; none where it does not reach itself."""
        if not any(name in self.file.users for name in self.file.records[uid].names):
            return set()
        forward = _reached(uid, self._successors)
        return forward & _reached(uid, self._predecessors) if uid in forward else set()

    def _predecessors(self, uid: int) -> Iterator[int]:
        owners = self.file.owners
        for name in self.file.records[uid].names:
            if owners[name][0] == uid:
                yield from self.file.users.get(name, ())

    def _peeled(self) -> set[int]:
        """Statements that are left when those that refer to nothing are taken away again and again."""
        waiting = {uid: set(self._successors(uid)) for uid in self.file.records}
        users: dict[int, list[int]] = {}
        for uid, others in waiting.items():
            for other in others:
                users.setdefault(other, []).append(uid)
        free = deque(uid for uid, others in waiting.items() if not others)
        while free:
            uid = free.popleft()
            del waiting[uid]
            for user in users.get(uid, ()):
                others = waiting[user]
                others.discard(uid)
                if not others:
                    free.append(user)
        return set(waiting)

    # ---------------------------------------------------------------- findings

    def diagnostics(self) -> Iterator[Diagnostic]:
        """One error for each circle, at the first of its declarations."""
        left = set(self.members)
        while left:
            first = min(left, key=self.file.layout.start_line)
            circle = self._circle(first)
            left -= circle | {first}
            if circle:
                yield self._error(self._path(first))

    def _path(self, first: int) -> list[int]:
        """A shortest way from `first` back to itself."""
        before: dict[int, int] = {}
        pending = deque([first])
        while pending:
            uid = pending.popleft()
            for other in sorted(self._successors(uid), key=self.file.layout.start_line):
                if other == first:
                    path = [uid]
                    while path[-1] != first:
                        path.append(before[path[-1]])
                    return path[::-1]
                if other not in before:
                    before[other] = uid
                    pending.append(other)
        return [first]

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
