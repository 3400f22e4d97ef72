"""Ordered draws of a family of numbers: what `: Ordered k` makes of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.bijectors import Support
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.random_draws import Shape
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.language.family import Parameter


@dataclass(frozen=True, slots=True)
class OrderedFamily(RuntimeFamily):
    """A vector of `size` draws of one distribution in ascending order, its density `size`! times their product."""

    one: RuntimeFamily | None = None
    """The family of one draw."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        return _one(self).ranks

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """The parameters of one draw."""
        return _one(self).canonical(arguments)

    def support(self, parameters: Params) -> Support:
        """That of one draw, of all entries."""
        one = _one(self).support(parameters)
        return Support("ordered", one.low, one.high)


def _one(family: OrderedFamily) -> RuntimeFamily:
    assert family.one is not None
    return family.one


_ROUNDS = 1_000
"""So many draws are made for one that ascends."""


def _is_placed(parameter: Parameter, places: Collection[str]) -> bool:
    return parameter.name in places or any(name in places for name, _ in parameter.alternatives)


def _longer(parameter: Parameter) -> Parameter:
    """A parameter with an axis for the entries in front of its own."""
    return replace(parameter, shape="vector" if parameter.shape == "element" else "matrix")


def ordered(family: RuntimeFamily, size: int, places: Collection[str] = ()) -> RuntimeFamily:
    """The family of ascending vectors of `size` draws; `family` is one of single real numbers.  Of an improper one the
    density is the bare product, and where the parameters `places` have a number for each entry."""
    log_orders = 0.0 if family.facts.improper or places else math.lgamma(size + 1)
    own = [one for one in family.facts.parameters if not one.sizes]
    placed = [_is_placed(one, places) for one in own for _ in range(1 + (one.name == family.twice))]
    facts = replace(
        family.facts,
        event=1,
        noise="value" if places else family.facts.noise,
        parameters=tuple(_longer(one) if _is_placed(one, places) else one for one in family.facts.parameters),
    )

    def each(parameters: Params) -> Params:
        """The parameters with an axis of length 1 for the entries, where they have none."""
        ranks = zip(parameters, family.ranks, placed, strict=True)
        return tuple(p if there else p.unsqueeze(-1 - rank) for p, rank, there in ranks)

    def log_prob(value: Tensor, *parameters: Tensor) -> Tensor:
        ascends = (value[..., 1:] > value[..., :-1]).all(-1)
        return inside(ascends, log_orders + family.log_prob(value, *each(parameters)).sum(-1))

    def transform(noise: Tensor, *parameters: Tensor) -> Tensor:
        return family.value_of(noise, each(parameters)).sort(-1).values

    def draw(shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        return family.fresh_noise(shape, generator, each(parameters)).sort(-1).values

    def in_places(shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        own = each(parameters)
        found = family.value_of(family.fresh_noise(shape, generator, own), own)
        for _ in range(_ROUNDS):
            wrong = (found[..., 1:] <= found[..., :-1]).any(-1, keepdim=True)
            if not bool(wrong.any()):
                return found
            found = arrays.where(wrong, family.value_of(family.fresh_noise(shape, generator, own), own), found)
        raise InputProblem(f"{_ROUNDS:,} draws of {size} numbers from {family.name} by place, and none ascends")

    by_noise = family.transform is not None and not places
    return OrderedFamily(
        facts,
        log_prob,
        transform if by_noise else None,
        None if by_noise else in_places if places else draw,
        reparameterised=family.reparameterised and not places,
        conversions=family.conversions,
        twice=family.twice,
        noise_event=lambda parameters, event: (size,),
        one=family,
    )
