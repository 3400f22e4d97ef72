"""Sizes of chains of kernels, for those who ask whether arrows make one before anything is loaded that runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageShape:
    """A stage: kernels per lane, widths, and the scale of the noise."""

    kernels: int
    inside: int
    hidden: int
    size: int
    scale: float


@dataclass(frozen=True, slots=True)
class ChainShape:
    """Lanes and stages of a chain."""

    lanes: int
    stages: tuple[StageShape, ...]

    def groups(self, stage: StageShape) -> int:
        return self.lanes * stage.kernels
