"""Pareto-smoothed importance sampling of many sets of weights at once.

Vehtari, Simpson, Gelman, Yao & Gabry (2024) for the smoothing and k; Zhang & Stephens (2009) for the fit of the tail;
Vehtari, Gelman & Gabry (2017) for leaving one observation out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_IN_TAIL = 5
_AT_ONCE = 200_000
"""Numbers that a fit holds in one go."""


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Normalised log weights (draws, elements), and Pareto k of each element: −∞ where its weights do not differ, ∞
    where one is not finite or too few differ for a tail, NaN where one is no number."""

    log_weights: Array
    k: Array


def smoothed(log_ratios: Array, efficiency: float = 1.0) -> Smoothed:
    """PSIS of log importance ratios (draws, elements); `efficiency` is effective draws per draw."""
    draws, count = log_ratios.shape
    size = max(1, _AT_ONCE // max(1, tail_size(draws, efficiency) * _places(tail_size(draws, efficiency))))
    size = min(size, max(1, _AT_ONCE // max(1, draws)))
    weights, k = np.empty((draws, count)), np.empty(count)
    with np.errstate(all="ignore"):
        for start in range(0, count, size):
            block = slice(start, start + size)
            weights[:, block], k[block] = _block(log_ratios[:, block], tail_size(draws, efficiency))
    return Smoothed(weights, k)


def pareto_k(log_weights: Array) -> float:
    """Of the importance weights of one guide, (draws,)."""
    return float(smoothed(log_weights[:, None]).k[0])


def effective(log_weights: Array) -> float:
    """As how many equally likely draws those with these importance weights count, (draws,): 1 / Σ w², the weights
    normalised and their tail smoothed (Kong 1992); 0 where none is finite."""
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(1.0 / np.exp(2.0 * smoothed(log_weights[:, None]).log_weights).sum()))


def leave_one_out(log_likelihood: Array, efficiency: float = 1.0) -> tuple[Array, Array, Array]:
    """Of the log likelihood (draws, elements) of observations: expected log predictive density without each, Pareto k,
    effective number of parameters."""
    found = smoothed(-log_likelihood, efficiency)
    with np.errstate(all="ignore"):
        elpd = _log_sum_exp(found.log_weights + log_likelihood)
        elpd = np.where(np.isneginf(log_likelihood).any(0), -np.inf, elpd)  # a draw that rules the observation out
        parameters = _log_sum_exp(log_likelihood) - math.log(len(log_likelihood)) - elpd
    same = np.isneginf(found.k)
    return np.where(same, log_likelihood[0], elpd), found.k, np.where(same, 0.0, parameters)


def tail_size(draws: int, efficiency: float = 1.0) -> int:
    """How many of the largest weights are smoothed."""
    if draws * efficiency > 225:
        return min(math.floor(3 * math.sqrt(draws / efficiency)), draws - 1)
    return draws // 5


def _places(tail: int) -> int:
    return 30 + math.isqrt(tail)


def _block(log_ratios: Array, tail: int) -> tuple[Array, Array]:
    draws, count = log_ratios.shape
    weights = log_ratios - log_ratios.max(0)
    k = np.full(count, np.inf)
    k[log_ratios.min(0) == log_ratios.max(0)] = -np.inf
    k[np.isnan(log_ratios).any(0)] = np.nan
    order = np.argsort(weights, axis=0)
    ordered = np.take_along_axis(weights, order, 0)
    largest = ordered[draws - tail :]
    usable = np.isfinite(weights).all(0) & (tail >= FEWEST_IN_TAIL)
    usable &= (largest[-1] - largest[0] >= np.finfo(np.float64).tiny) if tail else False
    columns = np.flatnonzero(usable)
    if len(columns):
        cutoff = np.exp(ordered[draws - tail - 1, columns])
        shape, scale = generalised_pareto((np.exp(largest[:, columns]) - cutoff).T)
        smooth = np.log(_quantiles(tail, shape, scale) + cutoff)
        good = np.isfinite(shape)
        columns, smooth = columns[good], smooth[:, good]
        k[columns] = shape[good]
        ordered[draws - tail :, columns] = np.minimum(smooth, largest[-1, columns])
    result = np.empty_like(ordered)
    np.put_along_axis(result, order, ordered, 0)
    return result - _log_sum_exp(result), k


def generalised_pareto(exceedances: Array) -> tuple[Array, Array]:
    """Shape k and scale of a generalised Pareto distribution, of each row of ascending (elements, n).

    The posterior mean over a grid of θ = −k / scale under the weakly informative prior of Zhang & Stephens; k is drawn
    towards 0.5 as ten further observations would.
    """
    count = exceedances.shape[1]
    places = _places(count)
    quartile = exceedances[:, int(count / 4 + 0.5) - 1]
    theta = 1 - np.sqrt(places / (np.arange(1, places + 1) - 0.5))
    theta = theta / (3 * quartile[:, None]) + 1 / exceedances[:, -1:]
    shapes = np.log1p(-theta[:, :, None] * exceedances[:, None, :]).mean(2)
    profile = count * (np.log(-theta / shapes) - shapes - 1)
    weights = np.exp(profile - profile.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    weights[weights < 10 * np.finfo(np.float64).eps] = 0.0
    best = (theta * weights).sum(1) / weights.sum(1)
    shape = np.log1p(-best[:, None] * exceedances).mean(1)
    return (count * shape + 10 * 0.5) / (count + 10), -shape / best


def _quantiles(count: int, shape: Array, scale: Array) -> Array:
    """The expected order statistics (count, elements) of a generalised Pareto distribution."""
    probabilities = (np.arange(count) + 0.5)[:, None] / count
    flat = -np.log1p(-probabilities)
    return scale * np.where(np.abs(shape) < np.finfo(np.float64).eps, flat, np.expm1(shape * flat) / shape)


def _log_sum_exp(values: Array) -> Array:
    """Over the draws of (draws, elements)."""
    high = values.max(0)
    high = np.where(np.isfinite(high), high, 0.0)
    with np.errstate(all="ignore"):
        return high + np.log(np.exp(values - high).sum(0))
