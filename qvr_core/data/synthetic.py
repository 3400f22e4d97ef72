"""Data drawn from the program itself under a fixed seed: the default of a run, and a check that it can be fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.data.binding import RowsOf, Whole
from qvr_core.data.needs import Need, Needs

# Rows of a data name whose length nothing says.
STATISTICAL_ROWS = 64


def synthetic(
    needs: Needs,
    draw: Callable[[Any, Mapping[str, Tensor]], Mapping[str, Tensor]],
    *,
    rows: int,
    length: int,
    seed: int,
) -> RowsOf | Whole:
    """Inputs and data names at random, then the observed sites as the program draws them.

    `draw(x, data)` gives a value for every observed site.  Finite inputs are uniform, real ones standard normal
    (reflected or squashed into their bounds); sequences have `length` positions.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if needs.statistical:
            count = _plate_rows(needs)
            data = {need.name: _values(need, count, length) for need in needs.data}
            return Whole({**data, **draw(None, data)})
        inputs = [_values(need, rows, length) for need in needs.inputs]
        x = inputs[0] if len(inputs) == 1 else tuple(inputs)
        data = {need.name: _values(need, rows, length) for need in needs.data}
        return RowsOf(x, {**data, **draw(x, data)})


def _plate_rows(needs: Needs) -> int:
    """The length of an indexed likelihood: its plate's size."""
    sizes = [need.plate[1] for need in needs.observed if need.plate is not None]
    return sizes[0] if sizes else STATISTICAL_ROWS


def _values(need: Need, rows: int, length: int) -> Tensor:
    shape: tuple[int, ...] = (rows, length) if need.sequence else (rows,)
    if need.kind == "finite":
        return torch.randint(need.size or 2, shape)
    if need.kind == "count":
        return torch.randint(10, shape)
    if need.role == "input" or need.width > 1:
        shape = (*shape, need.width)
    noise = torch.randn(shape)
    match need.low, need.high:
        case None, None:
            return noise.abs() + 0.5 if need.kind == "any" else noise
        case float(low), None:
            return low + noise.abs() + 0.1
        case None, float(high):
            return high - noise.abs() - 0.1
        case float(low), float(high):
            return low + (high - low) * noise.sigmoid()
        case _:
            return noise
