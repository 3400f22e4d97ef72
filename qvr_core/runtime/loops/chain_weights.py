"""Where the weights of a chain lie: side by side, kind by kind, as its batched products read them.

Hundreds of weights copied into such blocks in each step are a twentieth of a small one (0.32 of 5.6 ms, `seq2seq` at
32 rows), so parameters are moved there once, as `torch.nn.RNN` does with its own on a GPU.  A parameter stays what it
is for everyone who holds it; only its storage is another.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from qvr_core.runtime.loops.chain_shapes import ChainShape


class WeightBlocks:
    """By stage W₁ (G, H, w), c₁ (G, H), W₂, c₂, W₃ (G, 2S, H), c₃; `places` has the same, weight by weight."""

    def __init__(self, shape: ChainShape, like: Tensor) -> None:
        self.stages: list[list[Tensor]] = []
        for stage in shape.stages:
            layers = ((stage.hidden, stage.inside), (stage.hidden, stage.hidden), (2 * stage.size, stage.hidden))
            groups = shape.groups(stage)
            self.stages.append([like.new_empty(groups, *size) for layer in layers for size in (layer, layer[:1])])
        self.places = [block[group] for blocks in self.stages for group in range(len(blocks[0])) for block in blocks]
        self.addresses = [place.data_ptr() for place in self.places]

    def hold(self, weights: Sequence[Tensor]) -> bool:
        """Whether these are what lies here: not where a parameter was given another storage since."""
        return list(map(Tensor.data_ptr, weights)) == self.addresses

    def like(self, value: Tensor) -> bool:
        """Whether they are of the type and on the device of a value."""
        return self.places[0].dtype == value.dtype and self.places[0].device == value.device


_homes: MutableMapping[Tensor, WeightBlocks] = WeakIdKeyDictionary()


def home_of(shape: ChainShape, weights: Sequence[Tensor], like: Tensor) -> WeightBlocks | None:
    """The blocks in which the weights lie, moved there where each is a parameter with a storage of its own.

    None where they have to be copied: drawn weights, weights in a storage that others read, too (tied, in shared
    memory, of a second chain), of another type or device than the values.
    """
    home = _homes.get(weights[0])
    if home is not None and home.hold(weights):
        return home if home.like(like) else None
    if not all(_movable(weight, like) for weight in weights):
        return None
    home = WeightBlocks(shape, like.detach())
    for place, weight in zip(home.places, weights, strict=True):
        place.copy_(weight)
        weight.data = place
    _homes[weights[0]] = home
    return home


def _movable(weight: Tensor, like: Tensor) -> bool:
    alone = type(weight) is nn.Parameter and weight.untyped_storage().nbytes() == weight.nbytes
    return alone and not weight.is_shared() and weight.dtype == like.dtype and weight.device == like.device
