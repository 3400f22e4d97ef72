"""The block of the BERT example against `torch.nn.TransformerEncoderLayer` of the same sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from qvr_core.dsl import loads
from qvr_core.runtime.values.padding import padded

SOURCE = Path(__file__).resolve().parents[1] / "examples" / "bert_pretraining.qvr"
SIZES = ((32, 64, 64, 128), (16, 64, 256, 512), (4, 64, 768, 1024))
"""(batch, length, width, width of the feed-forward layer)."""
HEADS = 4


def block(width: int, wide: int) -> nn.Module:
    """One block of the example."""
    text = SOURCE.read_text(encoding="utf-8").replace("Hidden : Real 64", f"Hidden : Real {width}")
    text = text.replace("Wide : Real 128", f"Wide : Real {wide}")
    return loads(text.replace("export bert_pretraining", "export block")).morphism


def cases() -> Iterator[tuple[str, nn.Module, nn.Module, Tensor, Tensor | None]]:
    """Name, our block, torch's layer, the states (B, L, d) and the valid lengths (B,), or None."""
    for batch, length, width, wide in SIZES:
        ours = block(width, wide)
        theirs = nn.TransformerEncoderLayer(width, HEADS, wide, dropout=0.0, batch_first=True)
        x = torch.randn(batch, length, width)
        name = f"BERT block {batch}×{length}×{width}"
        yield name, ours, theirs, x, None
        yield f"{name}, padded", ours, theirs, x, torch.randint(length // 2, length + 1, (batch,))


def our_loss(model: nn.Module, x: Tensor, valid: Tensor | None) -> Tensor:
    """A loss on all states, padded rows included."""
    if valid is None:
        return model(x).square().mean()
    with padded(valid):
        return model(x).square().mean()


def their_loss(layer: nn.Module, x: Tensor, valid: Tensor | None) -> Tensor:
    """The same of torch's layer."""
    if valid is None:
        return layer(x).square().mean()
    return layer(x, src_key_padding_mask=torch.arange(x.shape[1]) >= valid[:, None]).square().mean()
