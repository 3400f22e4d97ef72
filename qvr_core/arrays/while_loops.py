"""Loops of a graph that end where a turn says so: of their states only the last ones are kept.

A turn reads *states*, which the turn before has made, and of *series* (B, T, …) the element (B, …) at its own place of
each of B rows, a state of whole numbers; what it *puts* is stored at the same place of a series of its own.  A node
`until` gives, flat and one behind the other, the series that were put.  It has no derivative: whoever writes it down
carries one along as more states, and says so by a node `tied`, whose value is its first argument and whose derivative
with respect to the last is the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Graph, Unsupported
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.recurrences import Loop
from qvr_core.arrays.reverse_accumulation import rule, unbroadcast


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A turn, of `most` at most.  `states` are pairs: what it reads, and what it makes of that; `place` is one of those
    read.  It is the last one where `going` is not above 0.  The arguments of the node are first states, series and what
    is captured."""

    most: int
    states: tuple[tuple[Array, Array], ...]
    place: Array
    items: tuple[Array, ...]
    put: tuple[Array, ...]
    going: Array
    captured: tuple[Array, ...]
    nodes: tuple[Array, ...]
    length: int
    """T, of the series."""

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the series that it gives, (B, T, …)."""
        return [(each.shape[0], self.length, *each.shape[1:]) for each in self.put]


class Until(Loop):
    """A loop that is being written down, over series of T elements, in at most `most` turns."""

    def __init__(self, graph: Graph, length: int, most: int) -> None:
        super().__init__(graph, most)
        self.length = length

    def element(self, series: Array) -> Array:
        """That of (B, T, …) at the place of the turn, (B, …)."""
        made = self.graph.turn(self.family, None, (series.shape[0], *series.shape[2:]), "real")
        self.rows[made.number] = series
        return made

    def last(
        self, states: Sequence[tuple[Array, Array]], place: Array, put: Sequence[Array], going: Array
    ) -> list[Array]:
        """Write the node down: the series of what is put."""
        outputs = [*(made for _, made in states), *put, going]
        inside = self._inside(outputs)
        items = tuple(node for node in inside if node.number in self.rows)
        known = {node.number for node in items} | {read.number for read, _ in states}
        nodes = tuple(node for node in inside if node.number not in known)
        own = {node.number for node in inside} | known
        read = {arg.number: arg for arg in (*(arg for node in nodes for arg in node.args), *outputs)}
        captured = tuple(read[number] for number in sorted(read) if number not in own)
        turn = Turn(self.count, tuple(states), place, items, tuple(put), going, captured, nodes, self.length)
        args = (*(self.starts[one.number] for one, _ in states), *(self.rows[one.number] for one in items), *captured)
        whole = self.graph.make("until", args, (turn,), (sum(map(math.prod, turn.shapes)),), "real")
        found: list[Array] = []
        first = 0
        for shape in turn.shapes:
            found.append(p("stop", g.reshape(g.cut(whole, 0, first, first + math.prod(shape)), shape)))
            first += math.prod(shape)
        return found


def tied(value: Array, slopes: Array, of: Array) -> Array:
    """`value` (B, …, m), whose derivative with respect to `of` (B, k) is `slopes` (B, …, m, k)."""
    return value.graph.make("tied", (value, slopes, of), (), value.shape, "real")


@rule("until")
def _until(node: Array, d: Array) -> Sequence[Array | None]:
    raise Unsupported("the derivative of a loop that ends by itself")


@rule("tied")
def _tied(node: Array, d: Array) -> Sequence[Array | None]:
    _, slopes, of = node.args
    whole = p("mul", g.reshape(d, (*d.shape, 1)), slopes)
    return [d, None, unbroadcast(g.reduce("sum", whole, range(1, whole.rank - 1)), of.shape)]
