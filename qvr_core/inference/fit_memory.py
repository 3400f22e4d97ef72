"""A guide's parameters, their gradients and the moments of Adam as flat arrays, of which torch's tensors are views."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import descent
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.joint import AutoMultivariateNormalGuide
from qvr_core.inference.guides.normal import AutoNormalGuide

ADAM = (torch.optim.Adam, torch.optim.AdamW)
UNLIKE = ("amsgrad", "maximize", "differentiable", "capturable")
"""Settings of Adam that only torch's own step knows."""
STEP = Compiled(descent.adam)


class Memory:
    """The parameters of a guide as one vector, in the order of `descent.evaluate`, with gradient and moments beside it;
    torch's tensors are views of them."""

    def __init__(self, guide: Guide, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.parameters = _in_order(guide)
        sizes = [parameter.numel() for parameter in self.parameters]
        self._ends = np.cumsum([0, *sizes]).tolist()
        kind = self.parameters[0].dtype
        self.theta, self.gradient = torch.zeros(sum(sizes), dtype=kind), torch.zeros(sum(sizes), dtype=kind)
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        self.gradient_array = self.gradient.numpy()
        self.counts = torch.zeros(len(sizes)) if _is_adam(optimizer) else None
        moved = (self.theta, self.gradient, self.mean, self.square)
        self._arrays = [tensor.numpy() for tensor in (*moved, *(() if self.counts is None else (self.counts,)))]
        self._values, self._gradients, *self._moments = (
            [self._view(vector, number) for number in range(len(sizes))] for vector in moved
        )
        self._steps = [] if self.counts is None else list(self.counts)
        self._rates = np.zeros(5)
        self._adam = None if self.counts is None else STEP.bound(*self._arrays, self._rates)
        self.bind()

    def bind(self) -> None:
        """Make torch's tensors views of the vectors again, where something has put others in their place."""
        for parameter, value, gradient in zip(self.parameters, self._values, self._gradients, strict=True):
            if parameter.data_ptr() != value.data_ptr():
                value.copy_(parameter.data)
                parameter.data = value
            if parameter.grad is not gradient:
                parameter.grad = gradient

    def move(self) -> None:
        """One step of the optimiser, with the gradient that stands there."""
        if self._adam is None:
            self.optimizer.step()
            return
        self._bind_state()
        group = self.optimizer.param_groups[0]
        decay = group["weight_decay"] if isinstance(self.optimizer, torch.optim.AdamW) else 0.0
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

    def _view(self, vector: Tensor, number: int) -> Tensor:
        return vector[self._ends[number] : self._ends[number + 1]].view(self.parameters[number].shape)


def _in_order(guide: Guide) -> list[nn.Parameter]:
    if isinstance(guide, AutoNormalGuide):
        each = (guide.raw_loc, guide.raw_log_scale)
        return [parameters[block.key] for parameters in each for block in guide.blocks]  # pyright: ignore[reportReturnType]
    if isinstance(guide, AutoMultivariateNormalGuide):
        return [guide.loc, guide.log_diagonal, guide.lower]
    assert isinstance(guide, AutoDeltaGuide)
    return [guide.loc[block.key] for block in guide.blocks]  # pyright: ignore[reportReturnType]


def _is_adam(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a step is plain Adam's or AdamW's, alike for all parameters."""
    (group, *others) = optimizer.param_groups
    plain = type(optimizer) in ADAM and not others and not any(group[name] for name in UNLIKE)
    return plain and (type(optimizer) is torch.optim.AdamW or group["weight_decay"] == 0)
