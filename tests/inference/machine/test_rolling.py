"""Steps written out one behind the other become a loop: the same numbers, and a text that does not grow with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.codegen.lowering import whole
from qvr_core.inference.machine import density
from qvr_core.inference.machine.density import text_of
from tests.inference.machine.functions import Function
from tests.inference.machine.interpreted import interpreted

Recurrence = Callable[[Tensor, int], Tensor]
WIDTH = 6


def _series(steps: int) -> Tensor:
    return torch.sin(torch.arange(steps) * 1.7).double() + torch.arange(steps) % 3


def garch(x: Tensor, steps: int) -> Tensor:
    """A scalar that runs through; the data hold zeros and ones."""
    y, s, total = _series(steps).round(), x[0].exp(), x[1] * 0.0
    for t in range(steps):
        total = total - 0.5 * (y[t] ** 2 / s + s.log())
        s = x[1].exp() + x[2].sigmoid() * y[t] ** 2 + x[3].sigmoid() * s
    return total


def states(x: Tensor, steps: int) -> Tensor:
    """A hidden Markov chain."""
    transitions, alpha = x[:4].view(2, 2).log_softmax(-1), x[4:6].log_softmax(-1)
    for t in range(steps):
        alpha = torch.logsumexp(alpha[:, None] + transitions, 0) - 0.5 * (_series(steps)[t] - x[:2]) ** 2
    return torch.logsumexp(alpha, -1)


def seasons(x: Tensor, steps: int) -> Tensor:
    """A step that reads what is four steps behind it, and at first the position."""
    season, level, total = list(x[:4]), x[4], x[0] * 0.0
    for t in range(steps):
        level = level + x[5].sigmoid() * (_series(steps)[t] - level - season[t])
        season.append(0.3 * (_series(steps)[t] - level) + 0.7 * season[t])
        total = total - (level + season[t] - _series(steps)[t]) ** 2
    return total


def filtered(x: Tensor, steps: int) -> Tensor:
    """Matrices and their factors, step by step."""
    m, P, total = x[:2], torch.eye(2).double(), x[0] * 0.0
    F = torch.eye(2).double() + 0.1 * x[2:6].view(2, 2)
    for t in range(steps):
        P = F @ P @ F.T + 0.1 * torch.eye(2)
        L = torch.linalg.cholesky_ex(P + torch.eye(2))[0]
        gap = _series(steps)[t] - F @ m
        z = torch.linalg.solve_triangular(L, gap[:, None], upper=False)
        total = total - 0.5 * z.square().sum() - L.diagonal().log().sum()
        gain = torch.linalg.solve_triangular(L.T, z, upper=True)
        m = F @ m + (P @ gain)[:, 0]
        P = P - P @ torch.linalg.solve_triangular(L.T, torch.linalg.solve_triangular(L, P, upper=False), upper=True)
    return total


RECURRENCES: dict[str, Recurrence] = {"garch": garch, "states": states, "seasons": seasons, "filtered": filtered}


@pytest.mark.parametrize("name", RECURRENCES)
def test_a_rolled_recurrence_is_the_recurrence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "LONG_TEXT", 40)
    monkeypatch.setattr(density, "WORTH_ROLLING", 10.0)
    function = Function(lambda x: RECURRENCES[name](x, 20), WIDTH)
    text, _ = text_of(function)
    assert "for r in range(" in text.source
    run, rng = interpreted(text, WIDTH), np.random.default_rng(0)
    for _ in range(3):
        q = rng.standard_normal(WIDTH)
        value, gradient = run(q)
        wanted_value, wanted = function.value_and_grad(q)
        np.testing.assert_allclose(value, wanted_value, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", RECURRENCES)
def test_more_steps_are_no_longer_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "LONG_TEXT", 0)
    monkeypatch.setattr(density, "WORTH_ROLLING", 10.0)
    lengths = [text_of(Function(lambda x, n=n: RECURRENCES[name](x, n), WIDTH))[0].lines for n in (14, 24)]
    assert lengths[1] <= lengths[0] + 5
