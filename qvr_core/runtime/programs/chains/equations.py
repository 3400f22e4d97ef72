"""Differential equations: `solve` on the arrays of the engine, or written down as a loop of a graph.

All equations of a step (rows times plates) are rows to the derivative, which is compiled once for one equation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, broadcasting
from qvr_core.arrays.graph import current
from qvr_core.arrays.listing import in_graph
from qvr_core.runtime.programs.chains import adaptive, sensitivities
from qvr_core.runtime.programs.chains.adaptive import Control
from qvr_core.runtime.programs.chains.recurrences import recurrence
from qvr_core.runtime.programs.chains.times import Times
from qvr_core.runtime.programs.chains.written_trials import method_of
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Evaluate
from qvr_core.runtime.values.cells import Cell, with_rows
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.expressions import Solve

Slope = Callable[..., Tensor]
"""f(t, z) of all B equations at times (B,), of states (B, …) and, where others than their own are given, arguments."""


def solution(expr: Solve, rate: Evaluate, given: Sequence[Evaluate]) -> Evaluate:
    """The state at each time, of shape (plates…, T) or (plates…, T, n)."""
    lead, times = expr.plates, Times(expr)

    def run(frame: Frame) -> Cell:
        cells = [one(frame) for one in given]
        rows = any(cell.rows for cell in cells)
        count = frame.rows if rows else 1
        values = [with_rows(cell, count) if rows else cell.value.unsqueeze(0) for cell in cells]
        plates = broadcasting.broadcast_shapes(*(value.shape[: 1 + lead] for value in values))
        many = math.prod(plates)
        flat = [
            value.to(precision()).expand(*plates, *value.shape[1 + lead :]).reshape(many, *value.shape[1 + lead :])
            for value in values
        ]
        times.check(values[-1], values[-2].unsqueeze(-1), frame)
        initial, *arguments, start, at = flat
        inner = Frame(frame.program, frame.request, many, None, False, {}, device=frame.device)

        def slope(time: Tensor, state: Tensor, given: Sequence[Tensor] = arguments) -> Tensor:
            read = zip(expr.names, (time, state, *given), strict=True)
            inner.bound.clear()
            inner.bound.update({name: Cell(one, True) for name, one in read})
            return with_rows(rate(inner), many)

        if expr.method == "rk4":
            found = _in_equal_steps(slope, initial, start, at, expr.steps)
        else:
            control, stiff = Control(expr.rtol, expr.atol, expr.max_steps), expr.method == "stiff"
            found = _adaptive(slope, initial, arguments, start, at, control, stiff=stiff)
        if frame.parent is None:
            ended = ~(found.abs() < math.inf)
            frame.ended.append(ended.reshape(plates[0], -1).any(-1))
        whole = found.reshape(*plates, *found.shape[1:])
        return Cell(whole if rows else whole.squeeze(0), rows)

    return run


def _in_equal_steps(slope: Slope, initial: Tensor, start: Tensor, at: Tensor, steps: int) -> Tensor:
    """The state (B, T, …) by the classical Runge-Kutta method."""
    many = len(start)
    times = at.movedim(1, 0)
    before = arrays.cat([start.unsqueeze(0), times[:-1]], 0)
    width = ((times - before) / steps).unsqueeze(1)
    turns = arrays.arange(steps, device=at.device).to(precision()).reshape(1, steps, 1)
    begins = (before.unsqueeze(1) + turns * width).reshape(-1, many)
    widths = width.expand(len(times), steps, many).reshape(-1, many)

    def step(states: Sequence[Tensor], items: Sequence[Tensor]) -> Sequence[Tensor]:
        (state,), (time, whole) = states, items
        h = whole if state.ndim == 1 else whole.unsqueeze(-1)
        one = slope(time, state)
        two = slope(time + whole / 2, state + h / 2 * one)
        three = slope(time + whole / 2, state + h / 2 * two)
        four = slope(time + whole, state + h * three)
        return [state + h / 6 * (one + 2 * two + 2 * three + four)]

    (series,) = recurrence([initial], [begins, widths], step)
    found = series[steps::steps].movedim(0, 1)
    # a start behind the first time, of a latent one, has no solution
    late = (at[:, 0] < start).reshape(many, *(1,) * (found.ndim - 1))
    return arrays.where(late, arrays.full_like(found, math.nan), found)


def _adaptive(
    slope: Slope,
    initial: Tensor,
    arguments: Sequence[Tensor],
    start: Tensor,
    at: Tensor,
    control: Control,
    *,
    stiff: bool,
) -> Tensor:
    """The state (B, T, …) by steps of a length that its error allows."""
    alone = initial.ndim == 1
    whole, begin = initial.reshape(len(initial), -1), start.unsqueeze(1)

    def rate(time: Tensor, state: Tensor, given: Sequence[Tensor] = arguments) -> Tensor:
        found = slope(time.squeeze(1), state.squeeze(1) if alone else state, given)
        return found.unsqueeze(1) if alone else found

    graph = current()
    if graph is None:
        made = method_of(rate, arguments, whole, control, stiff=stiff)
        found = adaptive.solved(made, whole, begin, at, control)
    else:
        first, begins, times, *known = (in_graph(one, graph) for one in (whole, begin, at, *arguments))
        solved: Any = sensitivities.solution(graph, rate, first, known, begins, times, control, stiff=stiff)
        found = solved
    return found.squeeze(2) if alone else found
