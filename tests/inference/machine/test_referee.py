"""Machine code is taken where it gives the plain density and its slopes, and refused, with the reason, elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qvr_core.inference.machine.referee import Density, Plain, disagreement

Array = NDArray[Any]
START = np.array([0.3, -0.2, 1.1])
SCALES = np.array([1.0, 2.0, 0.5])


def normal(q: Array) -> Array:
    return -0.5 * ((q / SCALES) ** 2).sum(-1)


def slopes_of_normal(q: Array) -> Array:
    return -q / SCALES**2


def made(value: Plain, gradient: Plain) -> Density:
    return lambda q: (float(value(q[None])[0]), gradient(q[None])[0])


def test_the_same_density_is_taken() -> None:
    assert disagreement(made(normal, slopes_of_normal), normal, START, 10) is None


@pytest.mark.parametrize(
    ("value", "gradient", "told"),
    [
        (lambda q: normal(q) + 1e-6, slopes_of_normal, "its value differs"),
        (normal, lambda q: slopes_of_normal(q) * np.array([1.0, 1.0, 1.0 + 1e-4]), "its gradient differs"),
        (normal, lambda q: slopes_of_normal(q) * np.array([1.0, np.nan, 1.0]), "its gradient is not finite"),
    ],
)
def test_another_value_or_slope_is_refused(value: Plain, gradient: Plain, told: str) -> None:
    found = disagreement(made(value, gradient), normal, START, 10)
    assert found is not None and told in found


def test_a_kink_beside_a_position_is_no_other_slope() -> None:
    at = START + np.array([4e-4, 0.0, 0.0])  # between the positions of a difference, whose middle the first one is

    def laplace(q: Array) -> Array:
        return -np.abs(q - at).sum(-1)

    assert disagreement(made(laplace, lambda q: -np.sign(q - at)), laplace, START, 10, most=1) is None


def test_where_a_density_overflows_or_is_none_its_gradient_is_not_asked() -> None:
    """A power of a Weibull: finite at the start and 10^306 at a further position, where its slope is no number."""

    def far(q: Array) -> Array:
        return normal(q) - np.where(np.abs(q - START).max(-1) > 0.05, 3e306, 0.0)

    def slopes(q: Array) -> Array:
        return np.where(np.abs(q - START).max(-1, keepdims=True) > 0.05, -np.inf, slopes_of_normal(q))

    assert disagreement(made(far, slopes), far, START, 10) is None

    def none(q: Array) -> Array:
        return np.where(np.abs(q - START).max(-1) > 0.05, -np.inf, normal(q))

    assert disagreement(made(none, slopes), none, START, 10) is None
    assert disagreement(made(none, slopes), normal, START, 10) is not None
