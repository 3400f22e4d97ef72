"""The programs of the examples have loops, and these are their densities: potentials agree to 1e-9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.mcmc.potential import potential_of
from tests.inference.machine.interpreted import interpreted

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = (
    "change_point", "conversion_test", "eight_schools", "item_response", "linear_regression", "logistic_regression",
    "mixture", "occupancy", "ordinal_ratings", "overdispersed_counts", "paired_comparison", "poisson_regression",
    "radon", "robust_regression", "sparse_regression", "survival", "topic_model", "zero_inflated_catch",
)  # fmt: skip
"""Those without parameters of networks, and without an input."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def assert_agrees(model: Any, data: Any) -> None:
    potential = potential_of(model, None, data)
    density = interpreted(text_of(potential)[0], potential.width)
    generator = np.random.default_rng(8)
    finite = 0
    for _ in range(4):
        q = potential.initial(generator).unsqueeze(0)
        wanted_value, wanted = potential.value_and_grad(q)
        value, gradient = density(q[0].numpy())
        np.testing.assert_allclose(value, float(wanted_value), rtol=1e-9, atol=1e-9)
        if np.isfinite(value):
            finite += 1
            np.testing.assert_allclose(gradient, wanted[0].numpy(), rtol=1e-9, atol=1e-9 * float(wanted.abs().max()))
    assert finite


BOUNDED = """
object Row : FinSet 5
program bounded : Row -> Row
    sample low <- Normal(0.0, 1.0)
    sample high <- TruncatedNormal(3.0, 1.0, low=low)
    sample between <- Uniform(low, high)
    observe y : Row <- Normal(between, 1.0)
    return high
"""


def test_bounds_that_are_latents() -> None:
    assert_agrees(loads(BOUNDED).morphism, {"y": torch.linspace(0.0, 2.0, 5).double()})
