"""Role `dropout`: numbers that are left out at random while SVI trains (docs/reference.md#dropout)."""

from __future__ import annotations

from math import prod

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.training import sequence
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.semantics.types.model.arrows import Dropout


class DropoutArrow(ArrowModule):
    """Zeros with probability `p`, all else divided by 1 − p (Srivastava and others 2014), where `training` is on.

    With `once` the zeros are those of the first position of the sequence (Gal and Ghahramani 2016).
    """

    pointwise = True

    def __init__(self, node: Dropout) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.name, self.drop_rate, self.once = node.name, node.p, node.once
        self.training = False

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        if not self.training or not self.drop_rate:
            return x
        return x * self._mask(x) if self.once else F.dropout(x, self.drop_rate)

    def _mask(self, x: Tensor) -> Tensor:
        """1 / (1 − p) for what is kept, else 0, in a shape that goes with `x`."""
        inside = sequence()
        if x.ndim > 2 or inside is None:
            one = x[:, :1] if x.ndim > 2 else x
            return F.dropout(arrays.ones_like(one), self.drop_rate)
        if inside.lead is None or x.shape[0] != prod(inside.lead):
            if id(self) not in inside.masks:
                inside.masks[id(self)] = F.dropout(arrays.ones_like(x), self.drop_rate)
            return inside.masks[id(self)]
        rows, width = inside.lead[0], x.shape[-1]
        mask = F.dropout(arrays.ones((rows, 1, width), dtype=x.dtype, device=x.device), self.drop_rate)
        return mask.expand(rows, x.shape[0] // rows, width).reshape(x.shape)

    def output_like(self, x: Value) -> Value:
        return x
