"""Linear equations between sizes, solved over the natural numbers (docs/reference.md#sizes-and-holes).

A row says that a linear form over variables is zero.  Variables are declared sizes, whose values are known, and holes.
Rational elimination solves; a value that is not a natural number from 1 makes its row impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from qvr_core.semantics.types.spaces import Linear
from qvr_core.syntax.immutable import immutable

if TYPE_CHECKING:
    import networkx as nx

Key = tuple[int, int]
"""An equation: its statement, and its number there."""


@immutable
class Row:
    """`constant + Σ coefficient · variable = 0`; `key` says where it comes from."""

    key: Key
    constant: int
    terms: tuple[tuple[str, int], ...]


def row(key: Key, left: Linear, right: Linear) -> Row:
    """The equation `left = right`."""
    terms: dict[str, int] = dict(left.terms)
    for name, count in right.terms:
        terms[name] = terms.get(name, 0) - count
    return Row(key, left.constant - right.constant, tuple(sorted((n, c) for n, c in terms.items() if c)))


@dataclass(slots=True)
class Solution:
    """`values` of the unknowns that are fixed; `failed` rows that cannot hold, with what was found instead:
    a rational number that is no size, or None for a plain contradiction."""

    values: dict[str, int] = field(default_factory=dict[str, int])
    failed: list[tuple[Key, str | None, Fraction | None]] = field(
        default_factory=list[tuple[Key, str | None, Fraction | None]]
    )


@dataclass(slots=True)
class _Pivot:
    """`pivot = constant + Σ coefficient · other unknown`, found by the row `key`."""

    key: Key
    constant: Fraction
    terms: dict[str, Fraction]


def solve(rows: Iterable[Row], known: Mapping[str, int]) -> Solution:
    """Solve for every variable that `known` does not give.

    Rows are taken in order: of two that contradict each other, the later one is said to fail.
    """
    pivots: dict[str, _Pivot] = {}
    users: dict[str, set[str]] = {}
    """The pivots that each unknown stands in, or has stood in."""
    solution = Solution()
    for current in rows:
        constant, terms = _reduced(current, known, pivots)
        if not terms:
            if constant != 0:
                solution.failed.append((current.key, None, None))
            continue
        # one that stands in no other pivot need not be replaced anywhere: chains of equal sizes stay linear
        pivot = min((name for name in terms if name not in users), default="") or min(terms)
        factor = terms.pop(pivot)
        found = _Pivot(current.key, -constant / factor, {name: -count / factor for name, count in terms.items()})
        for user in sorted(users.pop(pivot, ())):
            _substitute(pivots[user], pivot, found)
            for name in found.terms:
                users.setdefault(name, set()).add(user)
        pivots[pivot] = found
        for name in found.terms:
            users.setdefault(name, set()).add(pivot)
    for name, found in pivots.items():
        if found.terms:
            continue
        value = found.constant
        if value.denominator == 1 and value >= 1:
            solution.values[name] = int(value)
        else:
            solution.failed.append((found.key, name, value))
    return solution


def _reduced(
    current: Row, known: Mapping[str, int], pivots: Mapping[str, _Pivot]
) -> tuple[Fraction, dict[str, Fraction]]:
    constant = Fraction(current.constant)
    terms: dict[str, Fraction] = {}
    for name, count in current.terms:
        if name in known:
            constant += count * known[name]
        elif name in pivots:
            constant += count * pivots[name].constant
            for other, share in pivots[name].terms.items():
                terms[other] = terms.get(other, Fraction(0)) + count * share
        else:
            terms[name] = terms.get(name, Fraction(0)) + count
    return constant, {name: count for name, count in terms.items() if count != 0}


def _substitute(target: _Pivot, name: str, found: _Pivot) -> None:
    share = target.terms.pop(name, None)
    if share is None:
        return
    target.constant += share * found.constant
    for other, count in found.terms.items():
        total = target.terms.get(other, Fraction(0)) + share * count
        if total:
            target.terms[other] = total
        else:
            target.terms.pop(other, None)


class System:
    """All equations of a file, by the variables in them.  Kept current under edits."""

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        self.rows: dict[Key, tuple[Row, ...]] = {}
        self.by_variable: dict[str, set[Key]] = {}
        self.known: dict[str, int] = dict(known or {})
        """Sizes written as numbers, changed by `know` and `forget`."""
        self._ties: nx.Graph[Key | str] | None = None
        """Each equation with the unknowns in it: made when two unknowns are in one, and kept current from then on."""

    def put(self, key: Key, pairs: Iterable[tuple[Linear, Linear]]) -> tuple[Row, ...]:
        """Add the equation `key`: one row per pair of widths."""
        rows = tuple(row(key, left, right) for left, right in pairs)
        self.rows[key] = rows
        for item in rows:
            for name, _ in item.terms:
                self.by_variable.setdefault(name, set()).add(key)
        if self._ties is not None:
            self._tie(self._ties, key)
        return rows

    def drop(self, key: Key) -> None:
        dropped = self.rows.pop(key, ())
        gone: list[Key | str] = [key]
        for item in dropped:
            for name, _ in item.terms:
                users = self.by_variable.get(name)
                if users is not None:
                    users.discard(key)
                    if not users:
                        del self.by_variable[name]
                        gone.append(name)
        if self._ties is not None:
            self._ties.remove_nodes_from(gone)

    def know(self, values: Mapping[str, int]) -> None:
        """These sizes are written as numbers."""
        self.known.update(values)
        if self._ties is not None:
            self._ties.remove_nodes_from(values)

    def forget(self, name: str) -> None:
        """A size is not written as a number any more."""
        del self.known[name]
        if self._ties is not None:
            self._ties.add_edges_from((name, key) for key in self.by_variable.get(name, ()))

    def variables(self, key: Key) -> set[str]:
        return {name for item in self.rows.get(key, ()) for name, _ in item.terms}

    def region(self, start: Iterable[str]) -> tuple[set[str], set[Key]]:
        """The unknowns tied to `start` through equations, and those equations.

        Known sizes do not tie: what is on their far side has been decided.
        """
        unknowns: set[str] = set()
        keys: set[Key] = set()
        for name in start:
            own = self.by_variable.get(name, set[Key]())
            tied = {other for key in own for other in self.variables(key) if other not in self.known}
            unknowns.add(name)
            if not tied <= {name}:
                for key in own - keys:
                    for each in self._component(key):
                        (keys if isinstance(each, tuple) else unknowns).add(each)  # pyright: ignore[reportArgumentType]
            keys |= own
        return unknowns, keys

    def _component(self, key: Key) -> set[Key | str]:
        """An equation with all equations and unknowns that it is tied to."""
        import networkx as nx

        if self._ties is None:
            self._ties = nx.Graph()
            for each in self.rows:
                self._tie(self._ties, each)
        return nx.node_connected_component(self._ties, key)

    def _tie(self, ties: nx.Graph[Key | str], key: Key) -> None:
        ties.add_node(key)
        ties.add_edges_from((key, name) for name in self.variables(key) if name not in self.known)

    def solve(self, keys: Sequence[Key], freed: str | None = None) -> Solution:
        """Solve the equations `keys`, in this order, with one declared size freed."""
        known = self.known
        if freed is not None and freed in known:
            known = {**{name: known[name] for key in keys for name in self.variables(key) if name in known}}
            known.pop(freed, None)
        return solve((item for key in keys for item in self.rows[key]), known)


def is_rigid(rows: Iterable[Row]) -> bool:
    """True where a template's parameter occurs: the check of each instance decides it."""
    return any(name.startswith("%") for item in rows for name, _ in item.terms)
