"""Adaptive solutions in a graph: one loop, in which the state's derivatives run along.

The unknowns of B equations are P columns: the elements of first states and arguments, and the start, as far as they
depend on the position.  Each element of the state has a row (B, P) of derivatives with respect to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Graph, Unsupported, is_known
from qvr_core.arrays.listing import in_graph
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.while_loops import Until, tied
from qvr_core.runtime.programs.chains import implicit
from qvr_core.runtime.programs.chains.adaptive import (
    NODES,
    STAGES,
    Control,
    Explicit,
    Here,
    Method,
    begun,
    combined,
    moved,
)
from qvr_core.runtime.programs.chains.implicit import GAMMA, Implicit, undoing
from qvr_core.runtime.programs.chains.partial_derivatives import elements, slopes_of

Rate = Callable[[Any, Any, Sequence[Any]], Any]
"""The derivative (B, n) at times (B, 1), of states (B, n) and arguments."""


class Unknowns:
    """The columns, and f with its derivatives by them."""

    def __init__(self, graph: Graph, rate: Rate, initial: Array, arguments: Sequence[Array], start: Array) -> None:
        self.graph, self.rate = graph, rate
        self.columns: dict[int, int] = {}
        """By the number of the element as f reads it."""
        self.sources: list[Array] = []
        self.initial = [self._column(one) for one in elements(initial)]
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
        flat = [self._column(one) for one in elements(g.reshape(argument, (argument.shape[0], -1)))]
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
        found = elements(self.rate(when, g.cat(read, 1), self.arguments))
        self.calls.append((when, read, found))
        return found

    def linear(self, time: Any, state: Any, reach: Any) -> tuple[Any, Inverse]:
        """f at times (B, 1) and states, and what undoes I − reach ∂f/∂z."""
        found = self.slope(time, state)
        call = len(self.calls) - 1
        size, rows = len(found), found[0].shape[0]
        matrix = undoing(found, self.calls[call][1], reach)
        if size == 1:
            return found, Inverse(call, [[p("div", self.graph.constant(1.0), g.reshape(matrix, (rows, 1)))]])
        flat = elements(g.reshape(g.inverse(matrix)[0], (rows, size * size)))
        return found, Inverse(call, [flat[size * at : size * (at + 1)] for at in range(size)])

    def rows(self, at: int, moved_by: Sequence[Array], later: Array | None) -> list[Array]:
        """The derivatives of the value of f of a call, where those of its state are rows, and that of its time with
        respect to the start is `later`."""
        when, read, found = self.calls[at]
        times = [] if self.start is None else [when.number]
        made: list[Array] = []
        for one in found:
            slopes = slopes_of(one, [*self.columns, *times, *(each.number for each in read)])
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


@dataclass(frozen=True, slots=True)
class Inverse:
    """Of I − reach ∂f/∂z the inverse, element by element, where `call` is the number of the value of f."""

    call: int
    entries: list[list[Array]]

    def undone(self, right: Any) -> Any:
        """On n elements (B, …)."""
        return [_sum([p("mul", each, one) for each, one in zip(row, right, strict=True)]) for row in self.entries]


def solution(
    graph: Graph,
    rate: Rate,
    initial: Array,
    arguments: Sequence[Array],
    start: Array,
    at: Array,
    control: Control,
    *,
    stiff: bool = False,
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
    method: Any = Implicit(unknowns.slope, _any(unknowns.linear)) if stiff else Explicit(unknowns.slope)
    trial: Any = method.tried(here, begin, length, control)
    # begin and length of the first interval move with the start: the one by 1, the other by −1
    moving = None if unknowns.start is None else g.reshape(p("real", p("eq", place, zero)), start.shape)
    before = (old_rows, old_slopes)
    new_rows, new_slopes = (_carried_implicitly if stiff else _carried)(
        unknowns, method, here, trial, length, before, moving
    )

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
    unknowns: Unknowns,
    method: Method,
    here: Any,
    trial: Any,
    length: Array,
    before: tuple[list[Array], list[Array]],
    moving: Any,
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


def _carried_implicitly(
    unknowns: Unknowns,
    method: Implicit,
    here: Any,
    trial: Any,
    length: Array,
    before: tuple[list[Array], list[Array]],
    moving: Any,
) -> tuple[list[Array], list[Array]]:
    """The same of the implicit method: a stage moves by the linear map of its last iteration."""
    rows, slopes = before
    staged: Any = [slopes]
    new = rows
    graph, width = unknowns.graph, p("mul", trial.part, length)
    gamma = graph.constant(GAMMA)
    reach = p("mul", gamma, width)
    stages: Any = zip(implicit.NODES, implicit.STAGES, method.settled, strict=True)
    for stage, (node, weights, (inner, linear)) in enumerate(stages):
        base = [p("add", row, p("mul", width, _any(combined(weights, staged, at)))) for at, row in enumerate(rows)]
        state, later, shorter = base, None, None
        if moving is not None and unknowns.start is not None:
            part = p("add", here.done, p("mul", graph.constant(node), trial.part))
            later = p("mul", moving, p("sub", graph.constant(1.0), part))
            shorter = p("neg", p("mul", p("mul", moving, trial.part), unknowns.unit(unknowns.start)))
            sums = [_any(combined(weights, trial.slopes[: stage + 1], at)) for at in range(len(rows))]
            base = [p("add", row, p("mul", shorter, total)) for row, total in zip(base, sums, strict=True)]
            state = _shortened(base, gamma, shorter, inner)
        staged.append(linear.undone(unknowns.rows(linear.call, state, later)))
        new = [p("add", row, p("mul", reach, moved_by)) for row, moved_by in zip(base, staged[-1], strict=True)]
        if shorter is not None:
            new = _shortened(new, gamma, shorter, trial.slopes[stage + 1])
    return new, staged[-1]


def _shortened(rows: Sequence[Array], gamma: Array, shorter: Array, slopes: Sequence[Array]) -> list[Array]:
    """Rows with what a stage's own slope adds where its step is shorter."""
    by = [p("mul", shorter, p("mul", gamma, slope)) for slope in slopes]
    return [p("add", row, each) for row, each in zip(rows, by, strict=True)]


def _any(value: Any) -> Any:
    """An array of a graph where the same text is for tensors."""
    return value


def _total(terms: Sequence[Array], graph: Graph, shape: tuple[int, ...]) -> Array:
    return g.expand(_sum(terms), shape) if terms else g.zeros(graph, shape)


def _sum(terms: Sequence[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = p("add", total, term)
    return total
