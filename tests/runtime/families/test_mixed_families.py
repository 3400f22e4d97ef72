"""`Mixture(w, A(…), B(…))`: densities, tails and draws compared with scipy's of the components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.runtime.programs.handlers import by_rows, condition, substitute
from qvr_core.runtime.values.errors import InputProblem

CASES: dict[str, tuple[list[dict[str, float]], list[Any], list[float]]] = {
    "Mixture(Normal, StudentT)": (
        [{"loc": 0.5, "scale": 1.5}, {"df": 4.0, "loc": -2.0, "scale": 0.7}],
        [st.norm(0.5, 1.5), st.t(4, -2, 0.7)],
        [-9.0, -2.0, 0.1, 6.0],
    ),
    "Mixture(Gamma, LogNormal, Exponential)": (
        [{"concentration": 2.0, "rate": 3.0}, {"loc": 0.2, "scale": 0.4}, {"rate": 0.5}],
        [st.gamma(2, scale=1 / 3), st.lognorm(0.4, scale=np.exp(0.2)), st.expon(scale=2)],
        [0.01, 0.9, 12.0],
    ),
    "Mixture(Poisson, Binomial)": (
        [{"rate": 3.0}, {"total": 4.0, "logits": 0.2}],
        [st.poisson(3), st.binom(4, 1 / (1 + np.exp(-0.2)))],
        [0.0, 2.0, 4.0, 9.0],
    ),
    "Mixture(Beta, Kumaraswamy)": (
        [{"a": 2.0, "b": 5.0}, {"a": 1.5, "b": 1.2}],
        [st.beta(2, 5), None],
        [0.1, 0.6],
    ),
}


def _kumaraswamy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.log(1.5 * 1.2) + 0.5 * np.log(x) + 0.2 * np.log1p(-(x**1.5))


def _arguments(given: list[dict[str, float]], weights: Tensor) -> dict[str, Tensor]:
    inner = {
        f"{n}_{at}": torch.tensor(v, dtype=torch.float64) for at, one in enumerate(given, 1) for n, v in one.items()
    }
    return {"weights": weights, **inner}


@pytest.mark.parametrize("name", CASES)
def test_density_and_tails(name: str) -> None:
    given, references, points = CASES[name]
    weights = np.linspace(1.0, 2.0, len(given))
    weights /= weights.sum()
    family = RUNTIME_FAMILIES[name]
    parameters = family.canonical(_arguments(given, torch.tensor(weights)))
    x = np.array(points)
    each = [
        _kumaraswamy(x)
        if one is None
        else one.logpmf(x)
        if hasattr(one, "pmf") and family.facts.discrete
        else one.logpdf(x)
        for one in references
    ]
    expected = np.logaddexp.reduce([np.log(w) + one for w, one in zip(weights, each, strict=True)], axis=0)
    value = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    found = family.log_prob(value, *parameters)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9)
    if not family.facts.discrete:
        (gradient,) = torch.autograd.grad(found.sum(), value)
        assert torch.isfinite(gradient).all()
    if None not in references:
        assert family.facts.cdf
        upper = sum(w * one.sf(x) for w, one in zip(weights, references, strict=True))
        lower = sum(w * one.cdf(x) for w, one in zip(weights, references, strict=True))
        np.testing.assert_allclose(
            family.log_survival(value, *parameters).detach().exp(), upper, rtol=1e-7, atol=1e-300
        )
        np.testing.assert_allclose(family.cdf(value, *parameters).detach(), lower, rtol=1e-7)


def test_a_family_without_cdf_leaves_the_mixture_without() -> None:
    assert not RUNTIME_FAMILIES["Mixture(Normal, Horseshoe)"].facts.cdf


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name, (_, ones, _) in CASES.items() if None not in ones])
def test_draws(name: str) -> None:
    given, references, points = CASES[name]
    family = RUNTIME_FAMILIES[name]
    weights = torch.tensor([0.3, 0.7] if len(given) == 2 else [0.2, 0.3, 0.5]).double()
    parameters = family.canonical(_arguments(given, weights))
    made = torch.Generator().manual_seed(4)
    draws = family.value_of(family.fresh_noise((40_000,), made, parameters), parameters).numpy()
    for point in points:
        expected = sum(float(w) * one.cdf(point) for w, one in zip(weights, references, strict=True))
        error = np.sqrt(max(expected * (1 - expected), 1e-9) / draws.size)
        assert abs((draws <= point).mean() - expected) < 5 * error + 1e-12


def test_mixtures_of_vectors() -> None:
    name = "Mixture(MultivariateNormal, MultivariateNormal)"
    family = RUNTIME_FAMILIES[name]
    locs, weights = torch.tensor([[0.0, 1.0], [3.0, -1.0]]).double(), torch.tensor([0.4, 0.6], dtype=torch.float64)
    scale = torch.tensor([[1.0, 0.0], [0.5, 0.8]], dtype=torch.float64)
    parameters = family.canonical(
        {"weights": weights, "loc_1": locs[0], "scale_tril_1": scale, "loc_2": locs[1], "scale_tril_2": 2 * scale}
    )
    x = torch.tensor([[0.3, 0.2], [2.0, -2.0], [5.0, 1.0]], dtype=torch.float64)
    covariance = (scale @ scale.T).numpy()
    each = [
        np.log(w) + st.multivariate_normal(m.numpy(), c * covariance).logpdf(x.numpy())
        for w, m, c in zip((0.4, 0.6), locs, (1, 4), strict=True)
    ]
    np.testing.assert_allclose(family.log_prob(x, *parameters), np.logaddexp.reduce(each, axis=0), rtol=1e-9)
    drawn = family.fresh_noise((5, 2), torch.Generator().manual_seed(0), parameters)
    assert drawn.shape == (5, 2)


PROGRAM = """
object Group : FinSet 3
object Row : FinSet 6
object Kind : FinSet 2
program p : Row -> Real 1
    data g : Row -> Group
    sample w : Group <- Dirichlet([1.0, 2.0])
    sample mu : Group <- Normal(0.0, 2.0)
    observe y[i : Row] <- Mixture(w[g[i]], Normal(mu[g[i]], 1.0), Laplace(0.0, 0.5))
    observe c : Row <- Mixture([0.25, 0.75], Poisson(1.0), Geometric(0.4)) [right_censored=late]
    return mu
"""


def test_in_a_program_with_plates_and_indices() -> None:
    model = loads(PROGRAM).morphism
    g, y = torch.tensor([0, 0, 1, 1, 2, 2]), torch.linspace(-2, 2, 6)
    data = {"g": g, "y": y, "c": torch.tensor([0, 1, 2, 3, 4, 1]), "late": torch.tensor([0, 0, 0, 1, 0, 0])}
    w, mu = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]), torch.tensor([0.0, 1.0, -1.0])
    run = model.execute(None, substitute({"w": w, "mu": mu}), condition(data))
    weights = w[g].numpy()
    first, second = st.norm(mu[g].numpy(), 1).pdf(y.numpy()), st.laplace(0, 0.5).pdf(y.numpy())
    expected = np.log(weights[:, 0] * first + weights[:, 1] * second).sum()
    assert float(run.sites["y"].log_prob) == pytest.approx(expected, rel=1e-5)
    c = data["c"].numpy()
    mass = 0.25 * st.poisson(1).pmf(c) + 0.75 * st.geom(0.4, loc=-1).pmf(c)
    mass[3] = 0.25 * st.poisson(1).sf(2) + 0.75 * st.geom(0.4, loc=-1).sf(2)
    assert float(run.sites["c"].log_prob) == pytest.approx(np.log(mass).sum(), rel=1e-5)
    drawn = model.execute(None, by_rows(4), condition({"g": g, "late": data["late"]}))
    assert torch.as_tensor(drawn.sites["y"].value).shape == (4, 6)
    samples = MCMC(NUTSKernel(), 20, 20, 1, seed=0).run(model, None, data).samples
    assert samples["w"].shape == (1, 20, 3, 2)


def test_a_mixture_is_a_latent_too() -> None:
    text = "object Row : FinSet 2\nprogram p : Row -> Real 1\n"
    text += "    sample z : Row <- Mixture([0.4, 0.6], Gamma(2.0, 1.0), HalfNormal(1.0))\n"
    text += "    observe y : Row <- Normal(z, 1.0)\n    return z\n"
    model = loads(text).morphism
    data = {"y": torch.tensor([0.5, 2.0])}
    samples = MCMC(NUTSKernel(), 30, 30, 1, seed=0).run(model, None, data).samples["z"]
    assert (samples > 0).all()
    z = np.array([0.4, 1.7])
    run = model.execute(None, substitute({"z": torch.tensor(z)}), condition(data))
    expected = np.log(0.4 * st.gamma(2).pdf(z) + 0.6 * st.halfnorm.pdf(z)).sum()
    assert float(run.sites["z"].log_prob) == pytest.approx(expected, rel=1e-6)


def test_weights_of_another_number_at_run_time() -> None:
    text = "object Row : FinSet 2\nprogram p : Row -> Real 1\n    sample m <- Normal(0.0, 1.0)\n"
    text += "    observe y : Row <- Mixture(w, Normal(m, 1.0), Normal(0.0, 2.0))\n    return m\n"
    model = loads(text).morphism
    with pytest.raises(InputProblem, match="2 components, and its weights are 3"):
        model.execute(None, condition({"y": torch.zeros(2), "w": torch.tensor([0.2, 0.3, 0.5])}))
