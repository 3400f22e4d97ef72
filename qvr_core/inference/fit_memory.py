"""A guide's parameters, their gradients and the moments of Adam as flat arrays, of which the engine's are views."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import svi_step
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.full_rank_and_laplace import (
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
)
from qvr_core.inference.guides.normal import AutoNormalGuide

ADAM = (arrays.optim.Adam, arrays.optim.AdamW)
UNLIKE = ("amsgrad", "maximize", "differentiable", "capturable")
"""Settings of Adam that only torch's own step knows."""
STEP = Compiled(svi_step.adam)  # pyright: ignore[reportUnknownArgumentType]


class Memory:
    """The parameters of a guide as one vector, in the order of `svi_step.evaluate`, with gradient and moments beside
    it; the arrays of guide and optimiser are views of them."""

    def __init__(self, guide: Guide, optimizer: arrays.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.parameters = _in_order(guide)
        sizes = [parameter.numel() for parameter in self.parameters]
        self._ends = np.cumsum([0, *sizes]).tolist()
        kind = self.parameters[0].detach().numpy().dtype
        self.theta, self.gradient, mean, square = (np.zeros(sum(sizes), kind) for _ in range(4))
        counts = np.zeros(len(sizes)) if _is_adam(optimizer) else None
        self._values, self._gradients, *self._moments = map(self._views, (self.theta, self.gradient, mean, square))
        self._steps = (
            [] if counts is None else [arrays.from_numpy(counts[n : n + 1].reshape(())) for n in range(len(sizes))]
        )
        self._rates = np.zeros(5)
        self._adam = (
            None if counts is None else STEP.bound(self.theta, self.gradient, mean, square, counts, self._rates)
        )
        self.bind()

    def bind(self) -> None:
        """Make parameters views of the vectors again, where something has put others in their place."""
        for parameter, value, gradient in zip(self.parameters, self._values, self._gradients, strict=True):
            if parameter.data_ptr() != value.data_ptr():
                with arrays.no_grad():
                    value.copy_(parameter.detach())
                    parameter.set_(value)  # pyright: ignore[reportArgumentType]
            if parameter.grad is not gradient:
                parameter.grad = gradient

    def move(self) -> None:
        """One step of the optimiser, with the gradient that stands there."""
        if self._adam is None:
            self.optimizer.step()
            return
        self._bind_state()
        group = self.optimizer.param_groups[0]
        decay = group["weight_decay"] if isinstance(self.optimizer, arrays.optim.AdamW) else 0.0
        self._rates[:] = (float(group["lr"]), *group["betas"], group["eps"], decay)
        self._adam()

    def _bind_state(self) -> None:
        for parameter, *views in zip(self.parameters, self._steps, *self._moments, strict=True):
            state = self.optimizer.state[parameter]
            if state.get("exp_avg") is views[1]:
                continue
            for name, view in zip(("step", "exp_avg", "exp_avg_sq"), views, strict=True):
                if name in state:
                    view.copy_(state[name])
                state[name] = view

    def _views(self, vector: NDArray[Any]) -> list[Tensor]:
        """A part of a vector for each parameter, in its shape."""
        parts = (vector[start:stop] for start, stop in pairwise(self._ends))
        return [arrays.from_numpy(part.reshape(own.shape)) for part, own in zip(parts, self.parameters, strict=True)]


def _in_order(guide: Guide) -> list[nn.Parameter]:
    if isinstance(guide, AutoNormalGuide):
        each = (guide.raw_loc, guide.raw_log_scale)
        return [parameters[block.key] for parameters in each for block in guide.blocks]  # pyright: ignore[reportReturnType]
    if isinstance(guide, AutoMultivariateNormalGuide):
        return [guide.loc, guide.log_diagonal, guide.lower]
    if isinstance(guide, AutoLowRankMultivariateNormalGuide):
        return [guide.loc, guide.log_scale, guide.factor]
    assert isinstance(guide, AutoDeltaGuide)
    return [guide.loc[block.key] for block in guide.blocks]  # pyright: ignore[reportReturnType]


def _is_adam(optimizer: arrays.optim.Optimizer) -> bool:
    """Whether a step is plain Adam's or AdamW's, alike for all parameters."""
    (group, *others) = optimizer.param_groups
    kind = getattr(optimizer, "updates_as", type(optimizer))
    plain = kind in ADAM and not others and not any(group.get(name) for name in UNLIKE)
    return plain and (kind is arrays.optim.AdamW or group["weight_decay"] == 0)
