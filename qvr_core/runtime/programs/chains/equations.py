"""Differential equations: `solve` on the arrays of the engine, or written down as a loop of a graph.

All equations of a step (rows times plates) are rows to the derivative, which is compiled once for one equation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs.chains.recurrences import recurrence
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Evaluate
from qvr_core.runtime.values.cells import Cell, with_rows
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.expressions import Solve


def solution(expr: Solve, rate: Evaluate, given: Sequence[Evaluate]) -> Evaluate:
    """The state at each time, of shape (plates…, T) or (plates…, T, n), by the classical Runge-Kutta method."""
    steps, lead = expr.steps, expr.plates

    def run(frame: Frame) -> Cell:
        cells = [one(frame) for one in given]
        rows = any(cell.rows for cell in cells)
        count = frame.rows if rows else 1
        values = [with_rows(cell, count) if rows else cell.value.unsqueeze(0) for cell in cells]
        plates = arrays.broadcast_shapes(*(value.shape[: 1 + lead] for value in values))
        many = math.prod(plates)
        flat = [
            value.to(precision()).expand(*plates, *value.shape[1 + lead :]).reshape(many, *value.shape[1 + lead :])
            for value in values
        ]
        initial, *arguments, start, at = flat
        inner = Frame(frame.program, frame.request, many, None, False, {}, device=frame.device)
        inner.bound.update({name: Cell(value, True) for name, value in zip(expr.names[2:], arguments, strict=True)})

        def slope(time: Tensor, state: Tensor) -> Tensor:
            inner.bound[expr.names[0]], inner.bound[expr.names[1]] = Cell(time, True), Cell(state, True)
            return with_rows(rate(inner), many)

        times = at.movedim(1, 0)
        before = arrays.cat([start.unsqueeze(0), times[:-1]], 0)
        width = ((times - before) / steps).unsqueeze(1)
        turns = arrays.arange(steps, device=frame.device).to(precision()).reshape(1, steps, 1)
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
        whole = found.reshape(*plates, *found.shape[1:])
        return Cell(whole if rows else whole.squeeze(0), rows)

    return run
