"""Recursions that are not affine run as one loop, and agree with what goes element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.inference.machine.density import machine_density, text_of
from qvr_core.inference.mcmc.potential import ProgramPotential, potential_of
from qvr_core.runtime.programs.handlers import condition, densities, substitute
from tests.inference.machine.interpreted import interpreted
from tests.runtime.programs.recursions import data_and_latents, let_of, model_of, run

LINES = {
    "a product": ("let v[t : Time] = a * v[t - 1] * v[t - 1] / 9 + y[t] from 0.1", "v"),
    "a number": ("let v[t : Time] = maximum(v[t - 1] + y[t], 0.0) - minimum(0.3, a * v[t - 1]) from a", "v"),
    "a long memory": ("let v[t : Time] = a * v[t - 6] - 0.2 * v[t - 1] + y[t] from 0.5", "v"),
    "ricker": ("let v[t : Time] = v[t - 1] * exp(a * (1 - v[t - 1] / 3)) from 0.5", "v"),
    "egarch": ("let v[t : Time] = exp(0.1 + 0.5 * log(v[t - 1]) + a * abs(y[t - 1]) / sqrt(v[t - 1])) from 1.0", "v"),
    "powers": ("let v[t : Time] = a * v[t - 1]^3 / (1 + v[t - 1]^2) + y[t]^2 * v[t - 2]^0.5 from (a, 2.0)", "v"),
    "its inverse": ("let v[t : Time] = 1 / (1 + a * v[t - 1]) - 0.1 * v[t - 1]^(-2) + 2 from (1.0 + a)", "v"),
    "waves": ("let v[t : Time] = sin(v[t - 1]) + cos(a * v[t - 1]) - tanh(v[t - 1]) + softplus(-v[t - 1]) from a", "v"),
    "logarithms": ("let v[t : Time] = log1p(v[t - 1]^2) + expm1(-a * v[t - 1]^2) + relu(v[t - 1] - 0.1) from a", "v"),
    "groups": ("let v[g : Group, t : Time] = b[g] * sigmoid(v[g, t - 1]) + w[g, t] from b[g]", "v"),
    "groups behind": ("let v[t : Time, g : Group] = w[g, t] - b[g] * v[t - 1, g]^2 / 9 from a", "v"),
    "predator and prey": (
        "let (u, v)[t : Time] = (u[t - 1] * exp(0.1 - a * v[t - 1]), v[t - 1] * exp(0.2 * u[t] - 0.1)) from (1.0, a)",
        "(u, v)",
    ),
    "one that nobody reads": (
        "let (u, v)[g : Group, t : Time] = (tanh(u[g, t - 1]) + w[g, t], u[g, t]^2 * b[g]) from (b[g], 0.0)",
        "(u, v)",
    ),
    "a choice": ("let v[t : Time] = where(v[t - 1] > 0.3, a * v[t - 1], 1.0 - v[t - 1]^2) from a", "v"),
    "a choice by data": (
        "let v[t : Time] = where(y[t] < a, a * tanh(v[t - 1]), 0.3 * y[t] * v[t - 1]^2 + 0.2) from 0.5",
        "v",
    ),
    "a choice by a number": ("let v[t : Time] = tanh(v[t - 1]) + where(0.3 * v[t - 1], a * v[t - 1], 2.0) from a", "v"),
    "a choice by a given number": (
        "let v[t : Time] = where(floor(a * y[t]), tanh(v[t - 1]), v[t - 1]^2 / 9) from a",
        "v",
    ),
    "all comparisons": (
        "let v[t : Time] = a * tanh(v[t - 1]) + (v[t - 1] >= y[t]) - (0.5 * v[t - 1] <= a) + (v[t - 1] == 1.0) "
        "+ 0.5 * (v[t - 1] != 0.3) - 0.2 * (y[t] < v[t - 1]) from 1.0",
        "v",
    ),
    "all places": ("let v[g : Group, t : Time] = tanh(sum(v[h, t - 1] for h : Group)) + w[g, t] from a", "v"),
    "weighted places": (
        "let v[t : Time, g : Group] = b[g] * sin(v[t - 1, g]) "
        "- 0.1 * sum(b[h] * cos(v[t - 1, h]) * w[h, t] for h : Group) "
        "+ mean(tanh(v[t - 1, h]) for h : Group) from b[g]",
        "v",
    ),
    "places of the other": (
        "let (u, v)[g : Group, t : Time] = (tanh(u[g, t - 1]) + w[g, t], "
        "where(sum(u[h, t] for h : Group) > a, u[g, t], 0.5 * v[g, t - 1]) * b[g]) from (b[g], 0.1)",
        "(u, v)",
    ),
    "one that stays": ("let (u, v)[t : Time] = (u[t - 1], v[t - 1]^2 * u[t] + y[t]) from (0.2, a)", "(u, v)"),
}
LEFT = {
    "another place": ("let v[g : Group, t : Time] = tanh(a * v[0, t - 1]) + w[g, t] from a", "v"),
    "the greatest": ("let v[g : Group, t : Time] = tanh(max(v[h, t - 1] for h : Group)) + w[g, t] from a", "v"),
    "a matrix": (
        "let v[g : Group, t : Time] = tanh(sum(b[h] * b[g] * v[h, t - 1] for h : Group)) + w[g, t] from a",
        "v",
    ),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("rows", "time", "group"), [(1, 7, 1), (1, 11, 3), (4, 16, 2), (2, 65, 3)])
def test_values_and_gradients_are_those_of_each_element(name: str, rows: int, time: int, group: int) -> None:
    model = model_of(*LINES[name], time, group)
    given = data_and_latents(rows, time, group)
    assert let_of(model).taped is not None
    values, gradients = run(model, *given)
    let_of(model).taped = None
    looped, slopes = run(model, *given)
    for found, wanted in zip((*values, *gradients), (*looped, *slopes), strict=True):
        if wanted is not None:
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_pointwise_function_runs_element_by_element(name: str) -> None:
    model = model_of(*LEFT[name])
    assert let_of(model).linear is None
    assert let_of(model).taped is None
    values, _ = run(model, *data_and_latents(2, 11, 3))
    assert all(bool(value.isfinite().all()) for value in values)


def test_vectors_run_element_by_element() -> None:
    model = model_of("let v[t : Time] = tanh(v[t - 1]) * [0.5, a] from [1.0, a]", "v")
    found = run(model, *data_and_latents(2, 11, 3))[0][0]
    a = data_and_latents(2, 11, 3)[1]["a"]
    wanted = [torch.stack([torch.ones_like(a), a], -1)]
    for _ in range(10):
        wanted.append(wanted[-1].tanh() * torch.stack([torch.full_like(a, 0.5), a], -1))
    torch.testing.assert_close(found, torch.stack(wanted, 1))


def test_what_overflows_is_still_what_each_element_says() -> None:
    model = model_of("let v[t : Time] = v[t - 1] * v[t - 1] * 1e200 + a from 2.0", "v", time=9)
    values, _ = run(model, *data_and_latents(1, 9, 3))
    assert bool(values[0][..., 3:].isinf().all())


def test_second_derivatives() -> None:
    model = model_of(*LINES["ricker"])
    a = torch.tensor([0.4], dtype=torch.float64)
    b = torch.zeros(1, 3, dtype=torch.float64)

    def last(value: Tensor) -> Tensor:
        output = model.execute(None, substitute({"a": value, "b": b}), densities(False)).output
        assert isinstance(output, Tensor)
        return output.sum()

    found = torch.autograd.functional.hessian(last, a)
    let_of(model).taped = None
    torch.testing.assert_close(found, torch.autograd.functional.hessian(last, a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("time", [12, 60])
def test_a_compiled_density_is_the_plain_one(time: int) -> None:
    text = (
        f"object Time : FinSet {time}\nprogram p : Time -> Real 1\n    sample a <- Normal(0.0, 1.0)\n"
        "    let v[t : Time] = tanh(a * v[t - 1]) + x[t] from a\n"
        "    observe y[t : Time] <- Normal(v[t], 1.0)\n    return a\n"
    )
    data = {"x": torch.linspace(0.0, 1.0, time), "y": torch.linspace(1.0, -1.0, time)}
    potential = ProgramPotential(dsl.loads(text).morphism, None, data)
    value, gradient = machine_density(potential, np.full(1, 0.3))(np.full(1, -0.3))
    wanted_value, wanted = potential.value_and_grad(torch.full((1, 1), -0.3, dtype=torch.float64))
    assert value == pytest.approx(float(wanted_value), rel=1e-10)
    assert gradient[0] == pytest.approx(float(wanted[0, 0]), rel=1e-9)


@pytest.mark.parametrize("name", ["ricker", "a choice", "all places"])
def test_a_thousand_elements_leave_a_graph_of_few_operations(name: str) -> None:
    counts: list[int] = []
    for time in (16, 1024):
        model = model_of(*LINES[name], time)
        data, latents = data_and_latents(1, time, 3)
        read = {one: value for one, value in data.items() if one in model.wanted_data}
        output = model.execute(None, condition(read), substitute(latents), densities(False)).output
        assert isinstance(output, Tensor)
        seen, pending = set[Any](), [output.grad_fn]
        while pending:
            node = pending.pop()
            if node is not None and node not in seen:
                seen.add(node)
                pending += [parent for parent, _ in node.next_functions]
        counts.append(len(seen))
    assert counts[1] == counts[0]


@pytest.mark.parametrize("name", ["ricker", "a choice"])
def test_more_elements_than_few_become_machine_code(name: str) -> None:
    text = """
object Time : FinSet 45
program p : Time -> Real 1
    sample a <- Uniform(0.0, 1.0)
    {line}
    observe x[t : Time] <- Normal(v[t], 1.0)
    return a
"""
    model = dsl.loads(text.format(line=LINES[name][0])).morphism
    potential = potential_of(model, None, {"x": torch.linspace(0.0, 1.0, 45)})
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    wanted = potential.value_and_grad(q)
    value, gradient = interpreted(text_of(potential)[0], potential.width)(q[0].numpy())
    torch.testing.assert_close(torch.tensor(value, dtype=torch.float64), wanted[0][0])
    torch.testing.assert_close(torch.as_tensor(gradient), wanted[1][0])
