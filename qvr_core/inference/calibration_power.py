"""What simulation-based calibration could have seen: the least errors of a posterior that so many ranks would show.

Truth is standard normal, and a wrong posterior is Normal(shift, scale): each rank is then a Binomial, and how often its
distance exceeds the limit is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.calibration import distances

OFTEN = 0.8
"""How often an error is to be seen."""
_SIMULATED, _NUMBERS = 400, 200_000
_STEPS = 8


@dataclass(frozen=True)
class Seen:
    """Errors that are seen in four of five calibrations, in sds of a posterior: one that lies `shift` off, one that is
    `narrow` or `wide` times as wide as it should be; infinite or 0 where none would be."""

    shift: float
    narrow: float
    wide: float


@lru_cache(maxsize=16)
def seen(replicates: int, draws: int, limit: float) -> Seen:
    """For ranks of so many replicates among so many draws each, told where their distance is above `limit`."""
    generator = np.random.default_rng(0)
    rows = min(_SIMULATED, max(50, _NUMBERS // replicates))
    truth = generator.normal(size=(rows, replicates))

    def power(shift: float, scale: float) -> float:
        below = _normal_cdf((truth - shift) / scale)
        return float((distances(np.random.default_rng(1).binomial(draws, below), draws) > limit).mean())

    return Seen(
        _least(lambda size: power(size, 1.0)),
        math.exp(-_least(lambda size: power(0.0, math.exp(-size)))),
        math.exp(_least(lambda size: power(0.0, math.exp(size)))),
    )


def _least(power: Callable[[float], float]) -> float:
    """The least size that is seen often enough, to a hundredth of it; infinite above 4."""
    low, high = 0.0, 4.0
    if power(high) < OFTEN:
        return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= OFTEN else (middle, high)
    return high


def _normal_cdf(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Read off a table: to 1e-6, far below what 400 simulations tell."""
    places = np.linspace(-8.0, 8.0, 16_001)
    return np.interp(values, places, _table(len(places)))


@lru_cache(maxsize=1)
def _table(count: int) -> NDArray[np.float64]:
    cdf = NormalDist().cdf
    return np.array([cdf(place) for place in np.linspace(-8.0, 8.0, count).tolist()])


def in_words(found: Seen, replicates: int) -> str:
    """What would have been seen."""
    sides = [f"less than {found.narrow:.2g}"] if found.narrow > 0 else []
    sides += [f"more than {found.wide:.3g}"] if math.isfinite(found.wide) else []
    parts = [f"lies {found.shift:.2g} of its sd off"] if math.isfinite(found.shift) else []
    parts += [f"is {' or '.join(sides)} times as wide as it should be"] if sides else []
    if not parts:
        return f"but {replicates:,} replicates are too few to see anything: take more (--replicates)"
    return (
        f"as far as {replicates:,} replicates can tell: one whose posterior {', or '.join(parts)}, would be seen four "
        "times in five; smaller errors want more replicates"
    )
