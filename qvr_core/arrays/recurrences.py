"""Loops of a graph: one turn is written down, and runs as often as there are elements.

What a turn reads are `turn` nodes: the row of an *item*, which is known for all turns beforehand, or a *state*, which
earlier turns have made.  What depends on neither is computed once, before the loop.  A node `loop` gives, flat and one
behind the other, the series of each state with its first elements in front (depth + T, …), what each turn emits
(T, …), and the sums over turns of what is to be added up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import CASTS, Array, Graph, is_known
from qvr_core.operations.table import nodes_that_are

CHEAP = nodes_that_are("cheap") | frozenset(CASTS)
"""Operations that the derivative of a loop does again; what others have made is kept for it."""
_families = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A value that a turn makes and later ones read: `back[k]` is that of k + 1 turns before, `made` the new one."""

    back: tuple[Array, ...]
    made: Array


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A turn.  `nodes` are those that it computes, in order, `items` what it reads of rows, `captured` what it reads
    from outside; the arguments of its node are first elements (oldest first), rows and captured values.  In reverse
    the last row is the first turn's.  What is `kept` stands behind what is emitted, for the derivative."""

    count: int
    reverse: bool
    states: tuple[State, ...]
    items: tuple[Array, ...]
    emitted: tuple[Array, ...]
    kept: tuple[Array, ...]
    summed: tuple[Array, ...]
    captured: tuple[Array, ...]
    nodes: tuple[Array, ...]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of what the loop gives, in order."""
        series = [(len(state.back) + self.count, *state.made.shape) for state in self.states]
        emitted = [(self.count, *each.shape) for each in (*self.emitted, *self.kept)]
        return [*series, *emitted, *(tuple(each.shape) for each in self.summed)]

    def parts(self, flat: Array) -> list[Array]:
        """What the loop gives, or what stands beside it in the same order, cut apart."""
        found: list[Array] = []
        start = 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            found.append(g.reshape(g.cut(flat, 0, start, stop), shape))
            start = stop
        return found


class Loop:
    """A loop that is being written down; `like` is another whose turns it reads, row by row."""

    def __init__(self, graph: Graph, count: int, *, reverse: bool = False, like: Array | None = None) -> None:
        self.graph, self.count, self.reverse = graph, count, reverse
        self.family = next(_families)
        self.families = {self.family}
        self.rows: dict[int, Array] = {}
        """The rows of each item, by the number of what a turn reads."""
        self.starts: dict[int, Array] = {}
        self.first = len(graph.nodes)
        """No node before this one differs between turns."""
        if like is not None:
            body: Body = like.params[0]
            turns = [*body.items, *(one for state in body.states for one in state.back)]
            self.families |= {turn.params[0] for turn in turns}
            self.first = min((turn.number for turn in turns), default=self.first)
            first = sum(len(state.back) for state in body.states)
            self.rows.update(zip((item.number for item in body.items), like.args[first:], strict=False))

    def item(self, rows: Array) -> Array:
        """The own row of each turn, of (T, …)."""
        data = rows.data if rows.op == "constant" else None
        made = self.graph.turn(self.family, data, tuple(rows.shape[1:]), rows.kind)
        self.rows[made.number] = rows
        return made

    def state(self, start: Array) -> Array:
        """What an earlier turn has made; `start` before there was one."""
        made = self.graph.turn(self.family, None, tuple(start.shape), "real")
        self.starts[made.number] = start
        return made

    def run(
        self, states: Iterable[State], emitted: Sequence[Array] = (), summed: Sequence[Array] = ()
    ) -> tuple[Array, list[Array]]:
        """The node of the loop, and what it gives: series, emitted rows, sums."""
        states = tuple(states)
        outputs = [*(state.made for state in states), *emitted, *summed]
        inside = self._inside(outputs)
        back = {one.number for state in states for one in state.back}
        given = [node for node in inside if node.number in self.rows or node.op == "turn"]
        turns = [node for node in given if node.number not in back]
        known = {node.number for node in given}
        nodes = tuple(node for node in inside if node.number not in known)
        kept = () if self.reverse else tuple(node for node in nodes if node.op not in CHEAP)
        own = {node.number for node in inside}
        read = {arg.number: arg for arg in (*(arg for node in nodes for arg in node.args), *outputs)}
        captured = tuple(read[number] for number in sorted(read) if number not in own)
        body = Body(
            self.count, self.reverse, states, tuple(turns), tuple(emitted), kept, tuple(summed), captured, nodes
        )
        starts = [self.starts[one.number] for state in states for one in reversed(state.back)]
        size = sum(map(math.prod, body.shapes))
        args = (*starts, *map(self._rows_of, turns), *captured)
        made = self.graph.make("loop", args, (body,), (size,), "real")
        parts = body.parts(made)
        del parts[len(states) + len(emitted) : len(states) + len(emitted) + len(kept)]
        return made, parts

    def _rows_of(self, turn: Array) -> Array:
        if turn.number not in self.rows:
            assert is_known(turn)
            self.rows[turn.number] = self.graph.rows_of(turn)
        return self.rows[turn.number]

    def _inside(self, outputs: Sequence[Array]) -> list[Array]:
        """The nodes that differ between turns, in order."""
        inside: dict[int, bool] = {}
        left = [(node, False) for node in outputs]
        while left:
            node, seen = left.pop()
            if seen:
                inside[node.number] = any(inside[arg.number] for arg in node.args)
            elif node.number not in inside:
                if node.op == "turn" or node.number in self.rows:
                    inside[node.number] = node.number in self.rows or node.params[0] in self.families
                    continue
                inside[node.number] = False
                if node.number >= self.first:
                    left.append((node, True))
                    left.extend((arg, False) for arg in node.args)
        return [self.graph.nodes[number] for number in sorted(inside) if inside[number]]
