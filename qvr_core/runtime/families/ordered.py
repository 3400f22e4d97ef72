"""Ordered draws of a family of numbers: what `: Ordered k` makes of it."""

from __future__ import annotations

import math
from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.runtime.families.bijectors import Support
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.random_draws import Shape


class OrderedFamily(RuntimeFamily):
    """A vector of `size` draws of one distribution in ascending order, its density `size`! times their product."""

    __slots__ = ()

    def support(self, parameters: Params) -> Support:
        """That of one draw, of all entries."""
        one = RuntimeFamily.support(self, parameters)
        return Support("ordered", one.low, one.high)


def ordered(family: RuntimeFamily, size: int) -> RuntimeFamily:
    """The family of ascending vectors of `size` draws; `family` is one of single real numbers."""
    log_orders = math.lgamma(size + 1)

    def each(parameters: Params) -> Params:
        """The parameters with an axis of length 1 for the entries."""
        return tuple(p.unsqueeze(-1 - rank) for p, rank in zip(parameters, family.ranks, strict=True))

    def log_prob(value: Tensor, *parameters: Tensor) -> Tensor:
        ascends = (value[..., 1:] > value[..., :-1]).all(-1)
        return inside(ascends, log_orders + family.log_prob(value, *each(parameters)).sum(-1))

    def transform(noise: Tensor, *parameters: Tensor) -> Tensor:
        return family.value_of(noise, each(parameters)).sort(-1).values

    def draw(shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        return family.fresh_noise(shape, generator, each(parameters)).sort(-1).values

    by_noise = family.transform is not None
    return OrderedFamily(
        replace(family.facts, event=1),
        log_prob,
        transform if by_noise else None,
        None if by_noise else draw,
        reparameterised=family.reparameterised,
        noise_event=lambda parameters, event: (size,),
    )
