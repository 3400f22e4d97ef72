"""A recurrence is one loop of a graph: torch's numbers, and a text that does not grow with the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.arrays.evaluate import evaluated
from qvr_core.codegen.lowering.density import lowered
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.machine.tracing import density_graph
from qvr_core.runtime.programs.chains.recurrences import recurrence
from tests.inference.machine.functions import Function
from tests.inference.machine.interpreted import interpreted

Recurrence = Callable[[Any, int], Any]
Rows = Sequence[Any]
WIDTH = 6


def _series(steps: int) -> Any:
    return torch.sin(torch.arange(steps) * 1.7).double() + torch.arange(steps) % 3


def garch(x: Any, steps: int) -> Any:
    """A number that runs through; the data hold zeros and ones."""
    y = _series(steps).round()

    def variance(states: Rows, rows: Rows) -> Rows:
        return [x[1].exp() + x[2].sigmoid() * rows[0] ** 2 + x[3].sigmoid() * states[0]]

    (s,) = recurrence([x[0].exp()], [y], variance)
    return -0.5 * (y**2 / s[:-1] + s[:-1].log())


def hidden(x: Any, steps: int) -> Any:
    """A hidden Markov chain, of which only the end is read."""
    transitions = x[:4].view(2, 2).log_softmax(-1)
    seen = -0.5 * (_series(steps)[:, None] - x[:2]) ** 2

    def forward(states: Rows, rows: Rows) -> Rows:
        return [torch.logsumexp(states[0][:, None] + transitions, 0) + rows[0]]

    (alpha,) = recurrence([x[4:6].log_softmax(-1)], [seen], forward)
    return torch.logsumexp(alpha[-1], -1)


def picked(x: Any, steps: int) -> Any:
    """Rows picked by data of each turn, added up where they were picked, and a state that passes on another."""
    group = torch.arange(steps) % 3

    def level(states: Rows, rows: Rows) -> Rows:
        here, before = states
        return [0.5 * here + x[3:6][rows[0]].tanh() * before, here]

    both = recurrence([x[0], x[1]], [group], level)
    return both[0] * both[1] + both[0].square()


def filtered(x: Any, steps: int) -> Any:
    """Matrices and their factors, step by step."""
    F = torch.eye(2).double() + 0.1 * x[2:6].view(2, 2)
    identity = torch.eye(2).double()

    def step(states: Rows, rows: Rows) -> Rows:
        m, P, total = states
        P = F @ P @ F.T + 0.1 * identity
        L = torch.linalg.cholesky_ex(P + identity)[0]
        gap = rows[0] - F @ m
        z = torch.linalg.solve_triangular(L, gap[:, None], upper=False)
        total = total - 0.5 * z.square().sum() - L.diagonal().log().sum()
        gain = torch.linalg.solve_triangular(L.T, z, upper=True)
        half = torch.linalg.solve_triangular(L, P, upper=False)
        return [F @ m + (P @ gain)[:, 0], P - P @ torch.linalg.solve_triangular(L.T, half, upper=True), total]

    _, _, total = recurrence([x[:2], identity + 0.0 * x[0], 0.0 * x[0]], [_series(steps)], step)
    return total[-1]


RECURRENCES: dict[str, Recurrence] = {"garch": garch, "hidden": hidden, "picked": picked, "filtered": filtered}


@pytest.mark.parametrize("name", RECURRENCES)
def test_value_and_gradient_are_those_of_the_steps(name: str) -> None:
    function = Function(lambda x: RECURRENCES[name](x, 20), WIDTH)
    value, slope = density_graph(function)
    text = lowered(value, slope)
    assert "for r in range(" in text.source
    run, rng = interpreted(text, WIDTH), np.random.default_rng(0)
    for _ in range(3):
        q = rng.standard_normal(WIDTH)
        wanted_value, wanted = function.value_and_grad(q)
        for found_value, found in [run(q), (float(evaluated(value, q)), evaluated(slope, q))]:
            np.testing.assert_allclose(found_value, wanted_value, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", RECURRENCES)
def test_more_steps_are_no_longer_text(name: str) -> None:
    lengths = [text_of(Function(lambda x, n=n: RECURRENCES[name](x, n), WIDTH))[0].lines for n in (100, 2400)]
    assert lengths[0] == lengths[1]
