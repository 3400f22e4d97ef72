"""Layers that do something else while SVI trains: they leave numbers out, or read the batch.

Outside of training they are functions of each row, so that densities, draws and figures are what they are for everybody
(docs/reference.md#dropout, docs/reference.md#batch-norm).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.values.arrow import ArrowModule


@dataclass(slots=True)
class Sequence:
    """A sequence that is being gone through: position by position, or all of it as rows of `lead` (B, L)."""

    lead: tuple[int, ...] | None
    masks: dict[int, Tensor] = field(default_factory=dict[int, Tensor])


_sequences: list[Sequence] = []


@contextmanager
def along_a_sequence(lead: tuple[int, ...] | None = None) -> Generator[None]:
    """Inside, what is left out `once` is the same at every position.

    `lead` (B, L) where all positions are rows, (B · L, …); None where a cell goes from one to the next.
    """
    _sequences.append(Sequence(lead))
    try:
        yield
    finally:
        _sequences.pop()


def sequence() -> Sequence | None:
    """The sequence that is being gone through."""
    return _sequences[-1] if _sequences else None


def sequence_lead(rows: int) -> tuple[int, int] | None:
    """(B, L) where these rows are all positions of a sequence."""
    inside = sequence()
    if inside is None or inside.lead is None or len(inside.lead) != 2 or prod(inside.lead) != rows:
        return None
    return inside.lead[0], inside.lead[1]


def training_layers(modules: Iterable[nn.Module]) -> list[ArrowModule]:
    """The layers below some modules that do something else in training."""
    layers = (layer for module in modules for layer in module.modules() if isinstance(layer, ArrowModule))
    return list({id(one): one for one in layers if one.drop_rate or one.reads_batch}.values())


@contextmanager
def in_training(layers: Iterable[ArrowModule], *, again: bool = False) -> Generator[None]:
    """Inside, these layers are in training; afterwards they are as before.

    With `again` the batch has been seen already: what is stored of it is not stored twice.
    """
    before = [(layer, layer.training) for layer in layers]
    stored = [(buffer, buffer.clone()) for layer, _ in before for buffer in layer.buffers()] if again else []
    try:
        # not as attributes: torch looks through all that a module has, which takes longer than a small layer
        for layer, _ in before:
            vars(layer)["training"] = True
        yield
    finally:
        for layer, was in before:
            vars(layer)["training"] = was
        if stored:
            with arrays.no_grad():
                for buffer, value in stored:
                    buffer.copy_(value)
