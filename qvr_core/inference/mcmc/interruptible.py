"""Densities that end a run in the midst of a trajectory, and what lies behind them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.mcmc.potential import Potential
from qvr_core.runtime.values.errors import NonFinite


class Enough(Exception):
    """Raised by a watch, or inside a density, to end the chains with the draws made so far."""


class Interruptible:
    """A potential that raises `Enough` once `ended` says so, in the midst of a trajectory too."""

    def __init__(self, inner: Potential, ended: Callable[[], bool]) -> None:
        self.inner = inner
        self.ended = ended
        self.width, self.dtype, self.vectorised = inner.width, inner.dtype, inner.vectorised
        self.advice = inner.advice

    def value_and_grad(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Log density (C,) and gradient (C, width) of the potential inside.  Raises `Enough` once it has ended."""
        if self.ended():
            raise Enough
        return self.inner.value_and_grad(q)

    def initial(self, generator: np.random.Generator) -> Tensor:
        return self.inner.initial(generator)

    def find_initial_position(self, q: Tensor) -> Tensor:
        return self.inner.find_initial_position(q)

    def report(self, q: Tensor) -> dict[str, Tensor]:
        return self.inner.report(q)

    def blame(self, q: Tensor) -> NonFinite | None:
        return self.inner.blame(q)


def uninterrupted(potential: Potential) -> Potential:
    """The potential itself."""
    return potential.inner if isinstance(potential, Interruptible) else potential
