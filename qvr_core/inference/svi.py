"""Stochastic variational inference: one optimiser step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.compiled_loss import CompiledLoss
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.nonfinite import finite, first_non_finite
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import NonFinite, NothingToFit

Objective = Callable[..., Tensor]
"""(model, guide, x, observations) -> a scalar loss."""


def _unread(model: ProgramModule) -> str:
    """Why no gradient reaches anything."""
    names = [f"`{name}`" for name, parameter in model.named_parameters() if parameter.requires_grad]
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    stand = f"none of its parameters ({some}) has a part in what is scored on these data" if names else "it has none"
    return f"program `{model.name}`: there is nothing to fit, for {stand}"


class SVI:
    """Minimises `objective` (−ELBO per row, by default of `ELBO`) over the optimiser's parameters.

    `compile` makes one graph of loss and gradients and hands it to torch.compile: half a minute for the first step of
    each shape of the data (a few seconds where the cache on disk knows it), then a fraction of the time.  The numbers
    drawn are the same.  Without a C++ compiler, or for a program that looks at values, a warning says so and steps run
    as they do otherwise.
    """

    def __init__(
        self,
        model: ProgramModule,
        guide: Guide,
        optim: torch.optim.Optimizer,
        objective: Objective,
        *,
        compile: bool = False,
    ) -> None:
        self.model = model
        self.guide = guide
        self.optim = optim
        self.objective = objective
        self.steps = 0
        self._compiled = CompiledLoss(model, guide, objective) if compile else None

    def step(self, x: object = None, observations: Mapping[str, Any] | None = None) -> float:
        """One gradient step; the loss before it.

        Raises `NonFinite`, naming the step, the site and the quantity, where the loss or a gradient is not finite; the
        parameters are then as they were.
        """
        self.steps += 1
        self.optim.zero_grad(set_to_none=True)
        state = torch.get_rng_state()
        value = float(self._backward(x, observations).detach())
        if not (math.isfinite(value) and self._gradients_are_finite()):
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(state)
                problem = first_non_finite(self.model, self.guide, x, observations)
            raise self.model.placed(
                NonFinite(f"step {self.steps}: {problem}", site=problem.site, origin=problem.origin)
            )
        self.optim.step()
        return value

    def _backward(self, x: object, observations: Mapping[str, Any] | None) -> Tensor:
        """The loss, with the gradients set."""
        if self._compiled is not None and (loss := self._compiled(x, observations)) is not None:
            return loss
        loss = self.objective(self.model, self.guide, x, observations)
        if not loss.requires_grad:
            raise self.model.placed(NothingToFit(_unread(self.model)))
        loss.backward()
        return loss

    def _gradients_are_finite(self) -> bool:
        gradients = [p.grad for group in self.optim.param_groups for p in group["params"] if p.grad is not None]
        if not gradients:
            return True
        norms = torch._foreach_norm(gradients)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        # a norm may overflow where no element does
        return math.isfinite(float(torch.stack(norms).sum())) or all(finite(g) for g in gradients)

    @torch.no_grad()
    def evaluate(self, x: object = None, observations: Mapping[str, Any] | None = None) -> float:
        """The loss without a step."""
        return float(self.objective(self.model, self.guide, x, observations))
