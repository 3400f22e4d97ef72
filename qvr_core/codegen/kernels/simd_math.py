"""Functions of one number without branches or calls, so that a loop of them becomes vector instructions.

Accurate to 4 units in the last place; infinities, NaN and zeros as torch has them, subnormal results rounded once more.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

from qvr_core.codegen.intrinsics import as_bits, as_real

# `reassoc` would undo the rounding by which `exp` finds its whole part
FLAGS = "contract nsz"
INLINE = True

INFINITY, NAN = float("inf"), float("nan")
ROUNDER = 6755399441055744.0
"""1.5 · 2⁵²: the sum with it ends in the whole number nearest to what is added."""
LOG2_HIGH, LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""log 2 in two parts, the first with 21 trailing zero bits (Cody & Waite 1980)."""


def _small_expm1(z):
    """eᶻ − 1 for |z| ≤ log 2 / 2: its series to z¹³, in pairs."""
    z2 = z * z
    z4 = z2 * z2
    low = (z2 * (0.5 + z * (1 / 6)) + z) + z4 * ((1 / 24 + z * (1 / 120)) + z2 * (1 / 720 + z * (1 / 5040)))
    high = (1 / 40320 + z * (1 / 362880)) + z2 * (1 / 3628800 + z * (1 / 39916800))
    return low + z4 * z4 * (high + z4 * (1 / 479001600 + z * (1 / 6227020800)))


def exp(x):
    y = x if x > -745.2 else -745.2
    y = y if y < 709.8 else 709.8
    rounded = y * 1.4426950408889634 + ROUNDER
    whole = rounded - ROUNDER
    z = (y - whole * LOG2_HIGH) - whole * LOG2_LOW
    # 2ᵏ in two factors, since either alone may leave the range
    k = as_bits(rounded)
    half = k >> 1
    found = (1.0 + _small_expm1(z)) * as_real((half + 1023) << 52) * as_real((k - half + 1023) << 52)
    return x if math.isnan(x) else found


def expm1(x):
    y = x if x > -700.0 else -700.0
    y = y if y < 709.8 else 709.8
    rounded = y * 1.4426950408889634 + ROUNDER
    whole = rounded - ROUNDER
    z = (y - whole * LOG2_HIGH) - whole * LOG2_LOW
    last = 2.0 if whole > 1023.0 else 1.0
    power = as_real((as_bits(rounded) + (1023 if last == 1.0 else 1022)) << 52)
    found = (power * _small_expm1(z) + (power - 1.0)) * last
    return x if math.isnan(x) else found


def log(x):
    small = x < 2.2250738585072014e-308
    y = x * 18014398509481984.0 if small else x
    bits = as_bits(y)
    # as if the exponent began at √½, so that the rest lies between √½ and √2
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = as_real(bits - (k << 52)) - 1.0
    whole = as_real(k + 0x4338000000000000) - ROUNDER - (54.0 if small else 0.0)
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    low = z * (2 / 3 + z * (2 / 5)) + z2 * z * (2 / 7 + z * (2 / 9))
    high = (2 / 11 + z * (2 / 13)) + z2 * (2 / 15 + z * (2 / 17)) + z4 * (2 / 19 + z * (2 / 21))
    half = 0.5 * f * f
    found = whole * LOG2_HIGH - ((half - (s * (half + low + z4 * z * high) + whole * LOG2_LOW)) - f)
    found = found if x > 0.0 else (-INFINITY if x == 0.0 else NAN)
    return found if x < INFINITY else x


def log1p(x):
    u = 1.0 + x
    lost = (x - (u - 1.0)) / u
    return log(u) + (0.0 if math.isnan(lost) else lost)


def _unit_log1p(x):
    """log(1 + x) for x from 0 to 1: its series in x / (2 + x)."""
    s = x / (2.0 + x)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    z8 = z4 * z4
    low = ((1 / 3 + z * (1 / 5)) + z2 * (1 / 7 + z * (1 / 9))) + z4 * ((1 / 11 + z * (1 / 13)) + z2 * (1 / 15 + z / 17))
    high = ((1 / 19 + z / 21) + z2 * (1 / 23 + z / 25)) + z4 * ((1 / 27 + z / 29) + z2 * (1 / 31 + z / 33))
    return 2.0 * s + 2.0 * s * z * (low + z8 * high)


def tanh(x):
    e = expm1(-2.0 * abs(x))
    size = -e / (2.0 + e)
    return size if x > 0.0 else -size


def sigmoid(x):
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


def log_sigmoid(x):
    return (x if x < 0.0 else 0.0) - _unit_log1p(exp(-abs(x)))


def log_add(x, y):
    """log(eˣ + eʸ)."""
    high = x if x > y else y
    low = y if x > y else x
    return high + _unit_log1p(exp(low - high)) if x != y else x + 0.6931471805599453
