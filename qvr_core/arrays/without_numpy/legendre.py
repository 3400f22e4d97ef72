"""Gauss's quadrature on [−1, 1]."""

from __future__ import annotations

import math

from qvr_core.arrays.without_numpy.array import array, ndarray


def leggauss(count: int) -> tuple[ndarray, ndarray]:
    """The nodes, ascending, and their weights: roots of Legendre's polynomial by Newton's steps."""
    nodes: list[float] = []
    weights: list[float] = []
    for number in range(count, 0, -1):
        x, slope = math.cos(math.pi * (number - 0.25) / (count + 0.5)), 1.0
        for _ in range(100):
            before, here = 1.0, x
            for k in range(2, count + 1):
                before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
            slope = count * (x * here - before) / (x * x - 1.0)
            step = here / slope
            x -= step
            if abs(step) < 1e-16:
                break
        nodes.append(x)
        weights.append(2.0 / ((1.0 - x * x) * slope * slope))
    return array(nodes), array(weights)
