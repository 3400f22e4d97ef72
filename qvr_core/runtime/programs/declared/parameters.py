"""Numbers that a guide learns without a network: `param m : School -> Real 3 [init=0.0]`."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.families.bijectors import Support, constrain, unconstrained_shape
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_shapes import sizes
from qvr_core.runtime.values.cells import Cell
from qvr_core.semantics.types.model.steps import ParamModel
from qvr_core.semantics.types.spaces import Constrained, Real, Space

KINDS = {
    "Simplex": "simplex",
    "Ordered": "ordered",
    "CholeskyFactor": "cholesky",
    "Covariance": "covariance",
    "Correlation": "correlation matrix",
}
"""The bijector onto each space."""


class Parameter(nn.Module):
    """Learned numbers as an optimiser moves them: `raw` is unconstrained, of the shape of `unconstrained_shape`."""

    def __init__(self, step: ParamModel) -> None:
        super().__init__()
        space = step.type.space
        assert isinstance(space, Real | Constrained)
        self.support = _support(space)
        event = tuple(size for size in sizes(space) if sizes(space) != (1,))
        plates = tuple(int(size) for size in step.type.sizes if isinstance(size, int))
        shape = unconstrained_shape(self.support.kind, (*plates, *event))
        start = arrays.zeros(shape)
        if step.init is not None:
            numbers = arrays.tensor([_free(number, self.support) for number in step.init], dtype=start.dtype)
            own = event if len(step.init) > 1 else ()
            start = numbers.reshape(own).expand(shape).clone()
        self.raw = nn.Parameter(start)

    def forward(self) -> Tensor:
        """The numbers in their space, (*plates, *event)."""
        return constrain(self.raw.unsqueeze(0), self.support)[0].squeeze(0)


class ParamStep:
    """Binds the parameters of a line."""

    def __init__(self, step: ParamModel) -> None:
        self.names = step.names
        self.modules = {name: Parameter(step) for name in step.names}

    def run(self, frame: Frame) -> None:
        """Bind each name to its numbers, which all rows share."""
        frame.bound.update({name: Cell(module(), False) for name, module in self.modules.items()})


def _support(space: Space) -> Support:
    if isinstance(space, Constrained):
        return Support(KINDS[space.kind])
    assert isinstance(space, Real)
    bounded = space.low is not None or space.high is not None
    return Support("bounded", space.low, space.high) if bounded else Support("real")


def _free(number: float, support: Support) -> float:
    """The unconstrained number of a number between bounds."""
    low, high = support.low, support.high
    assert not isinstance(low, Tensor) and not isinstance(high, Tensor)
    if low is not None and high is not None:
        share = (number - low) / (high - low)
        return math.log(share) - math.log1p(-share)
    if low is not None:
        return math.log(number - low)
    return math.log(high - number) if high is not None else number
