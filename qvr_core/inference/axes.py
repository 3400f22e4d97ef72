"""What the axes of draws are called: the sets that a site or a let runs over, with the labels of their elements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from qvr_core.runtime.programs.labelled.axes import Axes, Axis, let_axes, site_axes
from qvr_core.runtime.programs.missing.gaps import Gaps
from qvr_core.runtime.programs.program import ProgramModule


def axes_of(model: ProgramModule, observations: Mapping[str, Any] | None = None) -> Axes:
    """The axes of all sites and lets of a program; of a step whose missing cells are latents, the axis of the cells."""
    found = site_axes(model.program) | let_axes(model.program)
    gaps = model.missing(observations or {})
    return found | {name: _of_cells(name, one, found.get(name, ())) for name, one in gaps.items()}


def element_names(name: str, shape: Sequence[int], axes: Sequence[Axis] = ()) -> list[str]:
    """`mu`, or `theta[0]`, `theta[1]`, …, or `beta[floor]` where an axis has labels: what tables, warnings and files
    call the numbers of a site."""
    return list(each_element(name, shape, [axis.labels for axis in axes]))


def each_element(name: str, shape: Sequence[int], labels: Sequence[tuple[str | int, ...] | None] = ()) -> Iterator[str]:
    """The same, one by one: those of a large site are not all wanted."""
    if math.prod(shape) == 1 and not any(own is not None and len(own) == 1 for own in labels):
        yield name
        return
    known = [*labels, *[None] * len(shape)]
    each = [
        own if own is not None and len(own) == size else range(size) for own, size in zip(known, shape, strict=False)
    ]
    yield from (f"{name}[{', '.join(map(str, index))}]" for index in product(*each))


def _of_cells(name: str, gaps: Gaps, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axis of the missing cells, each called by the labels of all its axes; those of one value behind it."""
    shape = gaps.cells.shape if gaps.whole else gaps.filled.shape
    places = np.unravel_index(gaps.index.cpu().numpy(), tuple(shape))
    known = [*(axis.labels for axis in axes), *[None] * len(shape)]
    called: list[list[str]] = [
        [str(at) if own is None or len(own) != size else str(own[at]) for at in map(int, place)]
        for place, own, size in zip(places, known, shape, strict=False)
    ]
    cells = Axis(f"{name}_missing", tuple(", ".join(cell) for cell in zip(*called, strict=True)))
    return (cells, *axes[gaps.cells.ndim :]) if gaps.whole else (cells,)
