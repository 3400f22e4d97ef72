"""Pathfinder: its Normals are those that it says, its draws are near the posterior, and chains go on from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from benchmarks.models import SCHOOLS
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel, bayesian_lift_parameters
from qvr_core.inference.mcmc import pathfinder
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.values.errors import InputProblem

FAR = """
object Row : FinSet 20
program far : Row -> Row
    sample mu <- Normal(0.0, 1000.0)
    observe y : Row <- Normal(mu, 1.0)
    return mu
"""
NETWORK = """
object Token : FinSet 5
object Topic : FinSet 3
morphism word : Topic -> Token [role=kernel] ~ Categorical
program p : Topic -> Token
    observe y <- word
    return y
"""


def quadratic(width: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A Normal's log density with gradient, its mean and its precision."""
    g = np.random.default_rng(seed)
    root = g.standard_normal((width, width))
    precision = root @ root.T + np.diag(10.0 ** g.uniform(-2, 2, width))
    mean = g.standard_normal(width)

    def density(q: Any) -> tuple[float, Any]:
        away = precision @ (q - mean)
        return -0.5 * float(away @ (q - mean)), -away

    return density, mean, precision


def covariance(normal: pathfinder.Normal) -> Any:
    inner = normal.factor @ normal.factor.T - np.eye(len(normal.factor))
    whole = np.eye(len(normal.mean)) + normal.columns @ inner @ normal.columns.T
    return normal.root[:, None] * whole * normal.root


@pytest.mark.parametrize("width", [1, 3, 30])
def test_an_approximation_keeps_the_last_secant_and_its_draws_have_the_density_that_it_tells(width: int) -> None:
    density, mean, _ = quadratic(width)
    way = list(pathfinder.climb(density, np.random.default_rng(1).uniform(-2, 2, width)))
    assert way[-1].q == pytest.approx(mean, abs=1e-3)
    (*_, last) = pathfinder.approximations(way[:-1] if len(way) > 2 else way)
    end = len(way) - 2 if len(way) > 2 else 1
    step, change = way[end].q - way[end - 1].q, way[end - 1].gradient - way[end].gradient
    np.testing.assert_allclose(covariance(last) @ change, step, rtol=1e-8, atol=1e-10)
    drawn, log_q = last.draw(5, np.random.default_rng(2))
    np.testing.assert_allclose(log_q, multivariate_normal(last.mean, covariance(last)).logpdf(drawn), rtol=1e-8)


@pytest.mark.statistical
def test_resampled_draws_have_the_spread_of_the_posterior() -> None:
    density, _, precision = quadratic(6)
    seeds = range(300)
    begins = [np.random.default_rng((1, seed)).uniform(-2, 2, 6) for seed in seeds]
    found = pathfinder.starts(density, begins, [np.random.default_rng(seed) for seed in seeds])
    assert found is not None
    wanted = np.diag(np.linalg.inv(precision))
    # a standard error of a variance of 300 draws is 8 %
    assert np.array(found).var(0) == pytest.approx(wanted, rel=0.4)


def test_weights_are_truncated_as_ionides_says() -> None:
    weights = np.array([0.5, 1.0, 2.0, 100.0])
    np.testing.assert_allclose(np.exp(pathfinder.truncated(np.log(weights))), [0.5, 1.0, 2.0, weights.mean() * 2.0])


def test_a_density_that_is_nowhere_finite_has_no_start() -> None:
    def nowhere(q: Any) -> tuple[float, Any]:
        return np.nan, np.full_like(q, np.nan)

    assert pathfinder.starts(nowhere, [np.zeros(2)] * 2, [np.random.default_rng(0)] * 2) is None


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_chains_start_where_the_posterior_is(engine: Any) -> None:
    data = {"y": 700.0 + torch.randn(20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)}
    potential = potential_of(loads(FAR).morphism, None, data)
    chains = MCMC(NUTSKernel(), 10, 10, 4, seed=3, engine=engine, init="pathfinder")
    assert chains.choose(potential).engine == engine
    assert chains.starts is not None and chains.start_gradients > 0
    away = [abs(float(q[0]) - float(data["y"].mean())) for q in chains.starts.values()]
    assert max(away) < 5 / 20**0.5 and len(set(away)) == 4


def test_a_seed_gives_the_same_draws_wherever_chains_run() -> None:
    def drawn(**settings: Any) -> torch.Tensor:
        chains = MCMC(NUTSKernel(), 30, 30, 3, seed=1, engine="compiled", **settings)
        return chains.run(loads(SCHOOLS.text).morphism, None, SCHOOLS.data()).samples["tau"]

    first = drawn(init="pathfinder")
    assert not torch.equal(first, drawn())
    for schedule in ("sequential", "processes"):
        assert torch.equal(first, drawn(init="pathfinder", chains=schedule))


def test_paths_that_find_nothing_leave_the_usual_start_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pathfinder, "starts", lambda *_: None)
    chains = MCMC(NUTSKernel(), 5, 5, 2, seed=1, engine="plain", init="pathfinder")
    with pytest.warns(UserWarning, match="chains start at random"):
        found = chains.run(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())
    usual = MCMC(NUTSKernel(), 5, 5, 2, seed=1, engine="plain").run(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())
    assert torch.equal(found.samples["mu"], usual.samples["mu"])


def test_parameters_of_networks_are_refused() -> None:
    lifted, x, data = bayesian_lift_parameters(
        loads(NETWORK).morphism, torch.tensor([0, 1]), {"y": torch.tensor([2, 3])}
    )
    with pytest.raises(InputProblem, match="without the parameters of networks"):
        MCMC(NUTSKernel(), 5, 5, 2, seed=1, init="pathfinder").run(lifted, x, data)
