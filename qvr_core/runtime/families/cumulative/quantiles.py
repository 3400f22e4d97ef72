"""Draws from a part of a family's support, by the inverse of its cdf."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.cumulative.tails import log_between
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
    ranks = [parameter.rank for parameter in family.facts.parameters if not parameter.sizes]
    wide = [_each(parameter, noise, rank) for parameter, rank in zip(parameters, ranks, strict=True)]
    left, right = (
        _each(noise.new_tensor(open_end) if end is None else end, noise, 0).double()
        for end, open_end in ((low, -math.inf), (high, math.inf))
    )
    flat = noise.reshape(-1).double()
    parts = [slice(start, start + _BLOCK) for start in range(0, len(flat), _BLOCK)]
    found = [_found(family, flat[p], left[p], right[p], tuple(w[p] for w in wide)) for p in parts]
    return (arrays.cat(found) if found else flat).reshape(noise.shape).to(noise.dtype)


def _each(value: Tensor, noise: Tensor, rank: int) -> Tensor:
    """A parameter for each of the draws, on one axis in front of its own."""
    own = value.shape[value.ndim - rank :]
    return value.expand(*noise.shape, *own).reshape(-1, *own)


def _found(family: RuntimeFamily, noise: Tensor, low: Tensor, high: Tensor, parameters: Params) -> Tensor:
    discrete = family.facts.discrete
    start = low.ceil() - 1.0 if discrete else low
    first, last = family.log_tails(start, *parameters), family.log_tails(high, *parameters)
    whole, _ = log_between(first, last)
    # each half by the tail in which it has its digits
    upper = noise > 0.5
    wanted = whole + arrays.where(upper, arrays.log1p(-noise), noise.log())

    def beyond(value: Tensor) -> tuple[Tensor, Tensor]:
        """How far the log probability up to a value is past what is wanted, and that probability."""
        tails = family.log_tails(value, *parameters)
        mass = arrays.where(upper, log_between(tails, last)[0], log_between(first, tails)[0])
        return arrays.where(upper, wanted - mass, mass - wanted), mass

    # floats in their order are whole numbers in theirs: bisection finds the size of any
    largest = arrays.finfo(arrays.float64).max
    under, over = start.clamp(-largest, largest), high.clamp(-largest, largest)
    for _ in range(64):
        near = (
            over.floor() - under.floor() <= 1.0 if discrete else over - under <= 0.5 * under.abs().maximum(over.abs())
        )
        if bool(near.all()):
            break
        middle = _middle(under, over)
        past = beyond(middle)[0] >= 0.0
        under, over = arrays.where(past, under, middle), arrays.where(past, middle, over)
    value = over.floor() if discrete else _polished(family, beyond, under, over, parameters)
    return arrays.where(whole > -math.inf, arrays.minimum(arrays.maximum(value, low), high), math.nan)


def _polished(
    family: RuntimeFamily,
    beyond: Callable[[Tensor], tuple[Tensor, Tensor]],
    under: Tensor,
    over: Tensor,
    parameters: Params,
) -> Tensor:
    """The root between two values by Newton's method, by halves where a step would leave what is known."""
    value = under + 0.5 * (over - under)
    for _ in range(100):
        gap, mass = beyond(value)
        under, over = arrays.where(gap < 0.0, value, under), arrays.where(gap < 0.0, over, value)
        moved = value - gap * (mass - family.log_prob(value, *parameters)).exp()
        inside = (moved >= under) & (moved <= over)
        moved = arrays.where(inside, moved, under + 0.5 * (over - under))
        if bool(((moved - value).abs() <= _ROUNDING * value.abs()).all()):
            return moved
        value = moved
    return value


def _middle(under: Tensor, over: Tensor) -> Tensor:
    """The float half way between two, in the order of all floats."""
    a, b = _order(under), _order(over)
    return under.new_tensor(_turned((a & b) + ((a ^ b) >> 1)).view(np.float64))


def _order(value: Tensor) -> NDArray[np.int64]:
    """The place of a float among all floats."""
    return _turned(np.asarray((value + 0.0).detach().cpu().numpy(), np.float64).view(np.int64))


def _turned(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
