"""Deterministic arrows with parameters, and the parameter-free ones over sequences."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.kernel_networks import EMBED_SPREAD, linear_layer
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import SequenceTooLong
from qvr_core.runtime.values.padding import valid_lengths, valid_positions
from qvr_core.semantics.arrows.parameters import Shape, parameter_shapes
from qvr_core.semantics.types.model.arrows import Attention, Embed, LinearMap, Norm, Position
from qvr_core.semantics.types.spaces import Named


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


class AttentionArrow(ArrowModule):
    """Multi-head self-attention over axis −2, by torch's fused kernel; weights as in `torch.nn.MultiheadAttention`.

    Inside `padding.padded(lengths)` only valid positions are attended to; weights are dropped in training alone.
    """

    def __init__(self, node: Attention) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        shapes = parameter_shapes(node)
        self.name, self.heads, self.causal, self.drop_rate = node.name, node.heads, node.causal, node.dropout
        self.training = False
        self.in_proj = linear_layer(shapes["in_proj.weight"], 1.0)
        self.out_proj = linear_layer(shapes["out_proj.weight"], 1.0)

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        mask = valid_positions(x.shape[0], x.shape[-2])
        *lead, length, width = x.shape
        q, k, v = self.in_proj(x).view(*lead, length, 3, self.heads, width // self.heads).unbind(-3)
        allowed = mask[..., None, None, :] if mask is not None else None
        if allowed is not None and self.causal:
            allowed = allowed & arrays.ones(length, length, dtype=arrays.bool, device=x.device).tril()
        mixed = F.scaled_dot_product_attention(
            q.transpose(-2, -3),
            k.transpose(-2, -3),
            v.transpose(-2, -3),
            attn_mask=allowed,
            dropout_p=self.drop_rate if self.training else 0.0,
            is_causal=self.causal and allowed is None,
        )
        return self.out_proj(mixed.transpose(-2, -3).reshape(*lead, length, width))

    def output_like(self, x: Value) -> Value:
        return x


class PositionArrow(ArrowModule):
    """Adds a learned `weight` (n, d) row to each position."""

    def __init__(self, node: Position, name: str) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.name = name
        self.weight = nn.Parameter(arrays.empty(parameter_shapes(node)["weight"]).normal_(std=EMBED_SPREAD))

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        length, limit = x.shape[-2], self.weight.shape[0]
        if length > limit:
            raise SequenceTooLong(
                f"`{self.name}` has learned positions for {limit} elements (`max_length={limit}`), "
                f"the sequence has {length}",
                site=self.name,
            )
        return x + self.weight[:length]

    def output_like(self, x: Value) -> Value:
        return x


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
