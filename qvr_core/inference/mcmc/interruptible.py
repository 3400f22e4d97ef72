"""Densities that end a run in the midst of a trajectory, and what lies behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.inference.mcmc.potential import LiftedPotential, Potential, ProgramPotential
from qvr_core.runtime.values.errors import NonFinite

if TYPE_CHECKING:
    from qvr_core.inference.density.recorded import Recorded


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
        if self.ended():
            raise Enough
        return self.inner.value_and_grad(q)

    def initial(self, generator: Generator) -> Tensor:
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


def recorder(potential: Potential) -> Recorded | None:
    """What records and replays the density, where something does."""
    own = uninterrupted(potential)
    return own.recorded if isinstance(own, ProgramPotential | LiftedPotential) and own.record else None
