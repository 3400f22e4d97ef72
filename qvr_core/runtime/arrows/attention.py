"""Self-attention and learned positions: layers over the elements of a sequence."""

from __future__ import annotations

from qvr_core.arrays.engine import arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.kernel_networks import EMBED_SPREAD, linear_layer
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import SequenceTooLong
from qvr_core.runtime.values.padding import valid_positions
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.types.model.arrows import Attention, Position


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
