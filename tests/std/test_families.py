"""The families of `std/families.qvr` against scipy: densities, tails, draws; and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, unconstrained

NUMBERS = {
    "Logistic": ("Logistic(0.5, 1.5)", st.logistic(0.5, 1.5), [-60.0, -1.0, 0.5, 2.0, 40.0]),
    "SkewNormal": ("SkewNormal(0.5, 1.5, 3.0)", st.skewnorm(3.0, 0.5, 1.5), [-4.0, 0.3, 1.0, 6.0]),
    "ExGaussian": ("ExGaussian(0.4, 0.5, 0.8)", st.exponnorm(1 / (0.8 * 0.5), 0.4, 0.5), [-1.0, 0.3, 1.2, 9.0]),
    "Wald": ("Wald(1.5, 2.0)", st.invgauss(1.5 / 2.0, scale=2.0), [0.05, 0.4, 1.5, 12.0]),
    "AsymmetricLaplace": (
        "AsymmetricLaplace(0.5, 1.5, 0.3)",
        # scipy's has a scale of both sides together, and their ratio
        st.laplace_asymmetric(np.sqrt(0.3 / 0.7), 0.5, 1.5 / np.sqrt(0.3 * 0.7)), [-6.0, 0.4, 0.5, 0.6, 9.0],
    ),
    "Frechet": ("Frechet(2.5, 1.5)", st.invweibull(2.5, scale=1.5), [0.4, 1.0, 3.0, 40.0]),
}  # fmt: skip


def hurdle(k: Any) -> Any:
    return np.where(k == 0, 0.3, 0.7 * st.poisson(1.7).pmf(k) / st.poisson(1.7).sf(0))


def inflated(k: Any) -> Any:
    return 0.2 * (k == 0) + 0.8 * st.binom(6, 0.4).pmf(k)


COUNTS = {
    "HurdlePoisson": ("HurdlePoisson(0.3, 1.7)", hurdle),
    "ZeroInflatedBinomial": ("ZeroInflatedBinomial(0.2, 6, 0.4)", inflated),
}


def density(draw: str, points: Any, options: str = "", **more: Any) -> Any:
    family = draw.partition("(")[0]
    text = (
        f'from "std/families.qvr" import {family}\nobject Row : FinSet {len(points)}\nprogram p : One -> One\n'
        f"    sample m <- Normal(0.0, 1.0)\n    observe y[i : Row] <- {draw}{options}\n    return m\nexport p\n"
    )
    given = {"m": torch.tensor(0.0), "y": torch.as_tensor(points), **more}
    return float(dsl.loads(text).morphism.log_joint(None, given)) - st.norm.logpdf(0.0)


@pytest.fixture(autouse=True)
def double_precision() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", NUMBERS)
def test_densities_are_those_of_scipy(name: str) -> None:
    draw, reference, points = NUMBERS[name]
    for x in points:
        assert density(draw, [x]) == pytest.approx(float(reference.logpdf(x)), rel=1e-9, abs=1e-9), x


@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "SkewNormal"])
def test_censored_ones_have_the_tails_of_scipy(name: str) -> None:
    draw, reference, points = NUMBERS[name]
    for x in points:
        right = density(draw, [x], " [right_censored=1]")
        assert right == pytest.approx(float(reference.logsf(x)), rel=1e-7, abs=1e-12), x
        if reference.cdf(x) > 1e-6:
            left = density(draw, [x], " [left_censored=1]")
            assert left == pytest.approx(float(reference.logcdf(x)), rel=1e-7, abs=1e-12), x


@pytest.mark.parametrize("name", COUNTS)
def test_probabilities_of_counts_add_up(name: str) -> None:
    draw, pmf = COUNTS[name]
    values = np.arange(30)
    found = np.exp([density(draw, [float(k)]) for k in values])
    np.testing.assert_allclose(found, pmf(values), rtol=1e-9, atol=1e-15)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)


def drawn(draw: str) -> Any:
    family = draw.partition("(")[0]
    text = (
        f'from "std/families.qvr" import {family}\nobject Row : FinSet 5\nprogram p : One -> One\n'
        f"    sample m <- Normal(0.0, 1.0)\n    observe y[i : Row] <- {draw}\n    return m\nexport p\n"
    )
    torch.manual_seed(5)
    return Predictive(dsl.loads(text).morphism, num_samples=800)(None, {})["y"].reshape(-1).double().numpy()


@pytest.mark.parametrize("name", NUMBERS)
def test_draws_follow_the_distribution(name: str) -> None:
    draw, reference, _ = NUMBERS[name]
    assert st.kstest(drawn(draw), reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", COUNTS)
def test_draws_of_counts_follow_the_distribution(name: str) -> None:
    draw, pmf = COUNTS[name]
    seen = np.bincount(drawn(draw).astype(int), minlength=30)[:30] / 4000
    assert np.abs(seen - pmf(np.arange(30))).max() < 5 * np.sqrt(0.25 / 4000)


LATENT = {
    "Logistic": "Logistic(m, 1.0)",
    "SkewNormal": "SkewNormal(m, exp(m), m)",
    "ExGaussian": "ExGaussian(m, 1.0, exp(m))",
    "Wald": "Wald(exp(m), 2.0)",
    "AsymmetricLaplace": "AsymmetricLaplace(m, 1.0, 0.3)",
    "Frechet": "Frechet(2.0, exp(m))",
    "HurdlePoisson": "HurdlePoisson(sigmoid(m), exp(m))",
    "ZeroInflatedBinomial": "ZeroInflatedBinomial(sigmoid(m), 6, 0.4)",
}


@pytest.mark.parametrize("name", LATENT)
def test_chains_are_machine_code(name: str) -> None:
    text = (
        f'from "std/families.qvr" import {name}\nobject Row : FinSet 4\nprogram p : One -> One\n'
        f"    sample m <- Normal(0.0, 0.5)\n    observe y[i : Row] <- {LATENT[name]}\n    return m\nexport p\n"
    )
    mcmc = MCMC(NUTSKernel(), 10, 5, 1, seed=2, engine="compiled")
    assert mcmc.run(dsl.loads(text).morphism, None, {"y": torch.tensor([1.0, 3.0, 2.0, 1.0])}).engine == "compiled"


@pytest.mark.parametrize(
    "draw", ["Logistic(m, s)", "SkewNormal(m, s, 3.0)", "AsymmetricLaplace(m, s, 0.3)", "Frechet(2.5, s)"]
)
def test_noncentred(draw: str) -> None:
    text = (
        f'from "std/families.qvr" import {draw.partition("(")[0]}\nobject Row : FinSet 3\nprogram p : One -> Row\n'
        f"    sample m <- Normal(0.0, 1.0)\n    sample s <- HalfNormal(1.0)\n    sample x : Row <- {draw} {{}}\n"
        "    return x\n"
    )
    noncentred, centred = (dsl.loads(text.format(option)).morphism for option in ("[noncentred]", ""))
    free = {"m": torch.tensor([0.4]), "s": torch.tensor([-0.3]), "x": torch.tensor([[-0.5, 0.1, 1.2]])}
    free = {name: value.double() for name, value in free.items()}
    run = noncentred.run(None, unconstrained(free), by_rows(1))
    x = run.sites["x"].value
    shift, scale = (0.0 if draw.startswith("Frechet") else 0.4), float(np.exp(-0.3))
    own = free["x"].exp() if draw.startswith("Frechet") else free["x"]
    torch.testing.assert_close(x, shift + scale * own)
    values = {name: run.sites[name].value for name in ("m", "s", "x")}
    torch.testing.assert_close(run.log_joint(), centred.log_joint(None, values))
