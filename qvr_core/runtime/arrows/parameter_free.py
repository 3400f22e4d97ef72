"""Arrows without parameters: the identity, the last element of a sequence and its mean."""

from __future__ import annotations

from qvr_core.arrays.engine import arrays, is_tensor
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.padding import valid_lengths, valid_positions
from qvr_core.semantics.types.spaces import Named


class IdentityArrow(ArrowModule):
    """The value itself."""

    pointwise = True

    def __init__(self, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain

    def forward(self, x: Value) -> Value:
        return x

    def output_like(self, x: Value) -> Value:
        return x


class LastArrow(ArrowModule):
    """The last valid element of a sequence (axis 1)."""

    def __init__(self, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain

    def forward(self, x: Value) -> Value:
        rows, length = layout.parts(x)[0].shape[:2]
        lengths = valid_lengths(rows, length)
        if lengths is None:
            return layout.from_parts([part[:, -1] for part in layout.parts(x)])
        row = arrays.arange(rows, device=lengths.device)
        return layout.from_parts([part[row, lengths - 1] for part in layout.parts(x)])

    def output_like(self, x: Value) -> Value:
        return self.forward(x)


class MeanOverTimeArrow(ArrowModule):
    """The mean over the valid positions (axis 1)."""

    def __init__(self, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        valid = valid_positions(*x.shape[:2])
        if valid is None:
            return x.mean(1)
        return (x * valid.unsqueeze(-1)).sum(1) / valid.sum(1, keepdim=True)

    def output_like(self, x: Value) -> Value:
        assert is_tensor(x)
        return x[:, 0]
