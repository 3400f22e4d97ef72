"""A compiled density at its address, with the constants that it reads; wants neither torch nor the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen.build import address_of
from qvr_core.codegen.intrinsics import DENSITY
from qvr_core.codegen.source import Text

Array = NDArray[Any]


@dataclass(slots=True)
class MachineDensity:
    """A compiled density: its address, the constants it reads, and the room that each chain lends it."""

    address: int
    width: int
    room: int
    reals: Array
    wholes: Array
    keeps: Any
    """The compiled code, which must outlive its address."""
    source: str
    """The text that it was compiled from."""

    @classmethod
    def of(cls, text: Text, width: int) -> MachineDensity:
        """The compiled text of a density over `width` numbers.  Raises whatever the compiler raises."""
        address, keeps = address_of(text)
        reals, wholes = np.array(text.reals or [0.0]), np.array(text.wholes or [0], dtype=np.int64)
        return cls(address, width, text.room, reals, wholes, keeps, text.source)

    def __call__(self, q: Array) -> tuple[float, Array]:
        """Value and gradient at a position (D,)."""
        here = np.ascontiguousarray(q, dtype=np.float64)
        gradient, room = np.empty(self.width), np.empty(max(self.room, 1))
        arrays = (here, gradient, room, self.reals, self.wholes)
        value = DENSITY(self.address)(*(array.ctypes.data for array in arrays))
        return float(value), gradient
