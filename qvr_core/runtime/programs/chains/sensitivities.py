"""Adaptive solutions in a graph: one loop, in which the state's derivatives run along.

The unknowns of B equations are P columns: the elements of first states and arguments, and the start, as far as they
depend on the position.  Each element of the state has a row (B, P) of derivatives with respect to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.accumulation import add_slope, carry_back
from qvr_core.arrays.graph import Array, Graph, Unsupported, is_known, known
from qvr_core.arrays.listing import in_graph
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.while_loops import Until, tied
from qvr_core.runtime.programs.chains.adaptive import (
    NODES,
    STAGES,
    Control,
    Here,
    begun,
    combined,
    moved,
    tried,
)

Rate = Callable[[Any, Any, Sequence[Any]], Any]
"""The derivative (B, n) at times (B, 1), of states (B, n) and arguments."""


class Unknowns:
    """The columns, and f with its derivatives by them."""

    def __init__(self, graph: Graph, rate: Rate, initial: Array, arguments: Sequence[Array], start: Array) -> None:
        self.graph, self.rate = graph, rate
        self.columns: dict[int, int] = {}
        """By the number of the element as f reads it."""
        self.sources: list[Array] = []
        self.initial = [self._column(one) for one in _elements(initial)]
        self.arguments = [self._taken(one) for one in arguments]
        self.start = None if is_known(start) else len(self.sources)
        if self.start is not None:
            self.sources.append(start)
        self.calls: list[tuple[Array, list[Array], list[Array]]] = []
        """Of each value of f its time, its states and what it is."""

    def _column(self, element: Array) -> Array:
        """An element (B, 1) as f reads it."""
        if is_known(element):
            return element
        read = p("stop", element)
        if read.number not in self.columns:
            self.columns[read.number] = len(self.sources)
            self.sources.append(element)
        return read

    def _taken(self, argument: Array) -> Array:
        if is_known(argument):
            return argument
        flat = [self._column(one) for one in _elements(g.reshape(argument, (argument.shape[0], -1)))]
        return g.reshape(g.cat(flat, 1) if flat else argument, argument.shape)

    @property
    def width(self) -> int:
        """P."""
        return len(self.sources)

    def unit(self, column: int) -> Array:
        """1 in one column, (P,)."""
        return self.graph.constant([float(at == column) for at in range(self.width)])

    def own_row(self, element: Array) -> Array:
        """The row of an element of the first state, as f reads it."""
        own = self.columns.get(element.number)
        shape = (element.shape[0], self.width)
        return g.zeros(self.graph, shape) if own is None else g.expand(self.unit(own), shape)

    def slope(self, time: Any, state: Any) -> Any:
        """f at times (B, 1) and states, element by element."""
        when = p("stop", in_graph(time, self.graph))
        read = [p("stop", in_graph(one, self.graph)) for one in state]
        found = _elements(self.rate(when, g.cat(read, 1), self.arguments))
        self.calls.append((when, read, found))
        return found

    def rows(self, at: int, moved_by: Sequence[Array], later: Array | None) -> list[Array]:
        """The derivatives of the value of f of a call, where those of its state are rows, and that of its time with
        respect to the start is `later`."""
        when, read, found = self.calls[at]
        times = [] if self.start is None else [when.number]
        made: list[Array] = []
        for one in found:
            slopes = _slopes(one, [*self.columns, *times, *(each.number for each in read)])
            terms: list[Array] = []
            for each, row in zip(read, moved_by, strict=True):
                slope = slopes.pop(each.number, None)
                if slope is not None:
                    terms.append(p("mul", slope, row))
            if later is not None and self.start is not None and (slope := slopes.pop(when.number, None)) is not None:
                terms.append(p("mul", p("mul", slope, later), self.unit(self.start)))
            for number, column in self.columns.items():
                slope = slopes.pop(number, None)
                if slope is not None:
                    terms.append(p("mul", slope, self.unit(column)))
            made.append(_total(terms, self.graph, (one.shape[0], self.width)))
        return made


def solution(
    graph: Graph, rate: Rate, initial: Array, arguments: Sequence[Array], start: Array, at: Array, control: Control
) -> Array:
    """The state (B, T, n) at times (B, T), with its derivatives.  Raises `Unsupported` where times are no data."""
    if not is_known(at):
        raise Unsupported("times of a differential equation that depend on latents")
    count = at.shape[1]
    begins = g.cat([start, g.cut(at, 1, 0, count - 1)], 1)
    lengths = p("sub", at, begins)
    unknowns = Unknowns(graph, rate, initial, arguments, start)
    one, zero = graph.constant(1.0), graph.constant(0.0)
    elements: Any = unknowns.initial
    first: Any = begun(unknowns.slope, elements, _any(start), control)
    rows = [unknowns.own_row(each) for each in unknowns.initial]
    slopes = unknowns.rows(0, rows, one)

    loop = Until(graph, count, control.most * count)
    here: Any = Here(
        _any([loop.state(g.expand(each, start.shape)) for each in first.z]),
        _any([loop.state(g.expand(each, start.shape)) for each in first.k]),
        *(_any(loop.state(each)) for each in (first.done, first.step, first.tried, first.lost)),
    )
    place, active = loop.state(g.zeros(graph, (start.shape[0],))), loop.state(g.expand(one, start.shape))
    old_rows, old_slopes = [loop.state(each) for each in rows], [loop.state(each) for each in slopes]
    begin, length = (_any(loop.element(g.reshape(each, (*each.shape, 1)))) for each in (begins, lengths))
    del unknowns.calls[:]
    trial: Any = tried(unknowns.slope, here, begin, length, control)
    # begin and length of the first interval move with the start: the one by 1, the other by −1
    moving = None if unknowns.start is None else g.reshape(p("real", p("eq", place, zero)), start.shape)
    new_rows, new_slopes = _carried(unknowns, here, trial, length, (old_rows, old_slopes), moving)

    moved_to: Any = moved(here, trial, length, control)
    then, arrived = moved_to
    going = p("gt", active, zero)
    taken, there = p("and", trial.taken, going), p("and", arrived, going)

    def selected(old: Array, new: Array, where: Array = going) -> Array:
        return p("where", where, new, old)

    reached = p("real", there)
    last = g.reshape(p("real", p("eq", place, graph.constant(float(count - 1)))), start.shape)
    left = p("mul", active, p("sub", one, p("mul", reached, last)))
    further = p("add", place, g.reshape(p("mul", reached, p("sub", one, last)), place.shape))
    z = list(map(selected, here.z, then.z))
    carried = [selected(old, new, taken) for old, new in zip(old_rows, new_rows, strict=True)]
    states = [
        *zip(here.z, z, strict=True),
        *zip(here.k, map(selected, here.k, then.k), strict=True),
        (here.done, p("where", there, zero, selected(here.done, then.done))),
        (here.step, selected(here.step, then.step)),
        (here.tried, p("where", there, zero, selected(here.tried, then.tried))),
        (here.lost, selected(here.lost, then.lost)),
        (place, further),
        (active, left),
        *zip(old_rows, carried, strict=True),
        *((old, selected(old, new, taken)) for old, new in zip(old_slopes, new_slopes, strict=True)),
    ]
    series = loop.last(states, place, [*z, *carried], g.reduce("sum", left))
    sources = g.cat([g.reshape(each, start.shape) for each in unknowns.sources], 1) if unknowns.sources else None
    found: list[Array] = []
    for value, row in zip(series[: len(z)], series[len(z) :], strict=True):
        flat = g.reshape(value, at.shape)
        found.append(g.reshape(flat if sources is None else tied(flat, row, sources), (*at.shape, 1)))
    return g.cat(found, 2)


def _carried(
    unknowns: Unknowns, here: Any, trial: Any, length: Array, before: tuple[list[Array], list[Array]], moving: Any
) -> tuple[list[Array], list[Array]]:
    """The rows behind a step, of the state and of its slope, where `before` are those in front of it; `moving` is 1 in
    the first interval, whose start may move."""
    rows, slopes = before
    staged: Any = [slopes]
    new = rows
    graph, width = unknowns.graph, p("mul", trial.part, length)
    for call, (node, weights) in enumerate(zip(NODES[1:], STAGES[1:], strict=True)):
        new = [p("add", row, p("mul", width, _any(combined(weights, staged, at)))) for at, row in enumerate(rows)]
        later = None
        if moving is not None and unknowns.start is not None:
            part = p("add", here.done, p("mul", graph.constant(node), trial.part))
            later = p("mul", moving, p("sub", graph.constant(1.0), part))
            shorter = p("neg", p("mul", p("mul", moving, trial.part), unknowns.unit(unknowns.start)))
            sums = [_any(combined(weights, trial.slopes[: call + 1], at)) for at in range(len(rows))]
            new = [p("add", row, p("mul", shorter, total)) for row, total in zip(new, sums, strict=True)]
        staged.append(unknowns.rows(call, new, later))
    return new, staged[-1]


def _any(value: Any) -> Any:
    """An array of a graph where the same text is for tensors."""
    return value


def _slopes(of: Array, leaves: Sequence[int]) -> dict[int, Array]:
    """The derivatives of (B, 1) with respect to leaves, beyond which nothing is looked at; zeros are left out."""
    graph, depends = of.graph, set(leaves)
    inside: set[int] = set()
    left = [of]
    while left:
        node = left.pop()
        if node.number not in inside and node.number not in depends and not node.constant:
            inside.add(node.number)
            left.extend(node.args)
    reached: list[Array] = []
    for number in sorted(inside):
        node = graph.nodes[number]
        if any(arg.number in depends for arg in node.args):
            depends.add(number)
            reached.append(node)
    slopes: dict[int, Array] = {}
    if of.number in depends:
        add_slope(slopes, of, g.expand(graph.constant(1.0), of.shape))
    carry_back(slopes, reversed(reached), depends)
    return {number: slopes[number] for number in leaves if number in slopes and known(slopes[number]) != 0.0}


def _elements(value: Any) -> list[Array]:
    """(B, n) as n of (B, 1)."""
    return [g.cut(value, 1, at, at + 1) for at in range(value.shape[1])]


def _total(terms: Sequence[Array], graph: Graph, shape: tuple[int, ...]) -> Array:
    if not terms:
        return g.zeros(graph, shape)
    total = terms[0]
    for term in terms[1:]:
        total = p("add", total, term)
    return g.expand(total, shape)
