"""Draws from a part of a family's support, by the inverse of its cdf."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.cumulative.tails import Tails, log_between, within
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params

_BLOCK = 20_000
"""So many draws are made at a time: some cdfs need fifty numbers for each."""
_ROUNDING = 1e-14


@arrays.no_grad()
def truncated_draw(
    family: RuntimeFamily, noise: Tensor, low: Tensor | None, high: Tensor | None, parameters: Params
) -> Tensor:
    """The least x with P(low ≤ X ≤ x) ≥ noise · P(low ≤ X ≤ high), to the rounding of double precision.

    `noise` is uniform, one number a draw; everything else broadcasts to it.  NaN where nothing lies between the bounds.
    """
    wide = [_each(parameter, noise, rank) for parameter, rank in zip(parameters, family.ranks, strict=True)]
    left, right = (
        _each(noise.new_tensor(open_end) if end is None else end, noise, 0).double()
        for end, open_end in ((low, -math.inf), (high, math.inf))
    )
    flat = noise.reshape(-1).double()
    parts = [slice(start, start + _BLOCK) for start in range(0, len(flat), _BLOCK)]
    found = [_values_at(family, flat[p], left[p], right[p], tuple(w[p] for w in wide)) for p in parts]
    return (arrays.cat(found) if found else flat).reshape(noise.shape).to(noise.dtype)


def _each(value: Tensor, noise: Tensor, rank: int) -> Tensor:
    """A parameter for each of the draws, on one axis in front of its own."""
    own = value.shape[value.ndim - rank :]
    return value.expand(*noise.shape, *own).reshape(-1, *own)


def _values_at(family: RuntimeFamily, noise: Tensor, low: Tensor, high: Tensor, parameters: Params) -> Tensor:
    start = low.ceil() - 1.0 if family.facts.discrete else low
    first, last = family.log_tails(start, *parameters), family.log_tails(high, *parameters)
    possible = log_between(first, last)[0] > -math.inf
    if family.quantile is not None:
        exact = (parameter.double() for parameter in parameters)
        value = family.quantile(*within(first, last, noise.log(), arrays.log1p(-noise)), *exact)
    else:
        value = _Search(family, noise, start, high, parameters, first, last).root(possible)
    return arrays.where(possible, arrays.minimum(arrays.maximum(value, low), high), math.nan)


@dataclass(frozen=True)
class _Search:
    """The values up to which a part of a support holds given shares of it, by their tails."""

    family: RuntimeFamily
    noise: Tensor
    start: Tensor
    high: Tensor
    parameters: Params
    first: Tails
    last: Tails

    def root(self, possible: Tensor) -> Tensor:
        """The values, where there is anything between the bounds."""
        discrete = self.family.facts.discrete
        # floats in their order are whole numbers in theirs: bisection finds the size of any
        largest = arrays.finfo(arrays.float64).max
        under, over = self.start.clamp(-largest, largest), self.high.clamp(-largest, largest)
        rows = possible.nonzero().squeeze(-1)
        while len(rows):
            least, most = under[rows], over[rows]
            if discrete:
                wide = most.floor() - least.floor() > 1.0
            else:
                wide = most - least > 0.5 * least.abs().maximum(most.abs())
            rows, least, most = rows[wide], least[wide], most[wide]
            if not len(rows):
                break
            middle = _middle(least, most)
            past = self._at(rows)._beyond(middle)[0] >= 0.0
            under[rows], over[rows] = arrays.where(past, least, middle), arrays.where(past, middle, most)
        return over.floor() if discrete else self._polished(under, over, possible.nonzero().squeeze(-1))

    def _polished(self, under: Tensor, over: Tensor, rows: Tensor) -> Tensor:
        """The roots between two values by Newton's method, by halves where a step would leave what is known."""
        value = under + 0.5 * (over - under)
        for _ in range(100):
            if not len(rows):
                break
            part, here, least, most = self._at(rows), value[rows], under[rows], over[rows]
            gap, mass, rounding = part._beyond(here)
            least, most = arrays.where(gap < 0.0, here, least), arrays.where(gap < 0.0, most, here)
            moved = here - gap * (mass - self.family.log_prob(here, *part.parameters)).exp()
            inside = (moved >= least) & (moved <= most)
            moved = arrays.where(inside, moved, least + 0.5 * (most - least))
            value[rows], under[rows], over[rows] = moved, least, most
            # what is left of the gap is what the tails have lost
            rows = rows[((moved - here).abs() > _ROUNDING * here.abs()) & (gap.abs() > rounding)]
        return value

    def _at(self, rows: Tensor) -> _Search:
        """The search of some of the draws."""
        first, last = ((lower[rows], upper[rows]) for lower, upper in (self.first, self.last))
        parameters = tuple(parameter[rows] for parameter in self.parameters)
        return _Search(self.family, self.noise[rows], self.start[rows], self.high[rows], parameters, first, last)

    def _beyond(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How far the log probability up to a value is past what is wanted, that probability, and the rounding of
        both."""
        # each half by the tail in which it has its digits
        upper = self.noise > 0.5
        whole, _ = log_between(self.first, self.last)
        wanted = whole + arrays.where(upper, arrays.log1p(-self.noise), self.noise.log())
        tails = self.family.log_tails(value, *self.parameters)
        mass = arrays.where(upper, log_between(tails, self.last)[0], log_between(self.first, tails)[0])
        rounding = 4.0 * arrays.finfo(arrays.float64).eps * arrays.maximum(wanted.abs(), arrays.ones_like(wanted))
        return arrays.where(upper, wanted - mass, mass - wanted), mass, rounding


def _middle(under: Tensor, over: Tensor) -> Tensor:
    """The float half way between two, in the order of all floats."""
    a, b = _order(under), _order(over)
    return under.new_tensor(_turned((a & b) + ((a ^ b) >> 1)).view(np.float64))


def _order(value: Tensor) -> NDArray[np.int64]:
    """The place of a float among all floats."""
    return _turned(np.asarray((value + 0.0).detach().cpu().numpy(), np.float64).view(np.int64))


def _turned(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
