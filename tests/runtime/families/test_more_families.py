"""Families that torch does not have, against scipy; other parametrisations; random walks; correlation matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, AutoNormalGuide, AutoPriorGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.runtime.families.bijectors import Support, constrain
from qvr_core.runtime.values.errors import CountOverflow, InputProblem, NoDensity

t = torch.tensor


def params(name: str, **given: object) -> tuple[torch.Tensor, ...]:
    return RUNTIME_FAMILIES[name].canonical({key: t(value, dtype=torch.float64) for key, value in given.items()})


def log_prob(name: str, value: object, **given: object) -> np.ndarray:
    return RUNTIME_FAMILIES[name].log_prob(torch.as_tensor(value, dtype=torch.float64), *params(name, **given)).numpy()


def sample(name: str, count: int, **given: object) -> np.ndarray:
    return RUNTIME_FAMILIES[name].fresh_noise((count,), None, params(name, **given)).numpy()


COUNTS = [
    ("BetaBinomial", {"total": 7.0, "a": 1.5, "b": 0.8}, st.betabinom(7, 1.5, 0.8).pmf),
    ("NegativeBinomial", {"mean": 4.0, "dispersion": 0.25}, st.nbinom(4.0, 0.5).pmf),
    ("NegativeBinomial", {"mean": 4.0, "total": 3.0}, st.nbinom(3.0, 3.0 / 7.0).pmf),
    ("ZeroInflatedNegativeBinomial", {"gate": 0.3, "mean": 2.0, "dispersion": 0.5},
     lambda k: 0.7 * st.nbinom(2.0, 0.5).pmf(k) + 0.3 * (k == 0)),
    ("ZeroInflatedNegativeBinomial", {"gate_logits": 0.0, "total": 2.0, "probs": 0.4},
     lambda k: 0.5 * st.nbinom(2.0, 0.6).pmf(k) + 0.5 * (k == 0)),
    ("DiscreteUniform", {"low": 2.0, "high": 6.0}, st.randint(2, 7).pmf),
    ("Poisson", {"log_rate": 0.7}, st.poisson(math.exp(0.7)).pmf),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "pmf"), COUNTS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(COUNTS)])
def test_counts_have_the_probabilities_of_scipy_and_draws_follow_them(name, given, pmf):
    values = np.arange(40.0)
    found = np.exp(log_prob(name, values, **given))
    assert np.allclose(found, pmf(values), rtol=1e-9, atol=1e-300)
    assert np.exp(log_prob(name, [0.5, -1.0], **given)).sum() == 0.0
    drawn = sample(name, 40_000, **given)
    seen = np.bincount(drawn.astype(int), minlength=40)[:40] / len(drawn)
    assert np.abs(seen - found).max() < 5 * math.sqrt(0.25 / len(drawn))


CHANCES = [("Bernoulli", {}), ("Binomial", {"total": 1.0}), ("Geometric", {}), ("NegativeBinomial", {"total": 2.0})]


@pytest.mark.parametrize(("name", "given"), CHANCES, ids=[name for name, _ in CHANCES])
def test_a_probability_of_0_or_1_is_the_nearest_number_between_and_logits_are_exact(name, given):
    """docs/reference.md, "Probabilities of 0 and 1"."""
    values = [0.0, 1.0]
    never = log_prob(name, values, probs=0.0, **given)
    always = log_prob(name, values, probs=1.0, **given)
    nearly = [log_prob(name, values, probs=p, **given) for p in (2.2250738585072014e-308, 1.0 - 2.0**-52)]
    assert np.isfinite(never).all()
    assert np.array_equal(never, nearly[0])
    assert np.array_equal(always, nearly[1])
    for logits in (-math.inf, math.inf):
        found = log_prob(name, values, logits=logits, **given)
        beside = log_prob(name, values, logits=math.copysign(700.0, logits), **given)
        assert np.array_equal(found == -math.inf, beside < -300.0)
        assert np.allclose(found[beside >= -300.0], beside[beside >= -300.0], atol=1e-12)


@pytest.mark.parametrize("dispersion", [1e-6, 1e-9, 1e-15, 1e-22])
def test_a_negative_binomial_of_little_dispersion_is_nearly_a_poisson(dispersion):
    values = np.array([0.0, 1.0, 2.0, 7.0, 60.0])
    found = log_prob("NegativeBinomial", values, mean=3.0, dispersion=dispersion)
    # to first order in the dispersion
    further = 0.5 * dispersion * ((values - 3.0) ** 2 - values)
    assert found == pytest.approx(st.poisson(3.0).logpmf(values) + further, rel=1e-8 if dispersion > 1e-9 else 1e-13)


def test_a_beta_binomial_of_little_dispersion_is_nearly_a_binomial():
    values = np.array([0.0, 1.0, 4.0, 7.0])
    found = log_prob("BetaBinomial", values, total=7.0, a=3e15, b=7e15)
    assert found == pytest.approx(st.binom(7, 0.3).logpmf(values), rel=1e-13)


@pytest.mark.parametrize(
    ("name", "given"), [(name, given) for name, given, _ in COUNTS if name != "DiscreteUniform"],
)  # fmt: skip
def test_gradients_of_counts(name, given):
    """In every real parameter, against central differences."""
    family = RUNTIME_FAMILIES[name]
    value = t([0.0, 1.0, 5.0], dtype=torch.float64)
    made = {key: t(number, dtype=torch.float64) for key, number in given.items()}
    for key, number in made.items():
        if key == "total" and name == "BetaBinomial":
            continue
        leaf = number.clone().requires_grad_()
        (grad,) = torch.autograd.grad(family.log_prob(value, *family.canonical({**made, key: leaf})).sum(), leaf)
        h = 1e-5
        ends = [family.log_prob(value, *family.canonical({**made, key: number + s * h})).sum() for s in (1, -1)]
        assert grad.item() == pytest.approx(((ends[0] - ends[1]) / (2 * h)).item(), rel=1e-6, abs=1e-8)


def test_the_variance_of_a_negative_binomial_by_mean_and_dispersion():
    """mean + dispersion · mean²: the dispersion is that of regression, 1 / total."""
    drawn = sample("NegativeBinomial", 200_000, mean=4.0, dispersion=0.5)
    assert drawn.mean() == pytest.approx(4.0, rel=0.02)
    assert drawn.var() == pytest.approx(4.0 + 0.5 * 16.0, rel=0.05)


def test_multinomial_with_an_impossible_category():
    found = log_prob("Multinomial", [[3, 0, 1], [2, 1, 1], [3, 0, 2]], total=4.0, probs=[0.5, 0.0, 0.5])
    assert found[0] == pytest.approx(math.log(4 * 0.5**4), rel=1e-12)
    assert found[1] < -300 and found[2] == -math.inf
    drawn = RUNTIME_FAMILIES["Multinomial"].fresh_noise(
        (500, 3), None, params("Multinomial", total=4.0, probs=[0.5, 0.0, 0.5])
    )
    assert (drawn.sum(-1) == 4).all() and (drawn[:, 1] == 0).all()


def test_bounds_of_a_discrete_uniform_are_whole():
    assert math.isnan(log_prob("DiscreteUniform", 2.0, low=0.5, high=4.0))


def test_a_random_walk_is_a_normal_of_sums():
    size = 5
    reach = np.minimum.outer(np.arange(1, size + 1), np.arange(1, size + 1))
    reference = st.multivariate_normal(1.5 + 0.2 * np.arange(size), 0.49 * reach)
    value = np.random.default_rng(0).normal(size=(4, size))
    found = log_prob("GaussianRandomWalk", value, scale=0.7, drift=0.2, start=1.5)
    assert np.allclose(found, reference.logpdf(value), rtol=1e-10)
    family = RUNTIME_FAMILIES["GaussianRandomWalk"]
    made = params("GaussianRandomWalk", scale=0.7, drift=0.2, start=1.5)
    drawn = family.value_of(torch.randn(40_000, size, dtype=torch.float64), made).numpy()
    assert np.allclose(np.cov(drawn.T), reference.cov, atol=0.06)
    assert np.allclose(drawn.mean(0), reference.mean, atol=0.03)


@pytest.mark.parametrize("eta", [0.7, 1.0, 3.0])
def test_lkj_correlation_integrates_to_one_and_weighs_by_the_determinant(eta):
    """Over the correlations of 3 × 3 matrices, through the bijector; det(R)^(η − 1) up to a constant."""
    support = Support("correlation matrix")
    u = torch.randn(200_000, 3, dtype=torch.float64)
    value, log = constrain(u, support)
    assert torch.allclose(value.diagonal(dim1=-2, dim2=-1), torch.ones(len(u), 3, dtype=torch.float64))
    density = RUNTIME_FAMILIES["LKJCorrelation"].log_prob(value, t(eta, dtype=torch.float64))
    weights = (density + log - torch.distributions.Normal(0.0, 1.0).log_prob(u).sum(-1)).exp()
    assert weights.mean().item() == pytest.approx(1.0, abs=5 * weights.std().item() / math.sqrt(len(u)))
    rest = density - (eta - 1.0) * torch.linalg.slogdet(value).logabsdet
    assert torch.allclose(rest, rest[0].expand_as(rest), atol=1e-8)


def test_the_bijector_onto_correlation_matrices_has_the_jacobian_of_its_entries():
    u = torch.randn(1, 6, dtype=torch.float64)
    rows, columns = torch.tril_indices(4, 4, -1)
    support = Support("correlation matrix")
    jacobian = torch.autograd.functional.jacobian(lambda v: constrain(v[None], support)[0][0, rows, columns], u[0])
    assert constrain(u, support)[1].item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), rel=1e-9)


EDGES = t([[0, 1], [1, 2], [3, 2], [3, 0], [3, 4]])
AREAS = """object Area : FinSet 5
program p : Area -> Real 1
    sample s <- HalfNormal(1.0)
    sample phi : Area <- ICAR(edges)
    let eta = s * phi
    observe y : Area <- Poisson(log_rate=eta)
    return s
export p
"""


def laplacian() -> np.ndarray:
    made = np.zeros((5, 5))
    for i, j in EDGES.tolist():
        made[[i, j], [i, j]] += 1
        made[[i, j], [j, i]] -= 1
    return made


def test_icar_is_the_normal_with_the_laplacian_for_its_precision():
    """Up to a constant, on vectors that sum to 0; draws have its pseudo-inverse for their covariance."""
    family = RUNTIME_FAMILIES["ICAR"]
    value, _ = constrain(torch.randn(6, 4, dtype=torch.float64), Support("zero sum"))
    assert torch.allclose(value.sum(-1), torch.zeros(6, dtype=torch.float64), atol=1e-12)
    reference = st.multivariate_normal(np.zeros(5), np.linalg.pinv(laplacian()), allow_singular=True)
    gap = family.log_prob(value, EDGES).numpy() - reference.logpdf(value.numpy())
    assert np.allclose(gap, gap[0], atol=1e-9)
    assert family.log_prob(value + 0.1, EDGES).max().item() == -math.inf
    drawn = family.value_of(torch.randn(60_000, 5, dtype=torch.float64), (EDGES,)).numpy()
    assert np.allclose(np.cov(drawn.T), np.linalg.pinv(laplacian()), atol=0.02)


def test_the_bijector_onto_vectors_that_sum_to_zero_is_an_isometry():
    u = torch.randn(1, 6, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v: constrain(v[None], Support("zero sum"))[0][0], u[0])
    assert torch.allclose(jacobian.mT @ jacobian, torch.eye(6, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([[0, 1], [1, 5]], "names area 5, and there are areas 0 … 4"),
        ([[0, 1], [1, 1]], "area 1 as a neighbour of itself"),
        ([[0, 1], [1, 2], [2, 3], [3, 4], [1, 0]], "a pair twice"),
        ([[0, 1], [2, 3], [3, 4]], "leaves 2 parts"),
        ([[0, 1, 2]], "two columns"),
    ],
)
def test_edges_that_are_no_map(edges, words):
    with pytest.raises(InputProblem, match=words):
        RUNTIME_FAMILIES["ICAR"].log_prob(torch.zeros(5), t(edges))


def test_icar_in_a_program():
    model = dsl.loads(AREAS).p
    phi = torch.tensor([0.5, -0.2, 0.1, -0.6, 0.2])
    y = torch.tensor([2, 0, 1, 0, 3])
    run = trace(model, None, {"edges": EDGES, "s": t(0.8), "phi": phi, "y": y})
    assert run.sites["phi"].log_prob.item() == pytest.approx(-0.5 * float(phi @ laplacian() @ phi.numpy()), rel=1e-5)
    expected = st.poisson(np.exp(0.8 * phi.numpy())).logpmf(y.numpy()).sum()
    assert run.sites["y"].log_prob.sum().item() == pytest.approx(expected, rel=1e-5)
    drawn = Predictive(model, num_samples=50)(None, {"edges": EDGES})
    assert drawn["phi"].shape == (50, 5) and drawn["phi"].sum(-1).abs().max() < 1e-4


@pytest.mark.statistical
def test_nuts_moves_an_icar_on_vectors_that_sum_to_zero():
    """With normal observations the posterior is a Normal: (L + I / σ²)⁻¹ on the same vectors."""
    text = AREAS.replace("let eta = s * phi", "let eta = phi").replace("Poisson(log_rate=eta)", "Normal(eta, 0.7)")
    y = np.array([1.0, 0.2, -0.5, 0.4, -1.5])
    basis = np.linalg.svd(np.eye(5) - 0.2)[0][:, :4]
    precision = basis.T @ (laplacian() + np.eye(5) / 0.49) @ basis
    mean = basis @ np.linalg.solve(precision, basis.T @ y / 0.49)
    spread = np.sqrt(np.diag(basis @ np.linalg.inv(precision) @ basis.T))
    data = {"edges": EDGES, "y": torch.as_tensor(y)}
    result = MCMC(NUTSKernel(), num_warmup=300, num_samples=1500, num_chains=2, seed=2).run(
        dsl.loads(text).p, None, data
    )
    phi = result.samples["phi"].flatten(0, 1).double()
    assert phi.sum(-1).abs().max() < 1e-6
    assert np.abs(phi.mean(0).numpy() - mean).max() < 5 * spread.max() / math.sqrt(600)
    assert np.allclose(phi.std(0).numpy(), spread, rtol=0.12)


FLAT = """object Row : FinSet 20
object Side : FinSet 2
program p : Row -> Real 1
    sample m : Side <- Flat()
    let mean = m[side]
    observe y : Row <- Normal(mean, 2.0)
    return m
export p
"""


def flat_data() -> dict[str, torch.Tensor]:
    generator = np.random.default_rng(4)
    side = np.arange(20) % 2
    return {
        "side": torch.as_tensor(side),
        "y": torch.as_tensor(generator.normal([-30.0, 40.0], 2.0, (10, 2)).flatten()),
    }


def test_a_flat_prior_adds_nothing_and_is_refused_where_it_would_be_drawn():
    model = dsl.loads(FLAT).p
    data = flat_data()
    assert trace(model, None, {**data, "m": t([1.0, 2.0])}).sites["m"].log_prob.item() == 0.0
    with pytest.raises(InputProblem, match="Flat has a density everywhere and no draws") as raised:
        model.rsample(None, observations={"side": data["side"]})
    assert raised.value.site == "m"
    with pytest.raises(NoDensity, match="the prior of `m` is improper, so AutoNormalGuide has no bound to fit"):
        AutoNormalGuide(model, observed_names={"y"})
    guide = AutoPriorGuide(model, observed_names={"y"})
    with pytest.raises(InputProblem, match="no draws"):
        Predictive(model, guide, num_samples=3)(None, data)


@pytest.mark.statistical
def test_nuts_under_a_flat_prior_finds_the_means():
    data = flat_data()
    result = MCMC(NUTSKernel(), num_warmup=300, num_samples=800, num_chains=2, seed=1).run(
        dsl.loads(FLAT).p, None, data
    )
    means = result.samples["m"].flatten(0, 1)
    for side in (0, 1):
        y = data["y"][side::2]
        assert means[:, side].mean().item() == pytest.approx(y.mean().item(), abs=0.12)
        assert means[:, side].std().item() == pytest.approx(2.0 / math.sqrt(10), rel=0.12)


@pytest.mark.parametrize(
    "draw",
    [
        "Poisson(exp(m))",
        "Poisson(log_rate=m)",
        "NegativeBinomial(2.0, logits=m)",
        "NegativeBinomial(mean=exp(m), dispersion=2.0)",
        "Binomial(exp(m), 0.5)",
        "BetaBinomial(exp(m), 2.0, 2.0)",
        "Geometric(logits=-m)",
        "ZeroInflatedPoisson(0.5, exp(m))",
        "ZeroInflatedNegativeBinomial(0.5, 2.0, logits=m)",
        "DiscreteUniform(0, exp(m))",
    ],
)
def test_a4_a_count_beyond_64_bits_is_an_error_at_the_draw(draw: str) -> None:
    """It was −9223372036854775808 in the table of `qvr sample --prior`."""
    text = "object Row : FinSet 20\nprogram p : Row -> Row\n    sample m <- Normal(MEAN, 0.001)\n"
    text += f"    observe y : Row <- {draw}\n    return m\n"
    torch.manual_seed(0)
    with pytest.raises(CountOverflow, match="site `y` draws a count of") as caught:
        Predictive(dsl.loads(text.replace("MEAN", "50.0")).morphism, num_samples=2)(None, {})
    assert caught.value.site == "y"
    small = Predictive(dsl.loads(text.replace("MEAN", "3.0")).morphism, num_samples=2)(None, {})["y"]
    assert small.dtype == torch.int64 and int(small.min()) >= 0


def test_a4_of_a_chain_too() -> None:
    text = """\
object Time : FinSet 30
program p : Time -> Time
    sample a <- Normal(9.0, 0.001)
    observe y[t : Time] <- Poisson(1.0 + exp(a) * y[t - 1]) from Poisson(5.0)
    return a
"""
    with pytest.raises(CountOverflow):
        Predictive(dsl.loads(text).morphism, num_samples=2)(None, {})


def test_a_binomial_that_cannot_succeed_or_fail_has_its_certain_count() -> None:
    """A logit of ±∞ once made the certain count no number."""
    binomial = RUNTIME_FAMILIES["Binomial"]
    total, count = torch.tensor(4.0).double(), torch.arange(5.0).double()
    low, high = (binomial.log_prob(count, total, torch.tensor(x).double()) for x in (-math.inf, math.inf))
    assert low.tolist() == [0.0] + [-math.inf] * 4
    assert high.tolist() == [-math.inf] * 4 + [0.0]
    # at even odds both sides have half of the slope
    logits = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(binomial.log_prob(count, total, logits).sum(), logits)
    assert slope.tolist() == [-2.0, -1.0, 0.0, 1.0, 2.0]
