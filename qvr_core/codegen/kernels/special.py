"""The error function and the logarithm of the gamma function: C libraries name and round them in ways of their own."""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

FLAGS = "contract nsz"
SQUARE_ROOT_OF_PI = 1.7724538509055161
HALF_LOG_2_PI = 0.9189385332046727
ZETA = (
    0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993, 0.01734306198444914,
    0.008349277381922827, 0.00407735619794434, 0.0020083928260822143, 0.0009945751278180853, 0.0004941886041194645,
    0.0002460865533080483, 0.00012271334757848915, 6.124813505870483e-05, 3.058823630702049e-05,
    1.528225940865187e-05, 7.637197637899763e-06, 3.81729326499984e-06, 1.908212716553939e-06, 9.539620338727962e-07,
    4.769329867878064e-07, 2.38450502727733e-07, 1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08,
    1.4901554828365043e-08, 7.45071178983543e-09, 3.725334024788457e-09, 1.862659723513049e-09,
)  # fmt: skip
"""ζ(k) − 1 from k = 2 on."""
ONE_LESS_EULER = 0.42278433509846713
SERIES = (ONE_LESS_EULER, *((-1.0) ** k * ZETA[k - 2] / k for k in range(2, 29)))
"""log Γ(2 + z) is their sum with the powers of z from the first on."""


def erf(x):
    """2/√π ∫₀ˣ e^(−t²) dt."""
    if abs(x) <= 0.46875:
        return x * _inner(x * x)
    rest = 1.0 - erfc(abs(x))
    return math.copysign(rest, x) if not math.isnan(x) else x


def erfc(x):
    """1 − erf(x): the rational approximations of Cody (1969)."""
    y = abs(x)
    if y <= 0.46875:
        return 1.0 - x * _inner(x * x)
    if math.isnan(x):
        return x
    if y > 27.3:
        return 0.0 if x > 0.0 else 2.0
    tail = _middle(y) if y <= 4.0 else _outer(y)
    # e^(−y²) by two factors, so that the rounding of y² is not multiplied
    near = math.floor(y * 16.0) / 16.0
    rest = (y - near) * (y + near)
    found = math.exp(-near * near) * math.exp(-rest) * tail
    return found if x > 0.0 else 2.0 - found


def _inner(z):
    above = (((1.85777706184603153e-1 * z + 3.16112374387056560) * z + 1.13864154151050156e2) * z
             + 3.77485237685302021e2) * z + 3.20937758913846947e3  # fmt: skip
    below = (((z + 2.36012909523441209e1) * z + 2.44024637934444173e2) * z + 1.28261652607737228e3) * z \
            + 2.84423683343917062e3  # fmt: skip
    return above / below


def _middle(y):
    above = 2.15311535474403846e-8 * y + 5.64188496988670089e-1
    above = above * y + 8.88314979438837594
    above = above * y + 6.61191906371416295e1
    above = above * y + 2.98635138197400131e2
    above = above * y + 8.81952221241769090e2
    above = above * y + 1.71204761263407058e3
    above = above * y + 2.05107837782607147e3
    above = above * y + 1.23033935479799725e3
    below = y + 1.57449261107098347e1
    below = below * y + 1.17693950891312499e2
    below = below * y + 5.37181101862009858e2
    below = below * y + 1.62138957456669019e3
    below = below * y + 3.29079923573345963e3
    below = below * y + 4.36261909014324716e3
    below = below * y + 3.43936767414372164e3
    below = below * y + 1.23033935480374942e3
    return above / below


def _outer(y):
    z = 1.0 / (y * y)
    above = 1.63153871373020978e-2 * z + 3.05326634961232344e-1
    above = above * z + 3.60344899949804439e-1
    above = above * z + 1.25781726111229246e-1
    above = above * z + 1.60837851487422766e-2
    above = above * z + 6.58749161529837803e-4
    below = z + 2.56852019228982242
    below = below * z + 1.87295284992346725
    below = below * z + 5.27905102951428412e-1
    below = below * z + 6.05183413124413191e-2
    below = below * z + 2.33520497626869185e-3
    return (1.0 / SQUARE_ROOT_OF_PI - z * above / below) / y


def lgamma(x):
    """log |Γ(x)|: its series around 2 (Abramowitz & Stegun 6.1.33), to which what is below 10 is moved by the
    recurrence, and Stirling's above; reflection below 0."""
    if x <= 0.0:
        if math.isinf(x) or x == math.floor(x):
            return math.inf
        # sin(π x) by the distance from the nearest whole number, which is exact
        away = x - math.floor(x + 0.5)
        return math.log(math.pi / abs(x * math.sin(math.pi * away))) - _positive(-x)
    return _positive(x)


def _positive(x):
    """log Γ(x), x > 0."""
    if not x < 10.0:
        if math.isinf(x) or math.isnan(x):
            return x
        z = 1.0 / (x * x)
        series = (
            1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360 - z / 156)))))
        ) / x
        return (x - 0.5) * (math.log(x) - 1.0) + (HALF_LOG_2_PI - 0.5 + series)
    if x < 0.5:
        return _near_two(x) - math.log(x * (1.0 + x))
    if x < 1.5:
        return _near_two(x - 1.0) - math.log(x)
    factor = 1.0
    while x > 2.5:
        x -= 1.0
        factor *= x
    return _near_two(x - 2.0) + (math.log(factor) if factor != 1.0 else 0.0)


def _near_two(z):
    """log Γ(2 + z), |z| ≤ ½: every fourth term in a sum of its own, since a processor adds four at a time."""
    z2 = z * z
    z4 = z2 * z2
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for k in range(24, -1, -4):
        first = first * z4 + SERIES[k]
        second = second * z4 + SERIES[k + 1]
        third = third * z4 + SERIES[k + 2]
        fourth = fourth * z4 + SERIES[k + 3]
    return z * ((first + z * second) + z2 * (third + z * fourth))
