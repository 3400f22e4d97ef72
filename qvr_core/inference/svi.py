"""Stochastic variational inference: one optimiser step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.guides.base import Guide
from qvr_core.inference.nonfinite import first_non_finite
from qvr_core.runtime.program import ProgramModule

Objective = Callable[..., Tensor]
"""(model, guide, x, observations) -> a scalar loss."""


class SVI:
    """Minimises `objective` (−ELBO per row, by default of `ELBO`) over the optimiser's parameters."""

    def __init__(self, model: ProgramModule, guide: Guide, optim: torch.optim.Optimizer, objective: Objective) -> None:
        self.model = model
        self.guide = guide
        self.optim = optim
        self.objective = objective

    def step(self, x: object = None, observations: Mapping[str, Any] | None = None) -> float:
        """One gradient step; the loss before it.

        Raises `NonFinite`, naming the site and the quantity, where the loss is not finite; the parameters are then as
        they were.
        """
        self.optim.zero_grad(set_to_none=True)
        loss = self.objective(self.model, self.guide, x, observations)
        loss.backward()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise first_non_finite(self.model, self.guide, x, observations)
        self.optim.step()
        return value

    @torch.no_grad()
    def evaluate(self, x: object = None, observations: Mapping[str, Any] | None = None) -> float:
        """The loss without a step."""
        return float(self.objective(self.model, self.guide, x, observations))
