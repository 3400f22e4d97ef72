"""The namespace of a process without torch: optimisers and second derivatives are torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.arrays import without_torch
from qvr_core.arrays.eager import array

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("SGD", "Adagrad", "RMSprop", "Adam", "AdamW")),
    *((name, {"weight_decay": 0.1}) for name in ("SGD", "Adagrad", "RMSprop", "Adam", "AdamW")),
    ("Adam", {"betas": (0.8, 0.95), "eps": 1e-3}),
]


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_an_optimiser_moves_as_torchs_does_before_and_after_it_is_restored(name: str, settings: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    start = generator.standard_normal((2, 3))
    ours, theirs = without_torch.nn.Parameter(array(start)), torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = getattr(without_torch.optim, name)([ours], lr=0.05, **settings)
    wanted = getattr(torch.optim, name)([theirs], lr=0.05, **settings)
    for step in range(12):
        slope = generator.standard_normal((2, 3))
        ours.grad, theirs.grad = array(slope), torch.from_numpy(slope.copy())
        optimizer.step()
        wanted.step()
        np.testing.assert_allclose(ours.data, theirs.detach().numpy(), rtol=1e-13)
        if step == 5:
            state = optimizer.state_dict()
            assert {*wanted.state_dict()["state"].get(0, {})} <= {*state["state"][0]}
            optimizer = getattr(without_torch.optim, name)([ours], lr=1.0, **settings)
            optimizer.load_state_dict(state)


def test_second_derivatives_are_torchs() -> None:
    def function(x: Any) -> Any:
        return (x[:2].exp() * x[1:3]).sum() + x.outer(x).square().sum().log() + x[0] * x[2].sin()

    here = np.array([0.4, -0.3, 1.2])
    x = torch.from_numpy(here)
    np.testing.assert_allclose(
        without_torch.autograd.functional.hessian(function, array(here)).data,
        torch.autograd.functional.hessian(function, x),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        without_torch.autograd.functional.jacobian(function, array(here)).data,
        torch.autograd.functional.jacobian(function, x),
        rtol=1e-12,
    )
