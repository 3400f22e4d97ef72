"""Functions of one number that the generated loops call, each as torch defines it."""

from __future__ import annotations

import math

from qvr_core.codegen.kernels.special import erfc


def square(x: float) -> float:
    return x * x


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def log_sigmoid(x: float) -> float:
    return (x if x < 0.0 else 0.0) - math.log1p(math.exp(-abs(x)))


def at_least(x: float, low: float) -> float:
    """The larger of two; NaN where either is."""
    if math.isnan(x):
        return x
    return low if not x > low else x


def at_most(x: float, high: float) -> float:
    """The smaller of two; NaN where either is."""
    if math.isnan(x):
        return x
    return high if not x < high else x


def power(x: float, y: float) -> float:
    """xʸ; a whole exponent from the data is products, which take a tenth of the time."""
    if y == 2.0:
        return x * x
    if y != math.floor(y) or abs(y) > 32.0:
        return math.pow(x, y)
    result, factor, left = 1.0, x, int(abs(y))
    while left:
        if left & 1:
            result *= factor
        factor *= factor
        left >>= 1
    return result if y >= 0.0 else 1.0 / result


def sign(x: float) -> float:
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


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


def trigamma(x: float) -> float:
    """ψ′(x) for x > 0: recurrence up to 10, then the asymptotic series (Abramowitz & Stegun 6.4)."""
    if not x > 0.0:
        return math.nan
    result = 0.0
    while x < 10.0:
        result += 1.0 / (x * x)
        x += 1.0
    z = 1.0 / (x * x)
    series = z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * (5 / 66 - z * (691 / 2730 - z * 7 / 6))))))
    return result + (1.0 + 0.5 / x + series) / x


def floor(x: float) -> float:
    return x if abs(x) >= 4503599627370496.0 or math.isnan(x) else 1.0 * math.floor(x)


def log_add(x: float, y: float) -> float:
    """log(eˣ + eʸ)."""
    if x == y and math.isinf(x):
        return x
    high = x if x > y else y
    low = y if x > y else x
    return high + math.log1p(math.exp(low - high))


def log_ndtr(x: float) -> float:
    """log Φ(x), in the far tail by its asymptotic series (Abramowitz & Stegun 7.1.23)."""
    t = -x * 0.7071067811865476
    if t < 0.7:
        return math.log1p(-0.5 * erfc(-t))
    if t < 25.0:
        return math.log(0.5 * erfc(t))
    z = 1.0 / (t * t)
    return (
        -t * t - math.log(2.0 * t * 1.772453850905516) + math.log1p(-z * (0.5 - z * (0.75 - z * (1.875 - z * 6.5625))))
    )


def i0e(x: float) -> float:
    """e⁻ˣ I₀(x): its series up to 30, then the asymptotic one (Abramowitz & Stegun 9.6.12, 9.7.1)."""
    x = abs(x)
    term = total = 1.0
    if x <= 30.0:
        for k in range(1, 90):
            term *= 0.25 * x * x / (k * k)
            total += term
        return total * math.exp(-x)
    for k in range(1, 25):
        term *= (2.0 * k - 1.0) ** 2 / (8.0 * k * x)
        total += term
    return total / math.sqrt(2.0 * math.pi * x)


def i1e(x: float) -> float:
    """e⁻ˣ I₁(|x|) with the sign of x, as `i0e`."""
    size = abs(x)
    term = total = 1.0
    if size <= 30.0:
        for k in range(1, 90):
            term *= 0.25 * size * size / (k * (k + 1.0))
            total += term
        return 0.5 * x * total * math.exp(-size)
    for k in range(1, 25):
        term *= ((2.0 * k - 1.0) ** 2 - 4.0) / (8.0 * k * size)
        total += term
    return math.copysign(total / math.sqrt(2.0 * math.pi * size), x)
