"""The functions that C and JavaScript have and WebAssembly has not, of one or two numbers.

Accurate to some units in the last place; `pow` to as many as its exponent of e has bits before the point.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math
from typing import Any

from qvr_core.codegen.kernels import simd_math

FLAGS = ""
SPLITTER = 134217729.0
"""2²⁷ + 1: halves of a double by Dekker (1971)."""
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""π / 2 in three doubles."""
HALF, QUARTER = 1.5707963267948966, 0.7853981633974483
FURTHEST = 4503599627370496.0
"""Beyond it a double has no digit below one, and no angle either."""
ARCS = (0.0, 0.24497866312686414, 0.4636476090008061, 0.6435011087932844, 0.7853981633974483)
"""The angles whose tangents are quarters."""


def _rest(a, b, product):
    """a b − product, where that is a b rounded (Dekker 1971)."""
    spread = SPLITTER * a
    a_high = spread - (spread - a)
    spread = SPLITTER * b
    b_high = spread - (spread - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _within(x, turns):
    """x less so many quarters of a turn."""
    one, two = turns * HALF_PI[0], turns * HALF_PI[1]
    found = ((x - one) - _rest(turns, HALF_PI[0], one)) - two
    return (found - _rest(turns, HALF_PI[1], two)) - turns * HALF_PI[2]


def _short_sin(r):
    """sin r for |r| ≤ π/4: its series."""
    z = r * r
    high = z * (-1 / 39916800 + z * (1 / 6227020800 + z * (-1 / 1307674368000 + z * (1 / 355687428096000))))
    return r + r * z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + high))))


def _short_cos(r):
    """cos r for |r| ≤ π/4: its series."""
    z = r * r
    high = z * (1 / 479001600 + z * (-1 / 87178291200 + z * (1 / 20922789888000 - z * (1 / 6402373705728000))))
    return (1.0 - 0.5 * z) + z * z * (1 / 24 + z * (-1 / 720 + z * (1 / 40320 + z * (-1 / 3628800 + high))))


def _turned(x, quarters):
    """sin(x + quarters · π/2)."""
    if not abs(x) < FURTHEST:
        return math.nan
    turns = math.floor(x / HALF + 0.5)
    r = _within(x, 1.0 * turns)
    which = (int(turns) + quarters) & 3
    found = _short_cos(r) if which & 1 else _short_sin(r)
    return -found if which & 2 else found


def sin(x):
    return x if x == 0.0 else _turned(x, 0)


def cos(x):
    return _turned(x, 1)


def tan(x):
    return x if x == 0.0 else _turned(x, 0) / _turned(x, 1)


def atan(x):
    size = abs(x)
    if math.isnan(x):
        return x
    y = 1.0 / size if size > 1.0 else size
    quarter = math.floor(4.0 * y + 0.5)
    near = 0.25 * quarter
    t = (y - near) / (1.0 + y * near)
    z = t * t
    high = z * (1 / 13 - z * (1 / 15 - z * (1 / 17 - z * (1 / 19))))
    found = ARCS[int(quarter)] + (t - t * z * (1 / 3 - z * (1 / 5 - z * (1 / 7 - z * (1 / 9 - z * (1 / 11 - high))))))
    return math.copysign((HALF - found) + 6.123233995736766e-17 if size > 1.0 else found, x)


def atan2(y, x):
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(x) and math.isinf(y):
        angle = QUARTER
    elif x == 0.0:
        angle = HALF if y != 0.0 else 0.0
    else:
        angle = atan(abs(y) / abs(x))
    return math.copysign(2.0 * HALF - angle if math.copysign(1.0, x) < 0.0 else angle, y)


def asin(x):
    return math.copysign(atan2(abs(x), math.sqrt((1.0 - x) * (1.0 + x))), x)


def acos(x):
    return atan2(math.sqrt((1.0 - x) * (1.0 + x)), x)


def sinh(x):
    size = abs(x)
    if size > 40.0:
        half = simd_math.exp(0.5 * size)
        return math.copysign(0.5 * half * half, x)
    e = simd_math.expm1(size)
    return math.copysign(0.5 * (e + e / (e + 1.0)), x)


def cosh(x):
    half = simd_math.exp(0.5 * abs(x))
    return 0.5 * half * half + 0.5 / half / half


def asinh(x):
    size = abs(x)
    if size > 1e10:
        return math.copysign(simd_math.log(size) + 0.6931471805599453, x) if not math.isnan(x) else x
    return math.copysign(simd_math.log1p(size + size * size / (1.0 + math.sqrt(1.0 + size * size))), x)


def acosh(x):
    if x > 1e10:
        return simd_math.log(x) + 0.6931471805599453
    above = x - 1.0
    return simd_math.log1p(above + math.sqrt(above * (2.0 + above))) if x >= 1.0 else math.nan


def atanh(x):
    size = abs(x)
    return math.copysign(0.5 * simd_math.log1p(2.0 * size / (1.0 - size)), x)


def log10(x):
    return simd_math.log(x) * 0.4342944819032518


def hypot(x, y):
    x, y = abs(x), abs(y)
    if math.isinf(x) or math.isinf(y):
        return math.inf
    high = x if x > y else y
    low = y if x > y else x
    ratio = low / high
    return high * math.sqrt(1.0 + ratio * ratio) if high != 0.0 else low


def power(x, y):
    if y == 0.0 or x == 1.0 or (x == -1.0 and math.isinf(y)):
        return 1.0
    whole = y == math.floor(y)
    odd = whole and math.floor(0.5 * y) != 0.5 * y
    if x < 0.0 and not whole and not math.isinf(x):
        return math.nan
    size = simd_math.exp(y * simd_math.log(abs(x)))
    return -size if odd and math.copysign(1.0, x) < 0.0 else size


OF_C: dict[str, Any] = {
    **{f.__name__: f for f in (sin, cos, tan, atan, atan2, asin, acos, sinh, cosh, asinh, acosh, atanh, log10, hypot)},
    "exp": simd_math.exp, "expm1": simd_math.expm1, "log": simd_math.log, "log1p": simd_math.log1p,
    "tanh": simd_math.tanh, "pow": power,
}  # fmt: skip
"""By C's name: all of `expressions.LIBM`."""
