"""Finite sets, and tables of numbers over them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Place = tuple[int, ...]


@dataclass(frozen=True)
class Set:
    """A declared finite set."""

    name: str
    size: int
    labels: tuple[str, ...] = ()

    def line(self, is_open: bool) -> str:
        """Its declaration; an open one has its size with the data."""
        if self.labels:
            return f"object {self.name} : {{{', '.join(self.labels)}}}"
        return f"object {self.name} : FinSet {'_' if is_open else self.size}"


def places(axes: Iterable[Set]) -> Iterable[Place]:
    """Every place of these axes, in order."""
    return itertools.product(*(range(axis.size) for axis in axes))


@dataclass(frozen=True)
class Table:
    """A number for each place of a shape: data, latents, what a let computes."""

    shape: Place
    cells: dict[Place, float]

    @staticmethod
    def filled(shape: Place, number: Callable[[], float]) -> Table:
        """A table whose numbers are drawn in order."""
        return Table(shape, {place: number() for place in itertools.product(*map(range, shape))})

    @staticmethod
    def of(values: NDArray[np.float64]) -> Table:
        """The table of an array."""
        return Table(values.shape, {place: float(values[place]) for place in np.ndindex(*values.shape)})

    def array(self) -> NDArray[np.float64]:
        """As an array."""
        numbers = np.zeros(self.shape)
        for place, number in self.cells.items():
            numbers[place] = number
        return numbers


MODERATE = (1e-5, 1e4)
"""Sizes of values that densities are compared at."""


def far(values: dict[str, Table]) -> bool:
    """Whether values are so far out, or so near to the end of a support, that densities have few digits there."""
    return any(
        not MODERATE[0] <= abs(x) <= MODERATE[1] or 1.0 - MODERATE[0] < x < 1.0
        for table in values.values()
        for x in table.cells.values()
        if not math.isnan(x) and x != 0.0
    )
