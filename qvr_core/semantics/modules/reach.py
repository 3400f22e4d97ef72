"""Which files lead to which by their imports, worked out once and kept until imports change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence


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
        if self._nearer[0] != target:
            self._nearer = (target, self._toward(target))
        way = [location]
        while (nearer := self._nearer[1][way[-1]]) != target:
            way.append(nearer)
        return way

    def _toward(self, target: str) -> dict[str, str]:
        """Of each file that leads to `target`, which of its imports is the shortest way there."""
        users: dict[str, list[str]] = {}
        for each in self._reached:
            for other in self.imported(each):
                users.setdefault(other, []).append(each)
        nearer: dict[str, str] = {}
        pending = deque([target])
        while pending:
            each = pending.popleft()
            for user in users.get(each, ()):
                if user not in nearer and user != target:
                    nearer[user] = each
                    pending.append(user)
        return nearer

    def _reachable(self, location: str) -> int:
        """The files that a location leads to: those of a ring of imports lead to the same ones (Tarjan's strongly
        connected components, without recursion)."""
        entered: dict[str, int] = {}
        lowest: dict[str, int] = {}
        held: list[str] = []
        frames: list[tuple[str, Iterator[str]]] = []

        def enter(each: str) -> None:
            self._numbers.setdefault(each, len(self._numbers))
            entered[each] = lowest[each] = len(held)
            held.append(each)
            frames.append((each, iter(self.imported(each))))

        if location not in self._reached:
            enter(location)
        while frames:
            each, others = frames[-1]
            fresh = None
            for other in others:
                if other in self._reached:
                    continue
                if other not in entered:
                    fresh = other
                    break
                lowest[each] = min(lowest[each], entered[other])
            if fresh is not None:
                enter(fresh)
                continue
            frames.pop()
            if frames:
                lowest[frames[-1][0]] = min(lowest[frames[-1][0]], lowest[each])
            if lowest[each] == entered[each]:
                self._close(held[entered[each] :])
                del held[entered[each] :]
        return self._reached[location]

    def _close(self, ring: Sequence[str]) -> None:
        """The files of a component lead to one another, and to what any of them imports."""
        reached = 0
        for each in ring:
            reached |= 1 << self._numbers[each]
            for other in self.imported(each):
                reached |= self._reached.get(other, 0)
        self._reached.update(dict.fromkeys(ring, reached))
