"""Densities that are functions of a position, for tests of what compiles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Function:
    """A function of a position (D,), whose entries are added up."""

    def __init__(self, function: Callable[[Any], Any], width: int) -> None:
        self.function, self.width = function, width

    def log_density_of(self, q: Any) -> Any:
        return self.function(q[0]).sum()

    def log_densities(self, q: Any) -> Any:
        return torch.stack([self.log_density_of(row[None]) for row in torch.from_numpy(q)]).numpy()

    def value_and_grad(self, q: Any) -> tuple[float, Any]:
        """Torch's, at a position (D,)."""
        here = torch.from_numpy(q).requires_grad_()
        value: Tensor = self.log_density_of(here[None])
        (gradient,) = torch.autograd.grad(value, here)
        return float(value.detach()), gradient.numpy()
