"""Families on a smaller space than their own: what `: Real 1 [low=0.0]` beside a family makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.arrays.graph import Unsupported
from qvr_core.runtime.families.bijectors import Bound, Support
from qvr_core.runtime.families.cumulative.quantiles import truncated_draw
from qvr_core.runtime.families.cumulative.tails import Tails
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.random_draws import Shape, open_uniforms
from qvr_core.semantics.language.truncated import HIGHEST, LOWEST, truncated


@dataclass(frozen=True, slots=True)
class TruncatedFamily(RuntimeFamily):
    """A family between bounds; its parameters are those of the family `whole`, then the bounds."""

    whole: RuntimeFamily | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        return (*_whole(self).ranks, 0, 0)

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """The family's own parameters in its form, then the bounds, infinite where there is none."""
        own = {name: value for name, value in arguments.items() if name not in (LOWEST.name, HIGHEST.name)}
        made = _whole(self).canonical(own)
        like = next((one for one in (*made, *arguments.values()) if one.is_floating_point()), None)
        ends = (
            arguments.get(one.name, arrays.as_tensor(one.default, dtype=None if like is None else like.dtype))
            for one in (LOWEST, HIGHEST)
        )
        return (*made, *ends)

    def support(self, parameters: Params) -> Support:
        """Where draws live: what the family's own support and the bounds have in common."""
        whole = _whole(self)
        if whole.facts.discrete:
            return Support("discrete")
        if not parameters:
            return Support("bounded")
        own, low, high = whole.support(parameters[:-2]), _end(parameters[-2]), _end(parameters[-1])
        return Support("bounded", _nearer(own.low, low, arrays.maximum), _nearer(own.high, high, arrays.minimum))

    def _ends(self, parameters: Params) -> tuple[Tensor, Tensor]:
        """The least and the greatest value."""
        low, high = _whole(self)._ends(parameters[:-2])
        first, last = (end.to(low.dtype) for end in parameters[-2:])
        if self.facts.discrete:
            first, last = first.ceil(), last.floor()
        return arrays.maximum(low, first), arrays.minimum(high, last)


def _whole(family: TruncatedFamily) -> RuntimeFamily:
    assert family.whole is not None
    return family.whole


def _end(bound: Tensor) -> Tensor | None:
    """A bound; None for a side that is known to have none."""
    try:
        return None if bool(arrays.isinf(bound).all()) else bound
    except (RuntimeError, Unsupported):
        return bound


def _nearer(own: Bound, given: Tensor | None, nearer: Callable[[Tensor, Tensor], Tensor]) -> Bound:
    if own is None or given is None:
        return own if given is None else given
    return nearer(given, arrays.as_tensor(own, dtype=given.dtype, device=given.device))


def open_end(family: RuntimeFamily, value: Tensor) -> Tensor:
    """The end below which nothing of T ≥ value lies."""
    return value.ceil() - 1.0 if family.facts.discrete else value


def log_mass(family: RuntimeFamily, low: Tensor | None, high: Tensor | None, parameters: Params) -> Tensor:
    """log P(low < T ≤ high); None leaves a side open."""
    like = next(p for p in parameters if p.is_floating_point()).dtype
    if low is None:
        assert high is not None
        return family.log_tails(high, *parameters)[0].to(like)
    if high is None:
        return family.log_tails(low, *parameters)[1].to(like)
    return family.log_between(low, high, *parameters).to(like)


def between(
    density: Tensor, family: RuntimeFamily, value: Tensor, low: Tensor | None, high: Tensor | None, parameters: Params
) -> Tensor:
    """A log density divided by the probability of low ≤ T ≤ high; −∞ for a value outside, and where nothing is
    between."""
    if low is None and high is None:
        return density
    whole = log_mass(family, None if low is None else open_end(family, low), high, parameters)
    possible = whole > -math.inf
    for bound, within in ((low, arrays.ge), (high, arrays.le)):
        possible = possible if bound is None else possible & within(value, bound)
    return arrays.where(possible, density - arrays.where(possible, whole, 0.0), -math.inf)


def truncated_family(whole: RuntimeFamily) -> RuntimeFamily:
    """The family of draws between bounds; `whole` is one of single numbers, with a cdf or improper."""
    facts = truncated(whole.facts)

    def log_prob(value: Tensor, *parameters: Tensor) -> Tensor:
        own, low, high = parameters[:-2], _end(parameters[-2]), _end(parameters[-1])
        density = whole.log_prob(value, *own)
        if not facts.improper:
            return between(density, whole, value, low, high, own)
        for bound, within in ((low, arrays.ge), (high, arrays.le)):
            density = density if bound is None else inside(within(value, bound), density)
        return density

    def transform(noise: Tensor, *parameters: Tensor) -> Tensor:
        return truncated_draw(whole, noise, _end(parameters[-2]), _end(parameters[-1]), parameters[:-2])

    def draw(shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        if whole.draw is not None and facts.improper:
            return whole.draw(shape, generator, *parameters[:-2])
        return transform(open_uniforms(shape, parameters[-1], generator), *parameters)

    def tails(value: Tensor, *parameters: Tensor) -> Tails:
        own, low, high = parameters[:-2], _end(parameters[-2]), _end(parameters[-1])
        start = None if low is None else open_end(whole, low)
        all_of_it = 0.0 if low is None and high is None else log_mass(whole, start, high, own).double()
        below, above = log_mass(whole, start, value, own).double(), log_mass(whole, value, high, own).double()
        return below - all_of_it, above - all_of_it

    by_value = facts.discrete or facts.improper
    return TruncatedFamily(
        facts,
        log_prob,
        transform=None if by_value else transform,
        draw=draw if by_value else None,
        reparameterised=False,
        conversions=whole.conversions,
        twice=whole.twice,
        tails=None if facts.improper else tails,
        whole=whole,
    )
