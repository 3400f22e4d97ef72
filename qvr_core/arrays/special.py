"""Special functions on numpy arrays, to rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
FEW = 64


def _each(function: Any) -> Any:
    mapped = cast("Callable[[Numbers], Any]", np.frompyfunc(function, 1, 1))

    def apply(x: Any) -> Numbers:
        x = np.asarray(x)
        if x.size > FEW and bool((x == np.floor(x)).all()):
            # counts of data, the same in each draw
            values, places = np.unique(x, return_inverse=True)
            return np.asarray(mapped(values), dtype=np.float64)[places].reshape(x.shape)
        return np.asarray(mapped(x), dtype=np.float64)

    return apply


def _lgamma_of_one(x: float) -> float:
    if not math.isfinite(x):
        return abs(x)
    return math.inf if x <= 0.0 and x == math.floor(x) else math.lgamma(x)


lgamma = _each(_lgamma_of_one)
erf, erfc = _each(math.erf), _each(math.erfc)


def digamma(x: Numbers) -> Numbers:
    """ψ(x): recurrence upwards, then its asymptotic series; reflection below 0; NaN at the poles but −∞ at 0."""
    x = np.asarray(x, np.float64)
    negative = x < 0.0
    y = np.where(negative, 1.0 - x, x)
    total = np.zeros_like(y)
    for _ in range(10):
        small = y < 10.0
        total = total - np.where(small, 1.0 / np.where(small, y, 1.0), 0.0)
        y = np.where(small, y + 1.0, y)
    z = 1.0 / (y * y)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (5 / 660 - z * (691 / 32760 - z / 12))))))
    found = total + np.log(y) - 0.5 / y - series
    whole = negative & (x == np.floor(x))
    reflected = found - math.pi / np.tan(math.pi * (x - np.floor(x)))
    return np.where(whole, np.nan, np.where(negative, reflected, np.where(x == 0.0, -np.inf, found)))


def trigamma(x: Numbers) -> Numbers:
    """ψ′(x), by the same steps."""
    x = np.asarray(x, np.float64)
    negative = x < 0.0
    y = np.where(negative, 1.0 - x, x)
    total = np.zeros_like(y)
    for _ in range(12):
        small = y < 12.0
        total = total + np.where(small, 1.0 / np.where(small, y * y, 1.0), 0.0)
        y = np.where(small, y + 1.0, y)
    z = 1.0 / (y * y)
    series = (
        1.0 + 0.5 / y + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * (5 / 66 - z * 691 / 2730)))))
    ) / y
    found = total + series
    return np.where(negative, (math.pi / np.sin(math.pi * x)) ** 2 - found, found)


def _erfcx_of_one(x: float) -> float:
    """exp(x²) erfc(x) for x ≥ 0: by erfc where that has digits, else Lentz's continued fraction."""
    if x < 20.0:
        return math.exp(x * x) * math.erfc(x)
    tail = 0.0
    for k in range(60, 0, -1):
        tail = 0.5 * k / (x + tail)
    return 1.0 / (math.sqrt(math.pi) * (x + tail))


def _log_ndtr_of_one(x: float) -> float:
    if math.isnan(x):
        return x
    if x > -5.0:
        return (
            math.log1p(-0.5 * math.erfc(x * math.sqrt(0.5)))
            if x > 0.0
            else math.log(0.5 * math.erfc(-x * math.sqrt(0.5)))
        )
    y = -x * math.sqrt(0.5)
    if math.isinf(y):
        return -math.inf
    return -y * y + math.log(0.5 * _erfcx_of_one(y))


log_ndtr = _each(_log_ndtr_of_one)


def _ie_of_one(order: int) -> Any:
    def found(x: float) -> float:
        y = abs(x)
        sign = -1.0 if order == 1 and x < 0.0 else 1.0
        if y < 30.0:
            term = total = (0.5 * y) ** order
            k = 0
            while term > 1e-18 * total and k < 500:
                k += 1
                term *= (0.25 * y * y) / (k * (k + order))
                total += term
            return sign * total * math.exp(-y)
        if math.isinf(y):
            return 0.0
        term = total = 1.0
        mu = 4.0 * order * order
        for k in range(1, 40):
            step = term * -(mu - (2 * k - 1) ** 2) / (k * 8.0 * y)
            if abs(step) > abs(term):
                break
            term = step
            total += term
        return sign * total / math.sqrt(2.0 * math.pi * y)

    return found


i0e, i1e = _each(_ie_of_one(0)), _each(_ie_of_one(1))


def ndtri(p: Numbers) -> Numbers:
    """The standard normal's quantiles: Acklam's rational start, then Halley's steps on log Φ or Φ."""
    p = np.asarray(p, np.float64)
    upper = p > 0.5
    q = np.where(upper, 1.0 - p, p)
    with np.errstate(all="ignore"):
        t = np.sqrt(-2.0 * np.log(q))
        x = -(
            t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3)
        )
        for _ in range(4):
            error = log_ndtr(x) - np.log(q)
            slope = np.exp(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - log_ndtr(x))
            x = x - error / slope
    x = np.where(q == 0.0, -np.inf, np.where((q < 0.0) | np.isnan(q), np.nan, np.where(q == 0.5, 0.0, x)))
    return np.where(upper, -x, x)


def sigmoid(x: Numbers) -> Numbers:
    """1 / (1 + exp(−x))."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, small) / (1.0 + small)


def softplus(x: Numbers) -> Numbers:
    """log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def log_sigmoid(x: Numbers) -> Numbers:
    """log(1 / (1 + exp(−x)))."""
    return -np.logaddexp(0.0, -x)
