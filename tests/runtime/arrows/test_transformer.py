"""An encoder of `attention`, `norm`, `linear` and `residual` equals torch's post-norm encoder with the same weights."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.padding import padded

SOURCE = """
object Token : FinSet 30
object D : Real 12
morphism emb : Token -> D [role=embed]
morphism att : D -> D [role=attention, heads=4{causal}]
morphism first_norm : D -> D [role=norm]
morphism second_norm : D -> D [role=norm]
morphism up : D -> Real 20 [role=linear]
morphism down : Real 20 -> D [role=linear]
program feed_forward(x) : D -> D
    let y = down(relu(up(x)))
    return y
let block = residual(att) >> first_norm >> residual(feed_forward) >> second_norm
let encoder = emb >> stack(block, 2)
export encoder
"""
NAMES = {
    "self_attn.in_proj_weight": "att.in_proj.weight",
    "self_attn.in_proj_bias": "att.in_proj.bias",
    "self_attn.out_proj.weight": "att.out_proj.weight",
    "self_attn.out_proj.bias": "att.out_proj.bias",
    "linear1.weight": "up.weight",
    "linear1.bias": "up.bias",
    "linear2.weight": "down.weight",
    "linear2.bias": "down.bias",
    "norm1.weight": "first_norm.weight",
    "norm1.bias": "first_norm.bias",
    "norm2.weight": "second_norm.weight",
    "norm2.bias": "second_norm.bias",
}


@pytest.mark.parametrize("causal", [False, True])
def test_encoder_equals_torch(causal):
    model = loads(SOURCE.format(causal=", causal=true" if causal else "")).morphism
    weights = dict(model.named_parameters())
    layer = torch.nn.TransformerEncoderLayer(12, 4, 20, dropout=0.0, batch_first=True)
    reference = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    state = {
        f"layers.{copy}.{theirs}": weights[f"block.{copy}.{ours}"]
        for copy in range(2)
        for theirs, ours in NAMES.items()
    }
    reference.load_state_dict(state)
    x = torch.randint(0, 30, (3, 7))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(7) if causal else None
    expected = reference(weights["emb.weight"][x], mask=mask, is_causal=causal)
    assert torch.allclose(model.rsample(x), expected, atol=1e-5)


def test_padding_equals_torch():
    model = loads(SOURCE.format(causal="")).morphism
    weights = dict(model.named_parameters())
    layer = torch.nn.TransformerEncoderLayer(12, 4, 20, dropout=0.0, batch_first=True)
    reference = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    copies = [(copy, theirs, ours) for copy in range(2) for theirs, ours in NAMES.items()]
    reference.load_state_dict({f"layers.{c}.{theirs}": weights[f"block.{c}.{ours}"] for c, theirs, ours in copies})
    x, lengths = torch.randint(0, 30, (3, 7)), torch.tensor([7, 4, 1])
    valid = torch.arange(7) < lengths[:, None]
    with padded(lengths):
        ours = model.rsample(x)
        twice = model.rsample(x, (2,))
    expected = reference(weights["emb.weight"][x], src_key_padding_mask=~valid)
    assert torch.allclose(ours[valid], expected[valid], atol=1e-5)
    assert torch.allclose(twice, ours.expand(2, *ours.shape), atol=1e-6)
    with padded(torch.tensor([7, 8, 1])), pytest.raises(InputProblem, match="between 1 and 7"):
        model.rsample(x)


def test_sizes_of_the_fifth_seed():
    """Vocabulary 10,000, width 768, feed-forward 1,024, 4 heads, 2 blocks; (2, 8) tokens give (2, 8, 768)."""
    text = SOURCE.format(causal="").replace("FinSet 30", "FinSet 10000").replace("Real 12", "Real 768")
    model = loads(text.replace("Real 20", "Real 1024")).morphism
    assert model.rsample(torch.randint(0, 10000, (2, 8))).shape == (2, 8, 768)
