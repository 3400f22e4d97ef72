"""Recursions that are solved for all elements at once agree with the loop that runs element by element."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition, densities, substitute
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.programs.steps import IndexedLet
from tests.runtime.operations import Operations

PROGRAM = """
object Time : FinSet {time}
object Group : FinSet {group}
program p : Time -> Real 1
    sample a <- Uniform(0.0, 1.0)
    sample b[g : Group] <- Uniform(0.0, 1.0)
    {line}
    return {name}
"""
LINES = {
    "garch": ("let v[t : Time] = 0.2 + a * y[t - 1]^2 + 0.9 * a * v[t - 1] from 1.0", "v"),
    "garch(1, 2)": ("let v[t : Time] = a + 0.3 * v[t - 1] - a * (-v[t - 2]) / 4 + y[t]^2 from (a, 2.0)", "v"),
    "only two back": ("let v[t : Time] = y[t] + a * v[t - 2] from (a, 2.0)", "v"),
    "groups": ("let v[g : Group, t : Time] = a + b[g] * y[t] * v[g, t - 1] from b[g]", "v"),
    "groups behind": ("let v[t : Time, g : Group] = w[g, t] - b[g] * v[t - 1, g] from a", "v"),
    "holt": (
        "let (l, k)[t : Time] = (a * y[t] + (1 - a) * (l[t - 1] + k[t - 1]), "
        "0.3 * (l[t] - l[t - 1]) + 0.7 * k[t - 1]) from (a, 0.1)",
        "(l, k)",
    ),
    "holt of groups": (
        "let (l, k)[g : Group, t : Time] = (a * w[g, t] + (1 - a) * (l[g, t - 1] + k[g, t - 1]), "
        "b[g] * (l[g, t] - l[g, t - 1]) + (1 - b[g]) * k[g, t - 1]) from (b[g], 0.1)",
        "(l, k)",
    ),
    "one that reads the other": (
        "let (v, s)[t : Time] = (a + 0.5 * v[t - 1], 2 * v[t - 1] + y[t]) from (1.0, a)",
        "(v, s)",
    ),
}


def _model(line: str, name: str, time: int = 11, group: int = 3) -> ProgramModule:
    return dsl.loads(PROGRAM.format(line=line, name=name, time=time, group=group)).programs["p"]


def _let(model: ProgramModule) -> IndexedLet:
    return next(step for step in model.steps if isinstance(step, IndexedLet))


def _given(rows: int, time: int, group: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(time + rows)
    data = {
        "y": torch.randn(time, generator=generator, dtype=torch.float64),
        "w": torch.randn(group, time, generator=generator, dtype=torch.float64),
    }
    latents = {
        "a": torch.rand(rows, generator=generator, dtype=torch.float64).requires_grad_(),
        "b": torch.rand(rows, group, generator=generator, dtype=torch.float64).requires_grad_(),
    }
    return data, latents


def _run(model: ProgramModule, data: dict[str, Tensor], latents: dict[str, Tensor]) -> tuple[list[Tensor], list[Any]]:
    read = {name: value for name, value in data.items() if name in model.wanted_data}
    output = model.execute(None, condition(read), substitute(latents), densities(False)).output
    parts = list(output) if isinstance(output, tuple) else [output]
    weight = [torch.linspace(0.5, 2.0, part.numel(), dtype=torch.float64).reshape(part.shape) for part in parts]
    total = torch.stack([(part * by).sum() for part, by in zip(parts, weight, strict=True)]).sum()
    return parts, list(torch.autograd.grad(total, list(latents.values()), allow_unused=True))


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("rows", "time", "group"), [(1, 3, 1), (1, 11, 3), (4, 16, 2), (2, 65, 3)])
def test_values_and_gradients_are_those_of_the_loop(name: str, rows: int, time: int, group: int) -> None:
    model = _model(*LINES[name], time, group)
    given = _given(rows, time, group)
    assert _let(model).linear is not None
    values, gradients = _run(model, *given)
    _let(model).linear = None
    looped, slopes = _run(model, *given)
    for found, wanted in zip((*values, *gradients), (*looped, *slopes), strict=True):
        if wanted is not None:
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_what_overflows_on_the_way_is_still_right() -> None:
    model = _model("let v[t : Time] = 1e300 * v[t - 1] + a * 0.0 from 0.0", "v", time=9)
    values, _ = _run(model, *_given(1, 9, 3))
    assert bool((values[0] == 0).all())


def test_a_thousand_elements_take_few_operations() -> None:
    counts: list[int] = []
    for time in (16, 1024):
        model = _model(*LINES["garch"], time)
        data, latents = _given(1, time, 3)
        with Operations() as operations:
            model.execute(None, condition({"y": data["y"]}), substitute(latents), densities(False))
        counts.append(operations.count)
    assert counts[1] < counts[0] + 100
