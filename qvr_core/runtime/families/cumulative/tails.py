"""Logarithms of probabilities of tails and of intervals, without loss of digits in either tail."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays, special

Tails = tuple[Tensor, Tensor]
"""log P(X ≤ x) and log P(X > x)."""

_LOG_HALF = -math.log(2.0)


def log1mexp(log_p: Tensor) -> Tensor:
    """log(1 − e^p) for p ≤ 0 (Mächler 2012); at 0 it is −∞, without a gradient."""
    certain = log_p >= 0.0
    p = arrays.where(certain, -1.0, log_p)
    near = p > _LOG_HALF
    # each formula sees only its own side, so that the other has no gradient there
    close = arrays.log(-arrays.expm1(arrays.where(near, p, -1.0)))
    made = arrays.where(near, close, arrays.log1p(-arrays.exp(arrays.where(near, -1.0, p))))
    return arrays.where(certain, -math.inf, made)


def upper_first(log_survival: Tensor) -> Tails:
    """Both tails from the upper one."""
    return log1mexp(log_survival), log_survival


def lower_first(log_cdf: Tensor) -> Tails:
    """Both tails from the lower one."""
    return log_cdf, log1mexp(log_cdf)


def from_smaller(lower: Tensor, upper: Tensor) -> Tails:
    """Both tails, where each has its digits while it is the smaller one."""
    first = lower < upper
    smaller = arrays.where(first, lower, upper)
    larger = log1mexp(smaller)
    return arrays.where(first, smaller, larger), arrays.where(first, larger, smaller)


def zero_or(tails: Tails, log_weight: Tensor, log_rest: Tensor) -> Tails:
    """Those of what is 0 with probability e^rest, else, with e^weight, a count that has these tails."""
    lower, upper = tails
    counted = log_weight + lower
    return from_smaller(arrays.logaddexp(log_rest.expand_as(counted), counted), log_weight + upper)


def mixed(tails: Tails, log_weights: Tensor) -> Tails:
    """Those of a mixture, components on the last axis."""
    lower, upper = (mixed_mass(tail, log_weights) for tail in tails)
    return from_smaller(lower, upper)


def mixed_mass(each: Tensor, log_weights: Tensor) -> Tensor:
    """The log probability of a mixture from those of its components on the last axis; where none of them can be it is
    −∞, without a gradient."""
    weighted = log_weights + each
    possible = weighted.detach().amax(-1) > -math.inf
    return arrays.where(possible, arrays.logsumexp(arrays.where(possible.unsqueeze(-1), weighted, 0.0), -1), -math.inf)


def normal_tails(z: Tensor) -> Tails:
    """Those of the standard Normal."""
    return special.log_ndtr(z), special.log_ndtr(-z)


def log_between(lower: Tails, upper: Tails) -> tuple[Tensor, Tensor]:
    """log P(l < X ≤ u) from the tails at l and at u, and log of the part of the nearer tail beyond l that it leaves:
    near 0 the difference has lost its digits."""
    above = lower[0].detach() > _LOG_HALF
    whole, rest = arrays.where(above, lower[1], upper[0]), arrays.where(above, upper[1], lower[0])
    possible = (whole > -math.inf) & (rest < whole)
    gap = arrays.where(possible, rest, -1.0) - arrays.where(possible, whole, 0.0)
    return arrays.where(possible, arrays.where(possible, whole, 0.0) + log1mexp(gap), -math.inf), gap


def within(start: Tails, end: Tails, lower: Tensor, upper: Tensor) -> Tails:
    """Both tails of the whole at a value that has these tails among what lies from one value to another: sums of
    positive numbers, so that either has its digits where it is the smaller one."""
    whole, _ = log_between(start, end)
    return from_smaller(arrays.logaddexp(start[0], whole + lower), arrays.logaddexp(end[1], whole + upper))
