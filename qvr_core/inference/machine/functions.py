"""Functions of one number that the generated loops call, each as torch defines it."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

compiled: Any = njit(error_model="numpy")


@compiled
def square(x: float) -> float:
    return x * x


@compiled
def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@compiled
def softplus(x: float, beta: float, threshold: float) -> float:
    """log(1 + eᵝˣ) / β, and x above the threshold, as torch has it."""
    scaled = beta * x
    return x if scaled > threshold else math.log1p(math.exp(scaled)) / beta


@compiled
def log_sigmoid(x: float) -> float:
    return (x if x < 0.0 else 0.0) - math.log1p(math.exp(-abs(x)))


@compiled
def at_least(x: float, low: float) -> float:
    """The larger of two; NaN where either is."""
    if math.isnan(x):
        return x
    return low if not x > low else x


@compiled
def at_most(x: float, high: float) -> float:
    """The smaller of two; NaN where either is."""
    if math.isnan(x):
        return x
    return high if not x < high else x


@compiled
def sign(x: float) -> float:
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


@compiled
def digamma(x: float) -> float:
    """ψ(x): recurrence up to 10, then the asymptotic series; reflection below 0 (Abramowitz & Stegun 6.3)."""
    result = 0.0
    if x <= 0.0:
        if x == math.floor(x):
            return -math.inf * 0.0 if x < 0.0 else math.copysign(math.inf, -x)
        result = -math.pi / math.tan(math.pi * x)
        x = 1.0 - x
    while x < 10.0:
        result -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (5 / 660 - z * (691 / 32760 - z / 12))))))
    return result + math.log(x) - 0.5 / x - series
