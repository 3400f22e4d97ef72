"""Stochastic variational inference: one optimiser step at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.arrays.random_state import random_state, random_state_kept, set_random_state
from qvr_core.inference.compiled_loss import CompiledLoss
from qvr_core.inference.compiled_steps import Choice, CompiledSteps, Engine, Fitted, choose
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.nonfinite import finite, first_non_finite
from qvr_core.runtime.arrows.training import in_training, training_layers
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


def _loss_and_soundness(made: tuple[float, float]) -> tuple[float, bool]:
    loss, norm = made
    return loss, math.isfinite(loss) and math.isfinite(norm)


class SVI:
    """Minimises `objective` (−ELBO per row, by default of `ELBO`) over the optimiser's parameters.

    `compile` makes one graph of loss and gradients and hands it to torch.compile: half a minute for the first step of
    each shape of the data (a few seconds where the cache on disk knows it), then a fraction of the time.  The numbers
    drawn are the same.  Without a C++ compiler, or for a program that looks at values, a warning says so and steps run
    as they do otherwise.

    `engine` is for programs without parameters, whose latents all rows share, with a guide of Normals or a point:
    'compiled' evaluates their log density, and with Adam makes the whole step, as machine code, up to rounding the same
    one; 'auto' is 'compiled' where that can be.  A tenth of a second of compiling comes before the first step of a
    program; later runs find it on disk.  Steps with other data than the first one's run plainly.
    """

    def __init__(
        self,
        model: ProgramModule,
        guide: Guide,
        optim: torch.optim.Optimizer,
        objective: Objective,
        *,
        compile: bool = False,
        engine: Engine = "plain",
    ) -> None:
        self.model = model
        self.guide = guide
        self.optim = optim
        self.objective = objective
        self.steps = 0
        self._device = optim.param_groups[0]["params"][0].device
        self._training = training_layers((model, guide))
        self._compiled = CompiledLoss(model, guide, objective) if compile else None
        self._asked: Engine = engine
        self._data: list[tuple[str, object, int]] | None = None
        self.choice = Choice("plain")
        """The engine of the steps, once there was one."""

    def step(self, x: object = None, observations: Mapping[str, Any] | None = None) -> float:
        """One gradient step; the loss before it.

        Raises `NonFinite`, naming the step, the site and the quantity, where the loss or a gradient is not finite; the
        parameters are then as they were.
        """
        self.steps += 1
        observations = self.model.taken(observations)
        fast = self._fast(x, observations)
        state = random_state(self._device)
        with in_training(self._training):
            value, good = self._slow(x, observations) if fast is None else _loss_and_soundness(fast.advance())
        if not good:
            with random_state_kept(self._device), in_training(self._training, again=True):
                set_random_state(self._device, state)
                problem = first_non_finite(self.model, self.guide, x, observations)
            raise self.model.placed(
                NonFinite(f"step {self.steps}: {problem}", site=problem.site, origin=problem.origin)
            )
        if fast is None:
            self.optim.step()
        return value

    def _slow(self, x: object, observations: Mapping[str, Any] | None) -> tuple[float, bool]:
        """The loss, with the gradients set, and whether all is finite."""
        self.optim.zero_grad(set_to_none=True)
        value = float(self._backward(x, observations).detach())
        return value, math.isfinite(value) and self._gradients_are_finite()

    def _fast(self, x: object, observations: Mapping[str, Any] | None) -> CompiledSteps | None:
        """The engine's steps, which are made for the data of the first one."""
        if self._asked == "plain":
            return None
        given = observations or {}
        if not all(isinstance(value, Tensor) for value in given.values()):
            return None
        data = [(name, value, value._version) for name, value in given.items()]
        if self._data is None:
            self._data = data
            state = random_state(self._device)
            self.choice = choose(Fitted(self.model, self.guide, self.objective, self.optim), x, given, self._asked)
            set_random_state(self._device, state)
            if self.choice.note is not None:
                warnings.warn(self.choice.note, stacklevel=3)
        same = len(data) == len(self._data) and all(
            (name, version) == (before, then) and value is held
            for (name, value, version), (before, held, then) in zip(data, self._data, strict=True)
        )
        return self.choice.steps if same else None

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
        return float(self.objective(self.model, self.guide, x, self.model.taken(observations)))
