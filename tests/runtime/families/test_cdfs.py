"""Probabilities of tails and intervals of every family with a cdf, and their gradients, against scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats as st
import torch

from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.semantics.language.families import FAMILIES

WITHOUT_CDF = {"Horseshoe", "VonMises", "Categorical", "Flat"}
LOG_SCALE = [1e-23, 1e-12, 1e-6, 0.01, 0.2, 0.5]
"""Probabilities of a tail at which families are compared: 1e-23 is 10 standard deviations of a Normal."""


@dataclass
class Frozen:
    """What a comparison needs where scipy has no such distribution."""

    cdf: Callable[..., object]
    sf: Callable[..., object]
    points: list[float]


def logistic_normal(loc, scale):
    base = st.norm(loc, scale)
    quantiles = [scipy.special.expit(base.ppf(p)) for p in LOG_SCALE[2:]]
    return Frozen(lambda x: base.cdf(scipy.special.logit(x)), lambda x: base.sf(scipy.special.logit(x)), quantiles)


def kumaraswamy(a, b):
    return Frozen(lambda x: -np.expm1(b * np.log1p(-(x**a))), lambda x: (1 - x**a) ** b, [1e-4, 0.1, 0.5, 0.9, 0.999])


def continuous_bernoulli(probs):
    rate = scipy.special.logit(probs)
    if abs(rate) < 1e-12:
        return st.uniform(0, 1)
    total = np.expm1(rate)
    return Frozen(
        lambda x: np.expm1(rate * x) / total, lambda x: np.exp(rate * x) * np.expm1(rate * (1 - x)) / total,
        [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6],
    )  # fmt: skip


def zero_inflated(gate, base, points):
    return Frozen(lambda x: gate + (1 - gate) * base.cdf(x), lambda x: (1 - gate) * base.sf(x), points)


def ordered(predictor, *cuts):
    at = np.asarray(cuts)
    return Frozen(
        lambda x: scipy.special.expit(at[int(x)] - predictor),
        lambda x: scipy.special.expit(predictor - at[int(x)]),
        [0.0, 1.0, 2.0],
    )


def mixture(weights, locs, scales):
    parts = [(w, st.norm(m, s)) for w, m, s in zip(weights, locs, scales, strict=True)]
    return Frozen(
        lambda x: sum(w * part.cdf(x) for w, part in parts),
        lambda x: sum(w * part.sf(x) for w, part in parts),
        [-30.0, -5.0, -1.0, 0.0, 1.5, 6.0, 30.0],
    )


def positive_part(base):
    """|X| of an X that is symmetric around 0."""
    return Frozen(
        lambda x: 2 * base.cdf(x) - 1 if x > 1e-2 else 2 * x * base.pdf(0.5 * x),
        lambda x: 2 * base.sf(x),
        [0.3, 1.0, 2.0, 4.0, 20.0, 1e4],
    )


CASES = [
    ("Normal", {"loc": 0.5, "scale": 1.5}, st.norm(0.5, 1.5)),
    ("LogNormal", {"loc": 0.5, "scale": 0.7}, st.lognorm(0.7, scale=math.exp(0.5))),
    ("LogitNormal", {"loc": 0.5, "scale": 0.7}, logistic_normal(0.5, 0.7)),
    ("HalfNormal", {"scale": 1.5}, st.halfnorm(scale=1.5)),
    ("TruncatedNormal", {"loc": 0.5, "scale": 1.5, "low": -1.0, "high": 2.0}, st.truncnorm(-1.0, 1.0, 0.5, 1.5)),
    ("TruncatedNormal", {"loc": 0.5, "scale": 1.5, "low": 8.0, "high": math.inf}, st.truncnorm(5.0, np.inf, 0.5, 1.5)),
    ("HalfCauchy", {"scale": 1.5}, st.halfcauchy(scale=1.5)),
    ("Cauchy", {"loc": 0.5, "scale": 1.5}, st.cauchy(0.5, 1.5)),
    ("StudentT", {"df": 3.5, "loc": 0.5, "scale": 1.5}, st.t(3.5, 0.5, 1.5)),
    ("StudentT", {"df": 0.7, "loc": 0.5, "scale": 1.5}, st.t(0.7, 0.5, 1.5)),
    ("StudentT", {"df": 200.0, "loc": 0.5, "scale": 1.5}, st.t(200.0, 0.5, 1.5)),
    ("HalfStudentT", {"df": 3.5, "scale": 1.5}, positive_part(st.t(3.5, 0.0, 1.5))),
    ("Laplace", {"loc": 0.5, "scale": 1.5}, st.laplace(0.5, 1.5)),
    ("Gumbel", {"loc": 0.5, "scale": 1.5}, st.gumbel_r(0.5, 1.5)),
    ("Uniform", {"low": -1.0, "high": 2.0}, st.uniform(-1.0, 3.0)),
    ("Exponential", {"rate": 0.7}, st.expon(scale=1 / 0.7)),
    ("Gamma", {"concentration": 2.5, "rate": 0.7}, st.gamma(2.5, scale=1 / 0.7)),
    ("Gamma", {"concentration": 0.2, "rate": 0.7}, st.gamma(0.2, scale=1 / 0.7)),
    ("Gamma", {"concentration": 400.0, "rate": 3.0}, st.gamma(400.0, scale=1 / 3)),
    ("InverseGamma", {"concentration": 2.5, "rate": 0.7}, st.invgamma(2.5, scale=0.7)),
    ("Chi2", {"df": 3.0}, st.chi2(3.0)),
    ("Weibull", {"scale": 1.5, "concentration": 0.8}, st.weibull_min(0.8, scale=1.5)),
    ("Pareto", {"scale": 1.5, "alpha": 2.0}, st.pareto(2.0, scale=1.5)),
    ("Beta", {"a": 2.5, "b": 0.6}, st.beta(2.5, 0.6)),
    ("Beta", {"a": 300.0, "b": 40.0}, st.beta(300.0, 40.0)),
    ("Kumaraswamy", {"a": 1.5, "b": 2.5}, kumaraswamy(1.5, 2.5)),
    ("ContinuousBernoulli", {"probs": 0.9}, continuous_bernoulli(0.9)),
    ("ContinuousBernoulli", {"probs": 0.2}, continuous_bernoulli(0.2)),
    ("ContinuousBernoulli", {"probs": 0.501}, continuous_bernoulli(0.501)),
    ("MixtureNormal", {"weights": [0.3, 0.7], "locs": [-1.0, 2.0], "scales": [0.5, 1.5]},
     mixture([0.3, 0.7], [-1.0, 2.0], [0.5, 1.5])),
    ("Bernoulli", {"probs": 0.3}, st.bernoulli(0.3)),
    ("Binomial", {"total": 30.0, "probs": 0.3}, st.binom(30, 0.3)),
    ("Geometric", {"probs": 0.3}, st.geom(0.3, loc=-1)),
    ("Poisson", {"rate": 4.5}, st.poisson(4.5)),
    ("Poisson", {"rate": 300.0}, st.poisson(300.0)),
    ("NegativeBinomial", {"total": 2.5, "probs": 0.7}, st.nbinom(2.5, 0.3)),
    ("ZeroInflatedPoisson", {"gate": 0.2, "rate": 4.5},
     zero_inflated(0.2, st.poisson(4.5), [0.0, 1.0, 4.0, 9.0, 20.0, 40.0])),
    ("BetaBinomial", {"total": 12.0, "a": 1.5, "b": 2.5}, st.betabinom(12, 1.5, 2.5)),
    ("DiscreteUniform", {"low": -3.0, "high": 5.0}, st.randint(-3, 6)),
    ("ZeroInflatedNegativeBinomial", {"gate": 0.2, "total": 2.5, "probs": 0.7},
     zero_inflated(0.2, st.nbinom(2.5, 0.3), [0.0, 1.0, 4.0, 9.0, 60.0])),
    ("NegativeBinomial", {"mean": 4.0, "dispersion": 0.5}, st.nbinom(2.0, 2.0 / 6.0)),
    ("Poisson", {"log_rate": 1.5}, st.poisson(math.exp(1.5))),
    ("OrderedLogistic", {"predictor": 0.4, "cutpoints": [-1.0, 0.5, 30.0]}, ordered(0.4, -1.0, 0.5, 30.0)),
]  # fmt: skip
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)]


def arguments(given: dict[str, object]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in given.items()}


def points(reference) -> np.ndarray:
    if isinstance(reference, Frozen):
        return np.asarray(reference.points)
    low, high = reference.support()
    quantiles = np.array([*(reference.ppf(p) for p in LOG_SCALE), *(reference.isf(p) for p in LOG_SCALE)])
    inside = quantiles[(quantiles >= low) & (quantiles < high)]
    if hasattr(reference.dist, "pdf"):
        # nearer to an end than this, rounding of the value itself is seen
        for end in (low, high):
            inside = inside[np.abs(inside - end) > 1e-3 * abs(end)] if np.isfinite(end) else inside
    return np.unique(inside)


def tails(reference, x: float) -> tuple[float, float]:
    """log cdf and log survival, each from the smaller probability."""
    lower, upper = float(reference.cdf(x)), float(reference.sf(x))
    if lower < 0.5:
        return math.log(lower) if lower > 0 else -math.inf, math.log1p(-lower)
    return math.log1p(-upper), math.log(upper) if upper > 0 else -math.inf


def test_every_scalar_family_has_a_cdf_but_for_four():
    scalar = {name for name, family in FAMILIES.items() if family.event == 0}
    assert {name for name in FAMILIES if FAMILIES[name].cdf} == scalar - WITHOUT_CDF
    assert {name for name, _, _ in CASES} == scalar - WITHOUT_CDF


@pytest.mark.parametrize(("name", "given", "reference"), CASES, ids=IDS)
def test_tails_equal_scipy_to_ten_standard_deviations(name, given, reference):
    family = RUNTIME_FAMILIES[name]
    params = family.canonical(arguments(given))
    compared = 0
    for x in points(reference):
        lower, upper = tails(reference, x)
        value = torch.tensor(x, dtype=torch.float64)
        for ours, theirs in ((family.log_cdf(value, *params), lower), (family.log_survival(value, *params), upper)):
            if math.isfinite(theirs) and abs(theirs) < 700:
                assert ours.item() == pytest.approx(theirs, rel=1e-8, abs=1e-300), (x, theirs)
                compared += 1
        assert family.cdf(value, *params).item() == pytest.approx(math.exp(lower), rel=1e-8, abs=1e-300)
    assert compared >= 2


@pytest.mark.parametrize(("name", "given", "reference"), CASES, ids=IDS)
def test_the_slope_of_a_tail_is_the_density(name, given, reference):
    """d log F / dx = f / F, of a continuous family, in both tails."""
    family = RUNTIME_FAMILIES[name]
    if FAMILIES[name].discrete:
        return
    params = family.canonical(arguments(given))
    compared = 0
    for x in points(reference):
        value = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        density = family.log_prob(value, *params).detach()
        for sign, tail in ((1.0, family.log_cdf(value, *params)), (-1.0, family.log_survival(value, *params))):
            if not -700 < tail.item() < -1e-290:
                continue
            compared += 1
            (slope,) = torch.autograd.grad(tail, value)
            assert slope.item() == pytest.approx(sign * (density - tail.detach()).exp().item(), rel=1e-7, abs=1e-300)
    assert compared


@pytest.mark.parametrize(("name", "given", "reference"), CASES, ids=IDS)
def test_gradients_in_every_parameter(name, given, reference):
    """Against central differences of fourth order, of values that equal scipy's."""
    family = RUNTIME_FAMILIES[name]
    made = arguments(given)
    x = torch.as_tensor(points(reference))

    def both(**changed: torch.Tensor) -> torch.Tensor:
        params = family.canonical({**made, **changed})
        wide = [p.unsqueeze(0) if p.ndim else p for p in params]
        return torch.stack([family.log_cdf(x, *wide), family.log_survival(x, *wide)])

    usable = torch.isfinite(both()) & (both() > -600) & (both() < -1e-200)
    assert usable.any()
    for key, value in made.items():
        for place in range(value.numel()):
            if not torch.isfinite(value).all() or (key in ("total", "low", "high") and FAMILIES[name].counts_to):
                continue

            def moved(by: float, key=key, value=value, place=place) -> torch.Tensor:
                changed = value.clone().reshape(-1)
                changed[place] += by
                return both(**{key: changed.reshape(value.shape)})

            h = 2e-4 * max(float(value.reshape(-1)[place].abs()), 0.1)
            expected = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
            leaf = value.clone().requires_grad_()
            tail = both(**{key: leaf})
            for row, column in usable.nonzero().tolist():
                (grad,) = torch.autograd.grad(tail[row, column], leaf, retain_graph=True)
                close = pytest.approx(expected[row, column].item(), rel=2e-4, abs=1e-9)
                assert grad.reshape(-1)[place].item() == close, (key, x[column].item())


@pytest.mark.parametrize(("name", "given", "reference"), CASES, ids=IDS)
def test_outside_the_support_and_at_its_ends(name, given, reference):
    family = RUNTIME_FAMILIES[name]
    made = {key: value.requires_grad_(bool(torch.isfinite(value).all())) for key, value in arguments(given).items()}
    params = family.canonical(made)
    ends = torch.tensor([-math.inf, -1e9, 1e9, math.inf], dtype=torch.float64)
    wide = [p.unsqueeze(0) if p.ndim else p for p in params]
    lower, upper = family.log_cdf(ends, *wide), family.log_survival(ends, *wide)
    assert lower[0] == upper[3] == -math.inf and upper[0] == lower[3] == 0.0
    assert lower[1] < -15.0 and upper[2] < -5.0
    total = torch.where(torch.isfinite(lower), lower, 0.0).sum() + torch.where(torch.isfinite(upper), upper, 0.0).sum()
    for grad in torch.autograd.grad(total, [p for p in made.values() if p.requires_grad], allow_unused=True):
        assert grad is None or torch.isfinite(grad).all()


def test_intervals():
    """In the middle, in a tail, around everything, empty, and so narrow that the density is all that is left."""
    normal = RUNTIME_FAMILIES["Normal"]
    params = normal.canonical(arguments({"loc": 0.5, "scale": 1.5}))
    reference = st.norm(0.5, 1.5)

    def log_mass(low: float, high: float) -> float:
        return normal.log_between(*(torch.tensor(end, dtype=torch.float64) for end in (low, high)), *params).item()

    assert log_mass(0.0, 1.0) == pytest.approx(math.log(reference.cdf(1) - reference.cdf(0)), rel=1e-10)
    assert log_mass(15.5, 17.0) == pytest.approx(math.log(reference.sf(15.5) - reference.sf(17)), rel=1e-10)
    assert log_mass(-17.0, -15.5) == pytest.approx(math.log(reference.cdf(-15.5) - reference.cdf(-17)), rel=1e-10)
    assert log_mass(-math.inf, math.inf) == 0.0
    assert log_mass(2.0, math.inf) == pytest.approx(reference.logsf(2.0), rel=1e-12)
    assert log_mass(1.0, 1.0) == log_mass(2.0, 1.0) == -math.inf
    assert log_mass(1.0, 1.0 + 1e-12) == pytest.approx(reference.logpdf(1.0) + math.log(1.0 + 1e-12 - 1.0), rel=1e-8)
    poisson = RUNTIME_FAMILIES["Poisson"]
    rate = poisson.canonical({"rate": torch.tensor(4.5, dtype=torch.float64)})
    given = poisson.log_between(torch.tensor(2.0), torch.tensor(5.0), *rate)
    assert given.item() == pytest.approx(math.log(st.poisson(4.5).pmf([3, 4, 5]).sum()), rel=1e-10)


def test_single_precision_gives_what_double_does():
    gamma = RUNTIME_FAMILIES["Gamma"]
    tail = gamma.log_survival(*(torch.tensor(value, dtype=torch.float32) for value in (300.0, 2.5, 0.7)))
    assert tail.dtype == torch.float32 and tail.item() == pytest.approx(
        st.gamma(2.5, scale=1 / 0.7).logsf(300), rel=1e-6
    )


def test_extreme_shapes():
    """A million, and a thousandth."""
    gamma, beta = RUNTIME_FAMILIES["Gamma"], RUNTIME_FAMILIES["Beta"]
    for a in (1e-3, 1e6):
        x = scipy.special.gammainccinv(a, 1e-9)
        made = gamma.log_survival(*(torch.tensor(v, dtype=torch.float64) for v in (x, a, 1.0))).item()
        assert made == pytest.approx(math.log(scipy.special.gammaincc(a, x)), rel=1e-7)
    for a, b in ((1e-3, 50.0), (4000.0, 9000.0)):
        x = scipy.special.betainccinv(a, b, 1e-6)
        made = beta.log_survival(*(torch.tensor(v, dtype=torch.float64) for v in (x, a, b))).item()
        assert made == pytest.approx(math.log(scipy.special.betaincc(a, b, x)), rel=1e-7)


def test_the_upper_tail_of_a_beta_that_is_nearly_all_at_zero():
    """P(X > x) is a · ∫ of (1 − t)^(b − 1) / t from x on, for a → 0 (mpmath, 50 digits)."""
    beta = RUNTIME_FAMILIES["Beta"]
    for a, b, x, rel in ((1e-4, 0.76, 0.03, 1e-11), (1e-6, 3.0, 0.03, 1e-9), (1e-8, 0.76, 0.3, 1e-8)):
        tail = scipy.integrate.quad(lambda t, b=b: (1.0 - t) ** (b - 1.0) / t, x, 1.0, epsabs=0, epsrel=1e-12)[0]
        made = beta.log_survival(*(torch.tensor(v, dtype=torch.float64) for v in (x, a, b))).item()
        assert made == pytest.approx(math.log(a * tail), rel=max(rel, 10 * a))


def test_between_two_components_of_a_mixture():
    """Where both tails are one half, their difference has no digits of what lies between."""

    def given(*values):
        return [torch.tensor(value, dtype=torch.float64) for value in values]

    mixture, zeros = RUNTIME_FAMILIES["MixtureNormal"], RUNTIME_FAMILIES["ZeroInflatedPoisson"]
    made = mixture.log_between(*given(1.0, 3.0, [0.0, 0.0], [-6.0, 12.0], [1.0, 0.5])).item()
    left, right = st.norm(-6.0, 1.0), st.norm(12.0, 0.5)
    wanted = 0.5 * (left.sf(1.0) - left.sf(3.0)) + 0.5 * (right.cdf(3.0) - right.cdf(1.0))
    assert made == pytest.approx(math.log(wanted), rel=1e-12)
    for low, high in ((-1, 3), (0, 3), (2, 7)):
        counted = sum(0.7 * st.poisson(50.0).pmf(k) for k in range(low + 1, high + 1)) + (0.3 if low < 0 else 0.0)
        made = zeros.log_between(*given(float(low), float(high), math.log(0.3 / 0.7), 50.0, math.log(50.0))).item()
        assert made == pytest.approx(math.log(counted), rel=1e-12)


@pytest.mark.parametrize("few", [5e-11, 1e-8, 9e-6, 2e-5])
@pytest.mark.parametrize("many", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("x", [1e-8, 0.1, 0.3])
def test_a_beta_of_a_shape_near_zero_keeps_the_digits_of_what_is_left(few, many, x):
    left = scipy.special.betaincc(few, many, x)
    lower, upper = RUNTIME_FAMILIES["Beta"].tails(*(torch.tensor(part, dtype=torch.float64) for part in (x, few, many)))
    assert float(upper) == pytest.approx(math.log(left), rel=1e-9)
    assert float(lower) == pytest.approx(math.log1p(-left), rel=1e-8)
    mirrored = (torch.tensor(part, dtype=torch.float64) for part in (1.0 - x, many, few))
    lower, upper = RUNTIME_FAMILIES["Beta"].tails(*mirrored)
    assert float(lower) == pytest.approx(math.log(scipy.special.betaincc(few, many, 1.0 - (1.0 - x))), rel=1e-8)
