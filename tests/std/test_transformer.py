"""`std/transformer.qvr` against torch.nn.TransformerEncoderLayer with the same weights."""

import pytest
import torch
from torch import nn

from qvr_core.dsl import loads
from qvr_core.runtime.values.padding import padded

SPACES = 'import "std/transformer.qvr" as transformer\nobject Latent : Real 12\nobject Wide : Real 20\n'
PARTS = {
    "self_attn.in_proj_": "attend.in_proj.",
    "self_attn.out_proj.": "attend.out_proj.",
    "linear1.": "widen.",
    "linear2.": "narrow.",
}
NORMS = {"pre_norm": ("norm_before", "norm_between"), "post_norm": ("attend_norm", "feed_norm")}
ACTIVATION = {"pre_norm": "gelu", "post_norm": "relu"}


def both(block: str, causal: int, layers: int) -> tuple[nn.Module, nn.Module]:
    """A stack of our block, and torch's encoder with the same weights."""
    text = f"let block = transformer.{block}(Latent, Wide, heads=3, causal={causal})\n"
    text += f"let encoder = stack(block, {layers}) >> identity(Latent)\nexport encoder\n"
    model = loads(SPACES + text).morphism
    norms = {f"norm{at}.": f"{name}." for at, name in enumerate(NORMS[block], 1)}
    held = dict(model.named_parameters())
    options = {"dropout": 0.0, "batch_first": True, "activation": ACTIVATION[block], "norm_first": block == "pre_norm"}
    layer = nn.TransformerEncoderLayer(12, 3, 20, **options)
    reference = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    for at in range(layers):
        for theirs, parameter in reference.layers[at].named_parameters():
            part = next(key for key in (*PARTS, *norms) if theirs.startswith(key))
            name = {**PARTS, **norms}[part] + theirs.removeprefix(part)
            ours = held.pop(f"block.{at}.transformer.{block}.{name}")
            with torch.no_grad():
                parameter.copy_(ours.normal_(0.0, 0.4))
    assert not held
    return model, reference


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("block", ["pre_norm", "post_norm"])
def test_a_stack_of_blocks_is_torchs_encoder(block: str, causal: int) -> None:
    torch.manual_seed(causal)
    model, reference = both(block, causal, 2)
    x = torch.randn(3, 7, 12)
    mask = nn.Transformer.generate_square_subsequent_mask(7) if causal else None
    torch.testing.assert_close(model.rsample(x), reference(x, mask=mask, is_causal=bool(causal)), rtol=1e-5, atol=1e-5)


def test_padded_rows_see_their_own_positions_only() -> None:
    torch.manual_seed(5)
    model, reference = both("post_norm", 0, 2)
    x, lengths = torch.randn(3, 7, 12), torch.tensor([7, 4, 2])
    beyond = torch.arange(7) >= lengths.unsqueeze(1)
    with padded(lengths):
        found = model.rsample(x)
    wanted = reference(x, src_key_padding_mask=beyond)
    torch.testing.assert_close(found[~beyond], wanted[~beyond], rtol=1e-5, atol=1e-5)
