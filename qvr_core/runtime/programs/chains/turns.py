"""The element that a loop is at: a number, or, where the loop is written down once for all, what stands for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qvr_core.arrays.engine import Tensor
from qvr_core.arrays.listing import FUNCTIONS, in_graph
from qvr_core.arrays.recurrences import Loop


@dataclass(frozen=True, slots=True)
class Turn:
    """The element `first`, `first` + 1, … of the turns of a loop."""

    loop: Loop
    first: int

    def __sub__(self, back: int) -> Turn:
        return Turn(self.loop, self.first - back)

    @property
    def count(self) -> int:
        """How many turns there are."""
        return self.loop.count

    def of(self, series: Tensor, axis: int) -> Tensor:
        """The own element of each turn, of as many along an axis, which is left with length 1."""
        whole: Any = in_graph(series, self.loop.graph)
        at = axis % whole.rank
        return self.loop.item(FUNCTIONS["unsqueeze"](FUNCTIONS["movedim"](whole, at, 0), at + 1))  # pyright: ignore


Element = int | Turn


def element_of(value: Tensor, axis: int, element: Element) -> Tensor:
    """One element along an axis, which is left with length 1."""
    if isinstance(element, Turn):
        return element.of(value.narrow(axis, element.first, element.count), axis)
    return value.narrow(axis, element, 1)
