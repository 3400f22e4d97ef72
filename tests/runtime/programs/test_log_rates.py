"""A rate that is given by its logarithm, or written `exp(x)`, counts where the rate itself is no number any more."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special

from qvr_core.codegen.build import address_of
from qvr_core.codegen.lowering.density import lowered
from qvr_core.dsl import loads
from qvr_core.inference import trace
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.tracing import density_graph
from qvr_core.runtime.families import RUNTIME_FAMILIES
from tests.inference.machine.functions import Function
from tests.inference.machine.test_families import largest_term

FAR = (-1e4, -800.0, -746.0, -745.0, -700.0, -40.0, -1.5, 0.0, 2.0, 30.0, 600.0)
COUNTS = (0, 1, 7)


def poisson(y: int, x: float) -> tuple[float, float]:
    """The log density and its derivative in the logarithm of the rate."""
    rate = math.exp(x)
    return y * x - rate - math.lgamma(y + 1.0), y - rate


def negative(y: int, x: float, total: float = 2.0) -> tuple[float, float]:
    """Likewise of a NegativeBinomial of dispersion 1/2 in the logarithm of its mean."""
    odds = x - math.log(total)
    choose = math.lgamma(total + y) - math.lgamma(total) - math.lgamma(y + 1.0)
    density = choose - y * np.logaddexp(0.0, -odds) - total * np.logaddexp(0.0, odds)
    return float(density), y * special.expit(-odds) - total * special.expit(odds)


def inflated(counted: tuple[float, float], y: int) -> tuple[float, float]:
    """Likewise of what is 0 with probability 1/4 more."""
    density, slope = counted
    if y:
        return math.log(0.75) + density, slope
    zero = 0.75 * math.exp(density)
    return math.log(0.25 + zero), slope * zero / (0.25 + zero)


WRITTEN = {
    "Poisson(log_rate=x)": poisson,
    "Poisson(exp(x))": poisson,
    "Poisson(rate=exp(x))": poisson,
    "ZeroInflatedPoisson(0.25, exp(x))": lambda y, x: inflated(poisson(y, x), y),
    "NegativeBinomial(mean=exp(x), dispersion=0.5)": negative,
    "ZeroInflatedNegativeBinomial(0.25, mean=exp(x), dispersion=0.5)": lambda y, x: inflated(negative(y, x), y),
    "Mixture([0.5, 0.5], Poisson(exp(x)), Poisson(log_rate=x))": poisson,
}


def program(family: str) -> str:
    text = "object Row : FinSet 1\nprogram p : Row -> Row\n    sample x <- Normal(0.0, 50.0)\n"
    return text + f"    observe y : Row <- {family}\n    return x\n"


@pytest.mark.parametrize("family", WRITTEN)
def test_density_and_gradient_are_those_of_the_closed_form(family: str) -> None:
    model = loads(program(family)).morphism
    # torch's softmax, the gradient of a mixture, has few digits of terms of 1e13
    for at in FAR[:-2] if family.startswith("Mixture") else FAR:
        for y in COUNTS:
            x = torch.tensor([at], dtype=torch.float64, requires_grad=True)
            density = trace(model, None, {"y": torch.tensor([y]), "x": x}).sites["y"].log_prob
            assert density is not None
            (slope,) = torch.autograd.grad(density.sum(), x)
            value, wanted = WRITTEN[family](y, at)
            assert float(density.detach().sum()) == pytest.approx(value, rel=1e-12, abs=1e-12), (at, y)
            assert float(slope) == pytest.approx(wanted, rel=1e-11, abs=1e-12), (at, y)


@pytest.mark.parametrize("x", [710.0, 800.0, 1e4])
def test_a_rate_beyond_all_numbers_has_no_count(x: float) -> None:
    model = loads(program("Poisson(log_rate=x)")).morphism
    for y in COUNTS:
        record = trace(model, None, {"y": torch.tensor([y]), "x": torch.tensor([x], dtype=torch.float64)}).sites["y"]
        assert record.log_prob is not None and float(record.log_prob.sum()) == -math.inf


@pytest.mark.parametrize("given", ["rate", "log_rate"])
@pytest.mark.parametrize("name", ["Poisson", "ZeroInflatedPoisson"])
def test_machine_code_and_numpy_say_the_same(name: str, given: str) -> None:
    family = RUNTIME_FAMILIES[name]
    arguments = {"gate": torch.tensor(0.3, dtype=torch.float64)} if name != "Poisson" else {}
    given = given if name == "Poisson" or given == "rate" else "log of rate"
    y = torch.tensor([0.0, 1.0, 7.0, 0.0, 3.0], dtype=torch.float64)
    x = np.array([-1e4, -800.0, -746.0, 2.0, 0.5] if given != "rate" else [0.0, 1e-300, 1e-9, 2.0, 0.5])

    def density(q: Any) -> Any:
        return family.log_prob(y, *family.canonical({**arguments, given: q}))

    function = Function(density, len(x))
    value, slope = density_graph(function)
    text = lowered(value, slope)
    address, keeps = address_of(text)
    reals, wholes = np.array(text.reals or [0.0]), np.array(text.wholes or [0], dtype=np.int64)
    compiled = MachineDensity(address, function.width, text.room, reals, wholes, keeps, text.source)
    wanted, slopes = function.value_and_grad(x)
    assert np.isfinite(wanted)
    found, gradient = compiled(x)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert largest_term(value, x)[0] == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12)


def test_a_rate_of_0_counts_nothing() -> None:
    family = RUNTIME_FAMILIES["Poisson"]
    rate = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.0, 1.0, 5.0], dtype=torch.float64)
    density = family.log_prob(y, *family.canonical({"rate": rate}))
    assert density.tolist() == [0.0, -math.inf, -math.inf]
    (slope,) = torch.autograd.grad(density[0], rate)
    assert slope.tolist() == [-1.0, 0.0, 0.0]
    assert family.fresh_noise((3,), None, family.canonical({"rate": rate})).tolist() == [0.0] * 3


def test_the_tails_of_a_tiny_rate_keep_their_digits() -> None:
    """P(X > k) of a rate that goes to 0 is rate^(k+1) / (k+1)!, P(X ≤ k) is 1."""
    family = RUNTIME_FAMILIES["Poisson"]
    x = torch.tensor([-50.0, -700.0, -1e4], dtype=torch.float64, requires_grad=True)
    for k in (0.0, 3.0):
        lower, upper = family.log_tails(torch.tensor(k), *family.canonical({"log_rate": x}))
        (slope,) = torch.autograd.grad(upper.sum(), x)
        wanted = (k + 1.0) * x.detach() - math.lgamma(k + 2.0)
        np.testing.assert_allclose(upper.detach(), wanted, rtol=1e-12)
        np.testing.assert_allclose(slope, [k + 1.0] * 3, rtol=1e-12)
        np.testing.assert_allclose(lower.detach(), [0.0] * 3, atol=1e-20)


def test_a_zero_truncated_poisson_of_a_tiny_rate_is_1() -> None:
    text = program("Poisson(log_rate=x) [truncate_lower=1]")
    model = loads(text).morphism
    score = partial(trace, model, None)
    for y, wanted in ((1, 0.0), (2, -1e4 - math.log(2.0))):
        record = score({"y": torch.tensor([y]), "x": torch.tensor([-1e4], dtype=torch.float64)}).sites["y"]
        assert record.log_prob is not None
        assert float(record.log_prob.sum()) == pytest.approx(wanted, rel=1e-12, abs=1e-11)
