"""A point: maximum a posteriori."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, nn
from qvr_core.inference.coordinates import Coordinate, standard_normal
from qvr_core.inference.guides.base import CoordinateGuide
from qvr_core.runtime.programs.program import ProgramModule


class AutoDeltaGuide(CoordinateGuide):
    """One point per latent, shared across rows, starting at zero noise (the model's median) or unconstrained zero, and
    weights with a prior where a network's do."""

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, observed_names, x=x, observations=observations)
        self.loc = nn.ParameterDict({block.key: nn.Parameter(self.start_of(block, model)) for block in self.blocks})

    def draw_block(
        self, block: Coordinate, shape: tuple[int, ...], generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The point itself, `shape`, and log p of the standard normal (B,): a point has no density of its own."""
        z = self.loc[block.key].expand(shape)
        return z, standard_normal(z) if block.standard else z.new_zeros(shape[0])
