"""R-hat, effective sample sizes and Monte Carlo errors of many numbers at once.

Draws are arrays (chains, draws, elements); what comes out has one number for each element, NaN where a draw is NaN or
there are fewer than four.  Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021); Geyer (1992) for where a sum of
autocorrelations ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.diagnostics.ranks import normal_scores

Array = NDArray[np.float64]

FEWEST = 4
"""Draws of a chain of which there are statistics at all."""
TAILS = (0.05, 0.95)
_AT_ONCE = 40_000
"""Numbers that are looked at in one go: more take more memory, and no less time."""


@dataclass(frozen=True, slots=True)
class Mixing:
    """What is told of each element.  `inefficiency`: draws per effective draw within half a chain, by its ranks."""

    r_hat: Array
    bulk: Array
    tail: Array
    mean: Array
    inefficiency: Array


def mixing(draws: Array, elements: NDArray[np.int64] | None = None) -> Mixing:
    """Rank-normalised split R-hat, bulk and tail ESS, the ESS of the mean, of draws (chains, draws, elements); of some
    elements, by their places."""
    parts = list(_each_block(draws, _mixing, elements))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Mixing(*columns)


def _mixing(rows: Array) -> tuple[Array, ...]:
    halves = _halves(rows)
    scores, folded = _scores(halves), _scores(_folded(halves))
    bulk, within = _sizes(scores, compared=True)
    _, within_folded = _sizes(folded, compared=True)
    r_hat = np.full(len(rows), np.nan)
    if rows.shape[1] > 1:
        r_hat = np.fmax(_between_to_within(scores), _between_to_within(folded))
    tail = np.minimum(*(_of_quantile(rows, one) for one in TAILS))
    return r_hat, bulk, tail, _sizes(halves)[0], np.maximum(within, within_folded)


def r_hat(draws: Array) -> Array:
    """Rank-normalised split R-hat of draws (chains, draws, elements); NaN of one chain."""

    def of(rows: Array) -> tuple[Array]:
        halves = _halves(rows)
        if rows.shape[1] < 2:
            return (np.full(len(rows), np.nan),)
        return (np.fmax(_between_to_within(_scores(halves)), _between_to_within(_scores(_folded(halves)))),)

    return _joined(draws, of)


def ess_bulk(draws: Array) -> Array:
    """Effective draws of the ranks."""
    return _joined(draws, lambda rows: (_sizes(_scores(_halves(rows)))[0],))


def ess_tail(draws: Array) -> Array:
    """The lesser number of effective draws of the 5 % and the 95 % quantile."""
    return _joined(draws, lambda rows: (np.minimum(*(_of_quantile(rows, one) for one in TAILS)),))


def ess_mean(draws: Array) -> Array:
    """Effective draws of the mean."""
    return _joined(draws, lambda rows: (_sizes(_halves(rows))[0],))


def ess_sd(draws: Array) -> Array:
    """Effective draws of the squared distances from the mean, of which the sd is made."""
    return ess_mean((draws - draws.mean((0, 1))) ** 2)


def mcse_mean(draws: Array) -> Array:
    """Monte Carlo standard error of the mean."""
    return draws.std((0, 1), ddof=1) / np.sqrt(ess_mean(draws))


def mcse_sd(draws: Array) -> Array:
    """Monte Carlo standard error of the sd, by the delta method."""
    squares = (draws - draws.mean((0, 1))) ** 2
    variance = squares.mean((0, 1))
    return np.sqrt(((squares**2).mean((0, 1)) - variance**2) / ess_sd(draws) / variance / 4)


def e_bfmi(energy: Array) -> Array:
    """Of each chain of (chains, draws): how far the energy moves in a transition to how far it varies."""
    return np.square(np.diff(energy, axis=1)).mean(1) / energy.var(1, ddof=1)


# ---------------------------------------------------------------- of rows: (elements, chains, draws)


def _each_block(
    draws: Array, of: Callable[[Array], tuple[Array, ...]], elements: NDArray[np.int64] | None = None
) -> Iterator[tuple[Array, ...]]:
    """`of` blocks of elements, (elements, chains, draws); NaN where it cannot be asked."""
    chains, length, count = draws.shape
    count = count if elements is None else len(elements)
    size = max(1, _AT_ONCE // max(1, chains * length))
    with np.errstate(all="ignore"):
        for start in range(0, max(count, 1), size):
            some = slice(start, start + size) if elements is None else elements[start : start + size]
            rows = np.ascontiguousarray(np.moveaxis(draws[:, :, some], 2, 0), dtype=np.float64)
            wrong = np.isnan(rows).any((1, 2)) | (length < FEWEST)
            results = of(np.zeros((len(rows), chains, FEWEST)) if length < FEWEST else rows)
            yield tuple(np.where(wrong, np.nan, one) for one in results)


def _joined(draws: Array, of: Callable[[Array], tuple[Array, ...]]) -> Array:
    return np.concatenate([found[0] for found in _each_block(draws, of)])


def _halves(rows: Array) -> Array:
    """First and second halves as chains of their own; the draw in the middle of an odd number is left out."""
    half = rows.shape[2] // 2
    return np.concatenate([rows[:, :, :half], rows[:, :, -half:]], 1)


def _scores(rows: Array) -> Array:
    return normal_scores(rows.reshape(len(rows), -1)).reshape(rows.shape)


def _folded(rows: Array) -> Array:
    """Distances from the median of all."""
    return np.abs(rows - np.median(rows, axis=(1, 2), keepdims=True))


def _between_to_within(rows: Array) -> Array:
    """R-hat of chains as they are: √(how much their means and their draws vary / how much their draws do)."""
    draws = rows.shape[2]
    between = rows.mean(2).var(1, ddof=1)
    within = rows.var(2, ddof=1).mean(1)
    return np.sqrt((draws - 1) / draws + between / within)


def _of_quantile(rows: Array, probability: float) -> Array:
    """Effective draws of whether a draw lies below the quantile of all."""
    at = np.quantile(rows.reshape(len(rows), -1), probability, axis=1)
    return _sizes(_halves((rows <= at[:, None, None]).astype(np.float64)))[0]


def _sizes(rows: Array, *, compared: bool = False) -> tuple[Array, Array]:
    """Effective sample sizes of chains as they are; if `compared` also draws per effective draw within them."""
    count, chains, draws = rows.shape
    every = chains * draws
    covariances = _autocovariances(rows)
    within = covariances[:, :1] * draws / (draws - 1)
    over_all = covariances[:, :1].copy()
    if chains > 1:
        over_all += rows.mean(2).var(1, ddof=1)[:, None]
    least = 1 / math.log10(every)
    taus = np.maximum(_summed(1 - (within - covariances) / over_all), least)
    constant = rows.max((1, 2)) - rows.min((1, 2)) < np.finfo(np.float64).resolution
    sizes = every / np.where(constant, 1.0, taus)
    inside = np.ones(count)
    if compared:
        inside = np.where(constant, 1.0, np.maximum(_summed(covariances / covariances[:, :1]), 1.0))
    return sizes, inside


def _summed(correlations: Array) -> Array:
    """τ = 1 + 2 Σ ρ of autocorrelations (elements, draws), up to where the sums of pairs are no longer positive, each
    pair at most what the one before it is."""
    count, draws = correlations.shape
    rho = correlations.copy()
    rho[:, 0] = 1.0
    last = max((draws - 1) // 2 - 1, 0)  # the last pair that is looked at
    even, odd = rho[:, 0 : 2 * last + 1 : 2], rho[:, 1 : 2 * last + 2 : 2]
    pairs = even + odd
    # the first pair that is not positive ends the sum, and of it only the even one may count
    ends: NDArray[np.intp] = np.argmin(pairs > 0, axis=1)
    ends[(pairs > 0).all(1)] = last
    lessening = np.minimum.accumulate(pairs, axis=1)
    before = np.where(np.arange(last + 1, dtype=np.intp) < ends[:, None], lessening, 0.0).sum(1)
    rows = np.arange(count, dtype=np.intp)
    at_end = even[rows, ends]
    at_end = np.where((at_end > 0) | (pairs[rows, ends] >= 0), at_end, 0.0)
    return np.where(np.isnan(pairs).any(1), np.nan, 2 * before - 1 + at_end)


def _autocovariances(rows: Array) -> Array:
    """Of (elements, chains, draws) at lags 0 … draws − 1, averaged over the chains, each divided by all draws."""
    draws = rows.shape[2]
    size = _fast_size(2 * draws)
    spectrum = np.fft.rfft(rows - rows.mean(2, keepdims=True), size, axis=2)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    return np.fft.irfft(power.mean(1), size, axis=1)[:, :draws] / draws


def _fast_size(least: int) -> int:
    """A length of at least so many that is a product of small primes."""
    odd = (1, 3, 5, 9, 15, 25, 27, 45, 75, 81, 125, 135)
    return min(one << max(0, math.ceil(math.log2(least / one))) for one in odd)
