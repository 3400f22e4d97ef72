"""Machine code is taken only where it gives what the program gives, step by step.

The values of the two are compared at a few positions, and along random directions the derivative of the one with
differences of the other: what derives and compiles shares nothing with what it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Density = Callable[[Array], tuple[float, Array]]
"""Value and gradient (D,) at a position (D,)."""
Plain = Callable[[Array], Array]
"""Values (N,) at positions (N, D)."""
POSITIONS, DIRECTIONS = 5, 3
BUDGET = 20_000_000
"""Numbers that a comparison may make: a large density is compared at fewer positions."""
TOLERANCE = 1e-9
"""Largest difference of a value, relative to the larger of 1 and the number."""
OVERFLOWING = 1e150
"""Of a value from here on, which no chain goes to, the derivative may be no number though nothing is wrong: the power
of a Weibull, say, at a position that is ten of its standard deviations off."""
STEP = 1e-3
"""Of a difference; from four values on a line comes the fifth-order rule, from two of them a coarser one that says how
far it can be trusted."""
SLOPE_TOLERANCE = 1e-6
OF_PIECES = 0.05
"""The same where values have jumps, those of an adaptive solution of a differential equation."""


def disagreement(
    made: Density,
    plain: Plain,
    start: Array,
    work: int,
    most: int = POSITIONS,
    *,
    adaptive: bool = False,
    slopes: Plain | None = None,
) -> str | None:
    """What differs, as the end of a sentence; None where nothing does.

    `start` (D,) is where the positions lie around, `work` the numbers that one evaluation of `plain` makes, `most` how
    many of them are looked at.  Where the density is no finite number both must be none, and the gradient is nobody's;
    nor is it where the density is `OVERFLOWING`.
    One that is `adaptive` has values with jumps, and its gradient is that of its pieces: it is compared with `slopes`
    (N, D), where there is somebody else who derives, or with differences that may be coarse.
    """
    rng = np.random.default_rng(0)
    each = 1 + 4 * DIRECTIONS
    looked: list[tuple[Array, Array]] = []
    for number in range(max(1, min(most, BUDGET // max(1, work * each)))):
        here = start + 0.3 * number * rng.standard_normal(start.shape)
        directions = rng.standard_normal((DIRECTIONS, len(here)))
        looked.append((here, directions / np.linalg.norm(directions, axis=1, keepdims=True)))
    points = np.concatenate([np.concatenate([here[None], _around(here, to, STEP)]) for here, to in looked])
    values = _in_parts(plain, points, work)
    for (here, directions), wanted in zip(looked, values.reshape(-1, each), strict=True):
        value, gradient = made(here)
        if not _close(value, wanted[0]):
            return f"its value differs from that of the plain density ({value!r}, {float(wanted[0])!r})"
        if abs(value) < OVERFLOWING:
            if not np.isfinite(gradient).all():
                return "its gradient is not finite where the density is"
            if slopes is not None:
                other = slopes(here[None])[0]
                if np.abs(gradient - other).max() > SLOPE_TOLERANCE * max(1.0, float(np.linalg.norm(other))):
                    return "its gradient differs from that of the plain density"
                continue
            # a kink beside the position, as a Laplace has at its middle, is none a hundred times nearer
            tolerance = OF_PIECES if adaptive else SLOPE_TOLERANCE
            if not _sloped(gradient, directions, wanted[0], wanted[1:], STEP, tolerance) and not _sloped(
                gradient,
                directions,
                wanted[0],
                _in_parts(plain, _around(here, directions, STEP / 100), work),
                STEP / 100,
                tolerance,
            ):
                return "its gradient differs from that of the plain density"
    return None


def _in_parts(plain: Plain, points: Array, work: int) -> Array:
    """The values at points (N, D), of many at once, since what the plain density costs is the number of its operations;
    of a large density at one after another, since it keeps what it makes."""
    count = max(1, BUDGET // max(1, work))
    return np.concatenate([plain(points[at : at + count]) for at in range(0, len(points), count)])


def _close(found: float, wanted: float) -> bool:
    if not np.isfinite(wanted):
        # impossible and undefined, of an infinite mean, say, are refused alike by every step
        return not np.isfinite(found) and (found == np.inf) == (wanted == np.inf)
    return abs(found - wanted) <= TOLERANCE * max(1.0, abs(wanted))


def _around(here: Array, directions: Array, step: float) -> Array:
    """Four positions on each line through a position."""
    return here + np.multiply.outer(np.array([-2.0, -1.0, 1.0, 2.0]) * step, directions).reshape(-1, len(here))


def _sloped(gradient: Array, directions: Array, value: float, around: Array, step: float, tolerance: float) -> bool:
    """Whether derivatives along directions are what four values on each line give, where all of them are finite."""
    around = around.reshape(4, DIRECTIONS)
    far, near = (around[3] - around[0]) / (4.0 * step), (around[2] - around[1]) / (2.0 * step)
    slopes, errors = (4.0 * near - far) / 3.0, np.abs(near - far)
    rounding = 1e-15 * abs(value) / step
    scale = np.maximum(1.0, np.maximum(np.abs(slopes), np.linalg.norm(gradient)))
    off = np.abs(directions @ gradient - slopes)
    # where 1 − p has few digits left, of a p near 1, say, the values are stairs, of which both rules know little
    return bool(((off <= tolerance * scale + rounding + 3.0 * errors) | ~np.isfinite(slopes)).all())
