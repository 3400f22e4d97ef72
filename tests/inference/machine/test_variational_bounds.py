"""The bound of a guide on machine code, and its gradient, are those that torch gives with the same noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.inference import (
    ELBO,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
)
from qvr_core.inference.compiled_steps import CompiledSteps, Fitted, compiled_steps
from tests.arrays.test_densities import PROGRAMS, potential

GUIDES = (AutoNormalGuide, AutoMultivariateNormalGuide, AutoLowRankMultivariateNormalGuide)
WIDEST = 60
"""Latents up to which every guide is compared; with more the full covariance alone takes a second."""


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def steps_of(kind: str, name: str, guide: Any, particles: int = 2) -> CompiledSteps:
    program = potential(kind, name)
    model, data = program.model, program.observations
    torch.manual_seed(0)
    observed = {site for site in data if site in model.sites}
    made = guide(model, observed_names=observed, observations=data if model.imputed else None)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    fitted = Fitted(model, made, ELBO(particles), optimizer)
    return compiled_steps(fitted, fitted.potential(None, data), None)


def plain(steps: CompiledSteps, noise: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[float, list[Any]]:
    """Loss and gradients of the objective itself, whose guide draws this noise."""
    left = torch.from_numpy(noise)

    def drawn(*size: Any, **_: Any) -> Any:
        nonlocal left
        shape = torch.Size(size if isinstance(size[0], int) else size[0])
        own, left = left[: shape.numel()], left[shape.numel() :]
        return own.reshape(shape)

    guide, model = steps.fitted.guide, steps.fitted.model
    with monkeypatch.context() as here:
        here.setattr(torch, "randn", drawn)
        loss = steps.fitted.objective(model, guide, None, steps.potential.observations)  # type: ignore[operator]
    assert not len(left)
    return float(loss.detach()), list(torch.autograd.grad(loss, list(guide.parameters()), materialize_grads=True))


@pytest.mark.parametrize(("kind", "name"), PROGRAMS)
@pytest.mark.sampled(3)
def test_bound_and_gradient_are_torchs(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    width = potential(kind, name).width
    generator = np.random.default_rng(5)
    for guide in GUIDES if width <= WIDEST else GUIDES[:1]:
        steps = steps_of(kind, name, guide)
        for _ in range(2):
            noise = generator.standard_normal(len(steps.noise))
            loss, _ = steps.differentiate(noise)
            ours = [parameter.grad.clone() for parameter in steps.fitted.guide.parameters()]
            wanted, theirs = plain(steps, noise, monkeypatch)
            assert np.isfinite(wanted)
            np.testing.assert_allclose(loss, wanted, rtol=1e-9, atol=1e-9)
            for one, other in zip(ours, theirs, strict=True):
                largest = max(1.0, float(other.abs().max())) if other.numel() else 1.0
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9 * largest)
