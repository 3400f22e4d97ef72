"""Layers that see one element at a time: embedding, linear map, layer norm."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.kernel_networks import EMBED_SPREAD
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.semantics.arrows.parameters import Shape, parameter_shapes
from qvr_core.semantics.types.model.arrows import Embed, LinearMap, Norm


class EmbedArrow(ArrowModule):
    """A row of `weight` (n, d) for each element; N(0, 0.5²) at the start."""

    pointwise = True

    def __init__(self, node: Embed) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.weight = nn.Parameter(arrays.empty(parameter_shapes(node)["weight"]).normal_(std=EMBED_SPREAD))

    def forward(self, x: Value) -> Value:
        index = x if is_tensor(x) else layout.flat_index(x, self.domain.space)
        return F.embedding(index, self.weight)

    def matrix(self) -> Tensor:
        """(n, d), a row for each element."""
        return self.weight

    def output_like(self, x: Value) -> Value:
        lead = layout.lead_shape(x, self.domain.space)
        return self.weight.new_zeros(()).expand(*lead, self.weight.shape[1])


class LinearArrow(ArrowModule):
    """`weight` (out, in) and `bias`, or two factors `out_factor` (out, k) · `in_factor` (k, in)."""

    pointwise = True

    def __init__(self, node: LinearMap) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        shapes = parameter_shapes(node)
        self.rank = node.rank
        if node.rank is None:
            self.weight = nn.Parameter(_initial(shapes["weight"], node.init))
        else:
            factors = _initial_factors(shapes["in_factor"], shapes["out_factor"], node.init)
            self.in_factor, self.out_factor = map(nn.Parameter, factors)
        init = "zeros" if node.rank is not None else node.init
        inside = layout.width(node.domain.space)
        self.bias = nn.Parameter(_initial_bias(shapes["bias"], init, inside)) if node.bias else None

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        if self.rank is None:
            return F.linear(x, self.weight, self.bias)
        return F.linear(F.linear(x, self.in_factor), self.out_factor, self.bias)

    def matrix(self) -> Tensor:
        """(out, in)."""
        return self.weight if self.rank is None else self.out_factor @ self.in_factor

    def output_like(self, x: Value) -> Value:
        return layout.dummy(self.codomain.space, layout.lead_shape(x, self.domain.space), layout.parts(x)[0])


def _initial_factors(first: Shape, second: Shape, init: str) -> tuple[Tensor, Tensor]:
    """Factors (rank, in) and (out, rank) whose product has variance 1 / fan in, or Xavier's: each entry is a sum of
    `rank` products."""
    (rank, inside), out = first, second[0]
    variance = 2.0 / (inside + out) if init == "xavier" else 1.0 / inside
    spread = math.sqrt(math.sqrt(variance / rank))
    factors = [nn.init.trunc_normal_(arrays.empty(shape), std=spread) for shape in (first, second)]
    if init == "zeros":
        # one factor alone: with both at zero neither would have a gradient
        nn.init.zeros_(factors[1])
    return factors[0], factors[1]


def _initial(shape: Shape, init: str) -> Tensor:
    weight = arrays.empty(shape)
    if init == "xavier":
        return nn.init.xavier_uniform_(weight)
    if init == "zeros":
        return nn.init.zeros_(weight)
    bound = 1.0 / math.sqrt(shape[1])
    return weight.uniform_(-bound, bound)


def _initial_bias(shape: Shape, init: str, fan_in: int) -> Tensor:
    bias = arrays.zeros(shape)
    return bias if init != "default" else bias.uniform_(-1.0 / math.sqrt(fan_in), 1.0 / math.sqrt(fan_in))


class NormArrow(ArrowModule):
    """LayerNorm over the last axis with `weight` (gain) and `bias`."""

    pointwise = True

    def __init__(self, node: Norm) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        shapes = parameter_shapes(node)
        self.weight = nn.Parameter(arrays.ones(shapes["weight"]))
        self.bias = nn.Parameter(arrays.zeros(shapes["bias"]))

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias)

    def output_like(self, x: Value) -> Value:
        return x
