"""Heads: from the raw output of a kernel's network to a legal distribution on the kernel's codomain.

A head cuts the raw output by `raw_blocks`, applies its family's link, which is legal for any real numbers, and draws
and scores values in the layout of the codomain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.densities import LOG_SQRT_2PI
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.family_heads import matrix_shape, raw_blocks
from qvr_core.semantics.types.spaces import Constrained, Space


class Head:
    """The distribution of a kernel: parameters from raw output, noise to value, value to density.

    `raw_width` is the number P of raw parameters; `zero_rows` are the rows of the last layer that start at zero
    (scales).  Shapes below: `lead` are the axes before a value's own.
    """

    def __init__(
        self, family: str | RuntimeFamily, codomain: Space, scale: float, options: Mapping[str, object]
    ) -> None:
        self.family = RUNTIME_FAMILIES[family] if isinstance(family, str) else family
        facts = self.family.facts
        self.codomain = codomain
        self.scale = scale
        self.noise = facts.noise
        self.raw_blocks = raw_blocks(facts, codomain, options)
        self.raw_width = sum(size for _, size in self.raw_blocks)
        self.blocks = layout.blocks(codomain)
        self.finite = any(block.finite for block in self.blocks)
        self.event_shape = _event_shape(facts, codomain)
        self.plan = HeadPlan(facts, codomain, scale, options, self.raw_blocks, self.event_shape)
        self.noise_shape = self._noise_shape()
        """The noise of one value, without its leading axes."""

    def zero_rows(self) -> list[int]:
        """Rows of the raw output that hold a scale."""
        rows: list[int] = []
        start = 0
        for name, size in self.raw_blocks:
            if name in ("scale", "scales"):
                rows.extend(range(start, start + size))
            start += size
        return rows

    def _noise_shape(self) -> tuple[int, ...]:
        if not self.family.event:
            return self.event_shape
        return self.family.noise_event(self.link(arrays.zeros(self.raw_width)), self.event_shape) or ()

    # ------------------------------------------------------------ parameters

    def link(self, raw: Tensor) -> Params:
        """Legal parameters of the family from any raw output (…, P), in the canonical order."""
        return self.family.link(self.plan, raw)

    def fixed(self, arguments: Mapping[str, float], lead: tuple[int, ...], like: Tensor) -> Params:
        """Literal arguments, one distribution for every input."""
        tensors = {
            key: arrays.as_tensor(value, dtype=like.dtype, device=like.device).expand(*lead, *self.event_shape[-1:])
            for key, value in arguments.items()
        }
        return self.family.canonical(tensors)

    # ------------------------------------------------------------ draws and densities

    def make_noise(self, lead: tuple[int, ...], params: Params, generator: Generator | None) -> Tensor:
        """Fresh noise (lead + noise_shape); for a family without parameter-free noise the value itself."""
        return self.family.fresh_noise((*lead, *self.noise_shape), generator, params)

    def to_value(self, noise: Tensor, params: Params) -> Value:
        """The value that the noise makes, in the layout of the codomain."""
        event = self.family.value_of(noise, params)
        if self.finite:
            if not self.event_shape:
                return layout.from_flat_index(event, self.codomain) if len(self.blocks) > 1 else event
            columns = event.long().unbind(-1)
            return columns[0] if len(columns) == 1 else tuple(columns)
        return event.flatten(-2) if self.family.event == 2 else event

    def _event(self, value: Value) -> Tensor:
        """The family's view of a value."""
        if self.finite:
            if not self.event_shape:
                return layout.flat_index(value, self.codomain)
            return arrays.stack([part.to(precision()) for part in layout.parts(value)], dim=-1)
        tensor = layout.parts(value)[0]
        return arrays.unflatten(tensor, -1, self.event_shape) if self.family.event == 2 else tensor

    def log_prob(self, value: Value, params: Params) -> Tensor:
        """Log density with the axes of `lead`."""
        return self._summed(self.family.log_prob(self._event(value), *params))

    def _summed(self, each: Tensor) -> Tensor:
        return each if self.family.event or not self.event_shape else each.sum(-1)

    def log_prob_of_noise(self, noise: Tensor, params: Params) -> Tensor:
        """log of the noise's density, conditional where the noise is the value itself; axes of `lead`."""
        axes = tuple(range(noise.dim() - len(self.noise_shape), noise.dim()))
        if self.noise == "normal":
            count = math.prod(self.noise_shape)
            return -0.5 * noise.square().sum(axes) - count * LOG_SQRT_2PI
        if self.noise == "uniform":
            return arrays.zeros(noise.shape[: noise.dim() - len(axes)], dtype=noise.dtype, device=noise.device)
        return self._summed(self.family.log_prob(noise, *params))

    def log_prob_of_draw(self, noise: Tensor, value: Value, params: Params) -> Tensor:
        """log p(value) where the noise that made it is at hand; axes of `lead`."""
        if self.family.affine:
            return self.log_prob_of_noise(noise, params) - params[1].log().sum(-1)
        if self.family.transform is None:
            return self.log_prob_of_noise(noise, params)
        return self.log_prob(value, params)

    def mean(self, params: Params) -> Tensor | None:
        """The expected value in the layout of the codomain; None where its family does not say it."""
        if self.finite or self.family.event == 2 or self.family.mean is None:
            return None
        return self.family.mean(*params)

    def log_table(self, params: Params) -> Tensor:
        """Log-probabilities (…, n) of all values of a finite codomain, in the order of `layout.flat_index`."""
        if self.family.log_table is not None and not self.event_shape:
            return self.family.log_table(*params)
        index = arrays.arange(layout.total_elements(self.codomain), device=params[0].device)
        values = self._event(layout.from_flat_index(index, self.codomain))
        ranks = [parameter.rank for parameter in self.family.facts.parameters]
        spread = (
            p.unsqueeze(-2 - rank if p.dim() > 1 + rank else -1 - rank) for p, rank in zip(params, ranks, strict=True)
        )
        return self.family.log_prob(values, *spread).sum(-1)


def _event_shape(family: Family, codomain: Space) -> tuple[int, ...]:
    """The family's own view of one value: () joint index, (d,) vector, (k, k) or (n, m) matrix."""
    if family.support.categories:
        return ()
    if family.event < 2:
        return (layout.width(codomain),)
    if isinstance(codomain, Constrained) and isinstance(codomain.size, int):
        return (codomain.size, codomain.size)
    return matrix_shape(codomain)
