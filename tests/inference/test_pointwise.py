"""Pointwise log likelihood: its elements against scipy, its sum against the density, LOO on it."""

import numpy as np
import pytest
import torch
from arviz_stats.base.array import array_stats
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    MCMC,
    AutoNormalGuide,
    MCMCResult,
    NUTSKernel,
    Predictive,
    bayesian_lift_parameters,
    trace,
)
from qvr_core.runtime.programs.handlers import condition, substitute

SCHOOLS = """
object School : FinSet 8
program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau) [noncentred]
    observe y : School <- Normal(theta, sigma)
    return mu
"""
DATA = {
    "y": torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "sigma": torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}


def sampled(text: str, given: dict[str, Tensor], draws: int = 50, chains: int = 2) -> MCMCResult:
    return MCMC(NUTSKernel(), 100, draws, chains, seed=0).run(loads(text).morphism, None, given)


def observed_total(text: str, given: dict[str, Tensor], latents: dict[str, Tensor]) -> Tensor:
    """log p(data | latents) of one draw, by the site records."""
    model = loads(text).morphism
    run = model.execute(None, condition(given), substitute(latents))
    terms = [s.log_prob for s in run.sites.values() if s.kind in ("observe", "marginalize") and s.log_prob is not None]
    return torch.stack(terms).sum()


def test_elements_are_those_of_the_density() -> None:
    result = sampled(SCHOOLS, DATA)
    found = result.log_likelihood["y"]
    assert found.shape == (2, 50, 8)
    theta = result.samples["theta"].numpy()
    exact = stats.norm(theta, DATA["sigma"].numpy()).logpdf(DATA["y"].numpy())
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6)
    latents = {name: draws[1, 7].unsqueeze(0) for name, draws in result.samples.items()}
    assert float(found[1, 7].sum()) == pytest.approx(float(observed_total(SCHOOLS, DATA, latents)), rel=1e-6)


def test_the_tree_has_the_groups_of_arviz_and_loo_works_on_it() -> None:
    tree = sampled(SCHOOLS, DATA, 1000, 4).to_arviz()
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "School")
    np.testing.assert_array_equal(tree["observed_data"]["y"], DATA["y"].numpy())
    assert "sigma" not in tree["observed_data"]
    elpd, pareto_k, p = array_stats.loo(tree["log_likelihood"]["y"].to_numpy(), chain_axis=0, draw_axis=1)
    assert pareto_k.max() < 1.0
    # published for this model and these data (Vehtari, Gelman, Gabry 2017; the loo package): elpd −30.8, p_loo 0.9
    assert elpd.sum() == pytest.approx(-30.8, abs=0.4)
    assert p.sum() == pytest.approx(0.9, abs=0.4)


def test_figures_of_many_draws_are_those_of_each_alone() -> None:
    """300 draws beside a table of 400 numbers a draw go through several executions, of which the last has a rest."""
    text = """
object Item : FinSet 20
program p : Item -> Item
    sample rho <- HalfNormal(1.0)
    let K[i : Item, j : Item] = exp(-abs(i - j) / rho)
    let m[i : Item] = sum(K[i, j] for j : Item)
    observe y[i : Item] <- Normal(m[i], 1.0)
    return y
"""
    y = torch.linspace(0.0, 3.0, 20, dtype=torch.float64)
    result = sampled(text, {"y": y}, draws=150)
    rho = result.samples["rho"].numpy()
    apart = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    tables = np.exp(-apart / rho[..., None, None])
    np.testing.assert_allclose(result.deterministic["K"].numpy(), tables, rtol=1e-12)
    exact = stats.norm(tables.sum(-1), 1.0).logpdf(y.numpy())
    np.testing.assert_allclose(result.log_likelihood["y"].numpy(), exact, rtol=1e-10)


def test_masked_elements_are_absent() -> None:
    text = """
object Row : FinSet 4
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0) [mask=seen, weight=w]
    return m
"""
    given = {
        "y": torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "seen": torch.tensor([1, 0, 1, 1]).bool(),
        "w": torch.full((4,), 2.0),
    }
    traced = trace(loads(text).morphism, None, {**given, "m": torch.tensor([0.5])})
    found = traced.log_likelihood["y"][0]
    assert found.isnan().tolist() == [False, True, False, False]
    expected = 2.0 * stats.norm(0.5, 1.0).logpdf([1.0, 3.0, 4.0])
    np.testing.assert_allclose(found[~found.isnan()], expected, rtol=1e-5)
    assert float(found.nansum()) == pytest.approx(float(traced.sites["y"].log_prob), rel=1e-6)


def test_a_vector_has_one_number() -> None:
    text = """
object Row : FinSet 5
program p : Row -> Row
    sample m : Real 2 <- MultivariateNormal([0.0, 0.0], eye(2))
    observe y : Row <- MultivariateNormal(m, tril)
    return m
"""
    tril = torch.tensor([[1.0, 0.0], [0.5, 0.8]])
    given = {"y": torch.randn(5, 2), "tril": tril, "m": torch.tensor([[0.3, -0.2]])}
    found = trace(loads(text).morphism, None, given).log_likelihood["y"]
    exact = stats.multivariate_normal([0.3, -0.2], (tril @ tril.T).numpy()).logpdf(given["y"].numpy())
    np.testing.assert_allclose(found[0], exact, rtol=1e-4)


MIXTURE = """
object K : FinSet 2
object Row : FinSet 6
program p : Row -> Row
    sample mu : K <- Normal(0.0, 3.0)
    sample w <- Dirichlet(1.0) [over=K]
    marginalize z : Row <- Categorical(w)
        observe y : Row <- Normal(mu[z], 1.0)
    return mu
"""


def test_a_mixture_has_a_number_for_each_row() -> None:
    y, mu, w = torch.tensor([0.1, 2.0, -1.0, 3.0, 0.5, 1.0]), torch.tensor([-0.5, 2.0]), torch.tensor([0.3, 0.7])
    found = trace(loads(MIXTURE).morphism, None, {"y": y, "mu": mu[None], "w": w[None]}).log_likelihood["y"]
    parts = [np.log(p) + stats.norm(m, 1.0).logpdf(y.numpy()) for p, m in zip([0.3, 0.7], [-0.5, 2.0], strict=True)]
    np.testing.assert_allclose(found[0], np.logaddexp(*parts), rtol=1e-5)


def test_groups_have_a_number_each_without_the_latents_inside() -> None:
    text = """
object K : FinSet 2
object Group : FinSet 3
object Row : FinSet 5
program p : Row -> Row
    sample mu : K <- Normal(0.0, 3.0)
    marginalize z : K <- Categorical([0.4, 0.6]) [over=Group]
        observe y : Row <- Normal(mu[z], 1.0) [via=g]
    return mu
"""
    g, y = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0.1, 0.3, 2.0, -1.0, 0.5])
    found = trace(loads(text).morphism, None, {"y": y, "g": g, "mu": torch.tensor([[-0.5, 2.0]])}).log_likelihood["y"]
    assert found.shape == (1, 3)
    for group in range(3):
        rows = y[g == group].numpy()
        parts = [np.log(p) + stats.norm(m, 1.0).logpdf(rows).sum() for p, m in ((0.4, -0.5), (0.6, 2.0))]
        assert float(found[0, group]) == pytest.approx(float(np.logaddexp(*parts)), rel=1e-5)


READS = """
object X : Real 3
object Hidden : Real 2
object Y : Real 1
morphism f : X -> Hidden [role=kernel] ~ Normal
morphism head : Hidden -> Y [role=kernel] ~ Normal
program p(x) : X -> Y
    sample h <- f(x)
    observe y <- head(h)
    return y
"""


def test_a_program_with_an_input_has_a_number_for_each_row() -> None:
    torch.manual_seed(0)
    model, x, y = loads(READS).morphism, torch.randn(4, 3), torch.randn(4, 1)
    drawn = Predictive(model, num_samples=6, return_sites=["h"])(x, {"y": y})
    found = Predictive(model, posterior_samples=drawn).log_likelihood(x, {"y": y})["y"]
    assert found.shape == (6, 4)
    for draw in range(6):
        torch.testing.assert_close(found[draw], model.step("y").log_prob(drawn["h"][draw], y))
    guide = AutoNormalGuide(model, {"y"})
    assert Predictive(model, guide, num_samples=5).log_likelihood(x, {"y": y})["y"].shape == (5, 4)


def test_lifted_parameters_differ_from_draw_to_draw() -> None:
    torch.manual_seed(0)
    model, x, y = loads(READS).morphism, torch.randn(4, 3), torch.randn(4, 1)
    result = MCMC(NUTSKernel(max_tree_depth=3), 5, 4, 1, seed=0).run(*bayesian_lift_parameters(model, x, {"y": y}))
    found = result.log_likelihood["y"]
    assert found.shape == (1, 4, 4)
    latents = result.joined()
    for draw in (0, 3):
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(latents[name][draw])
        exact = model.step("y").log_prob(latents["h"][draw], y)
        torch.testing.assert_close(found[0, draw], exact, check_dtype=False)


def test_positions_of_a_sequence_that_padding_leaves_out_are_absent() -> None:
    text = """
object Token : FinSet 7
object Hidden : Real 4
morphism embed : Token -> Hidden [role=embed]
morphism attend : Hidden -> Hidden [role=attention, heads=2]
morphism head : Hidden -> Token [role=kernel] ~ Categorical
program p(tokens) : Token -> Token [lengths=n]
    let h = attend(embed(tokens))
    observe y <- head(h)
    return y
"""
    model = loads(text).morphism
    x, n = torch.randint(0, 7, (2, 3)), torch.tensor([3, 1])
    traced = trace(model, x, {"y": x, "n": n})
    found = traced.log_likelihood["y"]
    assert found.isnan().tolist() == [[False, False, False], [False, True, True]]
    torch.testing.assert_close(found.nansum(-1), traced.sites["y"].log_prob)


KEPT = """
object School : FinSet 8
program schools : School -> School {option}
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample raw : School <- Normal(0.0, 1.0)
    let half = sigma / 2
    let theta = mu + tau * raw
    let best = max(theta)
    observe y : School <- Normal(theta, sigma)
    return theta
"""


def test_lets_that_depend_on_a_latent_are_kept() -> None:
    result = sampled(KEPT.format(option=""), DATA)
    assert set(result.deterministic) == {"theta", "best"}
    samples = result.samples
    theta = samples["mu"].unsqueeze(-1) + samples["tau"].unsqueeze(-1) * samples["raw"]
    torch.testing.assert_close(result.deterministic["theta"], theta)
    torch.testing.assert_close(result.deterministic["best"], theta.amax(-1))
    assert list(result.to_arviz()["posterior"].data_vars) == ["mu", "tau", "raw", "theta", "best"]
    model = loads(KEPT.format(option="")).morphism
    drawn = Predictive(model, posterior_samples=result.joined()).deterministic(None, DATA)
    torch.testing.assert_close(drawn["theta"], theta.flatten(0, 1))
    guide = AutoNormalGuide(model, {"y"})
    assert Predictive(model, guide, num_samples=7).deterministic(None, DATA)["theta"].shape == (7, 8)


def test_the_program_says_which() -> None:
    assert set(sampled(KEPT.format(option="[keep=[best]]"), DATA).deterministic) == {"best"}
    assert sampled(KEPT.format(option="[keep=[]]"), DATA).deterministic == {}


def test_large_lets_are_kept_where_the_program_says_so() -> None:
    text = """
object Row : FinSet 101
program p : Row -> Row {option}
    sample m : Row <- Normal(0.0, 1.0)
    let table = outer(m, m)
    observe y <- Normal(sum(m), 1.0)
    return m
"""
    given = {"y": torch.tensor(0.0)}
    assert sampled(text.format(option=""), given, 2, 1).deterministic == {}
    kept = sampled(text.format(option="[keep=[table]]"), given, 2, 1).deterministic
    assert kept["table"].shape == (1, 2, 101, 101)


def test_a_series_has_a_number_for_each_time_and_none_for_what_is_given() -> None:
    text = """
object Time : FinSet 5
program p : Time -> Time
    sample b <- Normal(0.0, 1.0)
    observe y[t : Time] <- Normal(b * y[t - 1], 0.5)
    return b
"""
    y = torch.tensor([0.3, 0.1, -0.4, 0.9, 1.2])
    found = trace(loads(text).morphism, None, {"y": y, "b": torch.tensor([0.7])}).log_likelihood["y"][0]
    assert found.isnan().tolist() == [True, False, False, False, False]
    np.testing.assert_allclose(found[1:], stats.norm(0.7 * y[:-1], 0.5).logpdf(y[1:]), rtol=1e-5)
