"""Recursions that are solved for all elements at once agree with the loop that runs element by element."""

from __future__ import annotations

import pytest
import torch

from qvr_core.runtime.programs.handlers import condition, densities, substitute
from tests.runtime.operations import Operations
from tests.runtime.programs.recursions import data_and_latents, let_of, model_of, run

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


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("rows", "time", "group"), [(1, 3, 1), (1, 11, 3), (4, 16, 2), (2, 65, 3)])
def test_values_and_gradients_are_those_of_the_loop(name: str, rows: int, time: int, group: int) -> None:
    model = model_of(*LINES[name], time, group)
    given = data_and_latents(rows, time, group)
    assert let_of(model).linear is not None
    values, gradients = run(model, *given)
    let_of(model).linear = None
    looped, slopes = run(model, *given)
    for found, wanted in zip((*values, *gradients), (*looped, *slopes), strict=True):
        if wanted is not None:
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_what_overflows_on_the_way_is_still_right() -> None:
    model = model_of("let v[t : Time] = 1e300 * v[t - 1] + a * 0.0 from 0.0", "v", time=9)
    values, _ = run(model, *data_and_latents(1, 9, 3))
    assert bool((values[0] == 0).all())


def test_a_thousand_elements_take_few_operations() -> None:
    counts: list[int] = []
    for time in (16, 1024):
        model = model_of(*LINES["garch"], time)
        data, latents = data_and_latents(1, time, 3)
        with Operations() as operations:
            model.execute(None, condition({"y": data["y"]}), substitute(latents), densities(False))
        counts.append(operations.count)
    assert counts[1] < counts[0] + 100
