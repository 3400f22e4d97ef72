"""From where on draws are trusted: the only place that says so.

Vehtari et al. (2021) for R-hat, effective sample sizes and Monte Carlo errors; Betancourt (2016) for E-BFMI; Vehtari
et al. (2024) for Pareto k.
"""

from __future__ import annotations

import math
from functools import lru_cache

R_HAT = 1.01
"""An R-hat of that much is never told."""
R_HAT_EXCUSED = 1.05
"""Above it no Monte Carlo error is an excuse."""
R_HAT_LEVEL = 0.01
"""How often the largest R-hat of chains that have mixed may be called too large."""
EFFECTIVE_PER_CHAIN = 100
"""Effective draws, of the bulk and of the tails, that each chain should give."""
COARSE = 0.1
"""Monte Carlo standard errors of means above this part of the posterior's sd are told."""
LOW_ENERGY = 0.3
"""E-BFMI below which chains cannot follow the tails."""
PARETO_K = 0.7
"""The Pareto k above which no number of draws helps."""
MOST_STILL = 0.5
"""The part of a chain's transitions that may leave it where it is."""
FEWEST_DRAWS = 20
"""Draws of a chain below which nothing can be told."""


def good_k(draws: int) -> float:
    """The largest Pareto k that so many draws allow: min(1 − 1 / log₁₀ S, 0.7)."""
    return min(1 - 1 / math.log10(draws), PARETO_K) if draws > 10 else 0.0


def fewest_for_pareto() -> int:
    """Draws of which a Pareto k of `PARETO_K` can be trusted: below them, large values are too few draws."""
    return math.ceil(10 ** (1 / (1 - PARETO_K)))


def r_hat_limit(chains: int, draws: int, inefficiency: float, numbers: int) -> float:
    """The largest R-hat to be expected of chains that have mixed, between `R_HAT` and `R_HAT_EXCUSED`.

    Of `chains` halves of `draws` each the means vary by (W / draws) · inefficiency · χ² / (chains − 1), where
    `inefficiency` is draws per effective draw within the halves; `numbers` of them are looked at, each by its place
    and its spread.
    """
    freedom = chains - 1
    if freedom < 1 or draws < 2 or not math.isfinite(inefficiency):
        return R_HAT
    share = _chi_squared(R_HAT_LEVEL / (2 * max(numbers, 1)), freedom) / freedom
    expected = math.sqrt(1 + (inefficiency * share - 1) / draws) if inefficiency * share > 1 else 1.0
    return min(max(expected, R_HAT), R_HAT_EXCUSED)


@lru_cache(maxsize=64)
def _chi_squared(survival: float, freedom: int) -> float:
    """Where χ² of an odd number of degrees of freedom is exceeded so often, by halving."""
    low, high = 0.0, freedom + 10.0
    while _exceeded(high, freedom) > survival:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _exceeded(middle, freedom) > survival else (low, middle)
    return high


def _exceeded(value: float, freedom: int) -> float:
    """P(χ² > value): 2 Q(√x) + 2 φ(√x) (√x + √x³ / 3 + √x⁵ / (3 · 5) + …), (freedom − 1) / 2 terms of it."""
    root = math.sqrt(value)
    term, total = root, 0.0
    for odd in range(3, freedom + 1, 2):
        total += term
        term *= value / odd
    return math.erfc(root / math.sqrt(2)) + math.sqrt(2 / math.pi) * math.exp(-value / 2) * total
