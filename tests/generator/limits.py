"""What a censored or truncated value counts."""

from __future__ import annotations

import math

from scipy.integrate import quad

from tests.generator.elementary import INF
from tests.generator.families import Family


def limited(row: Family, parameters: list[float], x: float, limits: dict[str, float]) -> float:
    """The log density of one value under limits: `right_censored`, `left_censored`, `interval`, `truncate_…`."""
    assert row.lower is not None and row.upper is not None
    low, high = limits.get("truncate_lower", -INF), limits.get("truncate_upper", INF)
    if not low <= x <= high:
        return -INF
    if limits.get("right_censored"):
        mass = _log(_between(row, parameters, x, high))
    elif limits.get("left_censored"):
        mass = _log(_between(row, parameters, low, x))
    elif "interval" in limits and limits["interval"] != x:
        mass = _log(_mass(row, parameters, x, min(limits["interval"], high)))
    else:
        mass = row.log_density(x, *parameters)
    if low == -INF and high == INF:
        return mass
    return mass - _log(_between(row, parameters, low, high))


def _log(mass: float) -> float:
    """The logarithm of a probability; one that has underflowed says nothing."""
    return math.log(mass) if mass > 1e-290 else math.nan


def _between(row: Family, parameters: list[float], a: float, b: float) -> float:
    """P(a ≤ X ≤ b)."""
    return _mass(row, parameters, math.ceil(a) - 1.0 if row.discrete and math.isfinite(a) else a, b)


def _mass(row: Family, parameters: list[float], a: float, b: float) -> float:
    """P(a < X ≤ b), from the tail where the digits are."""
    assert row.lower is not None and row.upper is not None
    below = 0.0 if a == -INF else row.lower(a, *parameters)
    above = 0.0 if b == INF else row.upper(b, *parameters)
    if below == 0.0 and above == 0.0:
        return 1.0
    if b == INF:
        return row.upper(a, *parameters)
    if a == -INF or below == 0.0:
        return row.lower(b, *parameters)
    if below > 0.5:
        whole, beyond = row.upper(a, *parameters), above
    else:
        whole, beyond = row.lower(b, *parameters), below
    if whole - beyond > 1e-5 * whole:
        return whole - beyond
    # between two components of a mixture the difference has lost its digits
    if row.discrete:
        return math.fsum(math.exp(row.log_density(float(k), *parameters)) for k in range(math.floor(a) + 1, int(b) + 1))
    return quad(lambda x: math.exp(row.log_density(x, *parameters)), a, b, epsabs=0.0, epsrel=1e-12)[0]
