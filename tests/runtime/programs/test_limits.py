"""Censored and truncated observations: densities against scipy, by quadrature and by enumeration; draws; inference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.values.errors import InputProblem, MissingData

pytestmark = pytest.mark.usefixtures("double_precision")


def terms(draw: str, options: str, y, plate: str = "N", **data) -> float:
    """The log density of `observe y <- draw [options]`, on its own."""
    n = len(y)
    text = f"""object {plate} : FinSet {n}
program p : {plate} -> Real 1
    sample free <- Normal(0.0, 1.0)
    observe y : {plate} <- {draw} [{options}]
    return free
export p
"""
    model = dsl.loads(text).p
    values = {name: torch.as_tensor(value) for name, value in {"y": y, **data}.items()}
    found = trace(model, None, {**values, "free": torch.zeros(())})
    return float(found.sites["y"].log_prob.sum())


Y = np.array([0.3, 1.2, 2.5, 4.0])
C = np.array([1, 0, 1, 0])
WEIBULL = st.weibull_min(1.4, scale=2.0)


def test_right_censored_survival_times():
    expected = np.where(C == 1, WEIBULL.logsf(Y), WEIBULL.logpdf(Y)).sum()
    assert terms("Weibull(2.0, 1.4)", "right_censored=c", Y, c=C) == pytest.approx(expected, rel=1e-10)
    assert terms("Weibull(2.0, 1.4)", "right_censored=c", Y, c=C == 1) == pytest.approx(expected, rel=1e-10)


def test_left_censored_below_a_limit_of_detection():
    base = st.lognorm(0.8, scale=math.exp(0.4))
    expected = np.where(C == 1, base.logcdf(Y), base.logpdf(Y)).sum()
    assert terms("LogNormal(0.4, 0.8)", "left_censored=c", Y, c=C) == pytest.approx(expected, rel=1e-10)


def test_both_sides_may_be_censored_and_one_element_may_not():
    low, high = np.array([1, 0, 0, 0]), np.array([0, 0, 0, 1])
    base = st.norm(1.0, 2.0)
    expected = base.logcdf(Y[0]) + base.logpdf(Y[1:3]).sum() + base.logsf(Y[3])
    found = terms("Normal(1.0, 2.0)", "left_censored=a, right_censored=b", Y, a=low, b=high)
    assert found == pytest.approx(expected, rel=1e-10)
    with pytest.raises(InputProblem, match="not both of one element"):
        terms("Normal(1.0, 2.0)", "left_censored=a, right_censored=b", Y, a=low, b=low)


def test_intervals_exact_values_and_open_ends():
    end = np.array([1.3, 1.2, math.inf, 4.0 + 1e-11])
    base = st.gamma(1.5, scale=2.0)
    expected = math.log(base.cdf(1.3) - base.cdf(0.3)) + base.logpdf(1.2) + base.logsf(2.5)
    expected += base.logpdf(4.0) + math.log(end[3] - 4.0)
    assert terms("Gamma(1.5, 0.5)", "interval=b", Y, b=end) == pytest.approx(expected, rel=1e-8)
    with pytest.raises(InputProblem, match=r"`interval`.* found 1 for the value 2.5"):
        terms("Gamma(1.5, 0.5)", "interval=b", Y, b=np.array([1.3, 1.2, 1.0, 5.0]))


def test_a_flag_is_zero_or_one():
    with pytest.raises(InputProblem, match=r"0 or 1 in `right_censored`.* 2"):
        terms("Normal(0.0, 1.0)", "right_censored=c", Y, c=np.array([0, 1, 2, 1]))


@pytest.mark.parametrize(
    ("draw", "base", "low", "high"),
    [
        ("Normal(0.5, 1.5)", st.norm(0.5, 1.5), 0.2, 4.5),
        ("Normal(-14.0, 1.5)", st.norm(-14.0, 1.5), 0.2, None),
        ("Gamma(2.5, 0.7)", st.gamma(2.5, scale=1 / 0.7), None, 5.0),
        ("StudentT(3.0, 0.5, 1.5)", st.t(3.0, 0.5, 1.5), 0.25, 6.0),
    ],
)
def test_truncation_normalises(draw, base, low, high):
    bounds = [] if low is None else [f"truncate_lower={low}"]
    bounds += [] if high is None else [f"truncate_upper={high}"]
    start, end = (-math.inf if low is None else low), (math.inf if high is None else high)
    whole = scipy.integrate.quad(base.pdf, start, end, epsabs=0, epsrel=1e-11)[0]
    found = terms(draw, ", ".join(bounds), Y)
    assert found == pytest.approx((base.logpdf(Y) - math.log(whole)).sum(), rel=1e-8)


def test_truncated_densities_add_up_to_one():
    """By quadrature, and for counts by enumeration."""

    def density(x: float) -> float:
        return math.exp(terms("StudentT(3.0, 0.5, 1.5)", "truncate_lower=-1.0, truncate_upper=2.0", [x]))

    nodes, weights = np.polynomial.legendre.leggauss(20)
    assert sum(w * density(0.5 + 1.5 * x) * 1.5 for x, w in zip(nodes, weights, strict=True)) == pytest.approx(1.0)
    counts = [math.exp(terms("Poisson(2.5)", "truncate_lower=1, truncate_upper=4", [k])) for k in range(8)]
    assert sum(counts) == pytest.approx(1.0, rel=1e-12) and counts[0] == counts[5] == 0.0
    assert counts[1] / counts[2] == pytest.approx(st.poisson(2.5).pmf(1) / st.poisson(2.5).pmf(2))


def test_values_outside_the_bounds_are_impossible():
    assert terms("Normal(0.0, 1.0)", "truncate_lower=1.0", Y) == -math.inf
    assert terms("Normal(0.0, 1.0)", "truncate_upper=3.0", Y) == -math.inf
    assert terms("Poisson(3.0)", "truncate_lower=1, right_censored=c", [0, 2], c=[1, 0]) == -math.inf


def test_counts_include_their_ends():
    """P(T ≥ t), P(T ≤ t), P(t < T ≤ b), each also truncated, by sums of probabilities."""
    pmf = st.nbinom(2.5, 0.4).pmf(np.arange(400))
    y, c = np.array([3, 0, 5]), np.array([1, 1, 0])
    draw = "NegativeBinomial(2.5, probs=0.6)"
    expected = math.log(pmf[3:].sum()) + math.log(pmf.sum()) + math.log(pmf[5])
    assert terms(draw, "right_censored=c", y, c=c) == pytest.approx(expected, rel=1e-9)
    expected = math.log(pmf[:4].sum()) + math.log(pmf[0]) + math.log(pmf[5])
    assert terms(draw, "left_censored=c", y, c=c) == pytest.approx(expected, rel=1e-9)
    expected = math.log(pmf[4:8].sum()) + math.log(pmf[0]) + math.log(pmf[6:].sum())
    assert terms(draw, "interval=b", y, b=np.array([7.0, 0.0, math.inf])) == pytest.approx(expected, rel=1e-9)
    y, c, whole = np.array([3, 1, 5]), np.array([1, 0, 1]), math.log(pmf[1:10].sum())
    expected = math.log(pmf[3:10].sum()) + math.log(pmf[1]) + math.log(pmf[5:10].sum()) - 3 * whole
    found = terms(draw, "right_censored=c, truncate_lower=1, truncate_upper=9", y, c=c)
    assert found == pytest.approx(expected, rel=1e-9)


def test_left_truncation_with_right_censoring():
    """Delayed entry: who is seen has lived to the entry, and whoever is censored lives on."""
    entry = np.array([0.1, 0.5, 1.0, 0.0])
    expected = (np.where(C == 1, WEIBULL.logsf(Y), WEIBULL.logpdf(Y)) - WEIBULL.logsf(entry)).sum()
    found = terms("Weibull(2.0, 1.4)", "right_censored=c, truncate_lower=a", Y, c=C, a=entry)
    assert found == pytest.approx(expected, rel=1e-10)


def test_ten_standard_deviations_away():
    found = terms("Normal(0.0, 1.0)", "right_censored=c", np.array([10.0, -10.0]), c=np.array([1, 1]))
    assert found == pytest.approx(st.norm.logsf(10.0) + st.norm.logsf(-10.0), rel=1e-10)


TOBIT = """object Group : FinSet 3
object Row : FinSet 40
program p : Row -> Real 1
    sample m : Group <- Normal(0.0, 3.0)
    sample s <- HalfNormal(2.0)
    observe y : Row <- Normal(m, s) [via=g, weight=w, mask=k, left_censored=c, truncate_upper=top]
    return m
export p
"""


def tobit():
    generator = np.random.default_rng(3)
    g = generator.integers(0, 3, 40)
    y = np.clip(np.array([-0.5, 0.5, 1.5])[g] + generator.normal(0, 1, 40), 0.0, 2.8)
    data = {"y": y, "g": g, "w": generator.uniform(0.5, 2, 40), "k": generator.uniform(size=40) < 0.8}
    data |= {"c": y == 0.0, "top": np.full(40, 3.0)}
    return {name: torch.as_tensor(value) for name, value in data.items()}


def log_joint(data, m, s):
    loc = m[data["g"].numpy()]
    y, top = data["y"].numpy(), data["top"].numpy()
    base = st.norm(loc, s)
    each = np.where(data["c"].numpy(), base.logcdf(y), base.logpdf(y)) - base.logcdf(top)
    observed = (data["w"].numpy() * np.where(data["k"].numpy(), each, 0.0)).sum()
    return observed + st.norm(0, 3).logpdf(m).sum() + st.halfnorm(scale=2).logpdf(s)


def test_with_groups_weights_and_masks():
    data, model = tobit(), dsl.loads(TOBIT).p
    m, s = np.array([-0.3, 0.4, 1.2]), 0.9
    found = trace(model, None, {**data, "m": torch.as_tensor(m), "s": torch.tensor(s)}).log_joint
    assert found.item() == pytest.approx(log_joint(data, m, s), rel=1e-10)


@pytest.mark.statistical
def test_nuts_and_svi_agree_with_the_posterior_on_a_grid():
    text = """object Row : FinSet 30
program p : Row -> Real 1
    sample r <- Gamma(2.0, 1.0)
    observe t : Row <- Exponential(r) [right_censored=c]
    return r
export p
"""
    generator = np.random.default_rng(0)
    t = generator.exponential(1 / 1.5, 30)
    c = t > 0.8
    t = np.minimum(t, 0.8)
    data = {"t": torch.as_tensor(t), "c": torch.as_tensor(c)}
    posterior = st.gamma(2.0 + (~c).sum(), scale=1 / (1.0 + t.sum()))
    model = dsl.loads(text).p
    result = MCMC(NUTSKernel(), num_warmup=300, num_samples=1500, num_chains=2, seed=1).run(model, None, data)
    draws = result.samples["r"].flatten()
    assert draws.mean().item() == pytest.approx(posterior.mean(), abs=4 * posterior.std() / math.sqrt(400))
    assert draws.std().item() == pytest.approx(posterior.std(), rel=0.15)
    guide = AutoNormalGuide(model, observed_names={"t"})
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO(num_particles=8))
    for _ in range(600):
        svi.step(None, data)
    drawn = Predictive(model, guide, num_samples=4000, return_sites=["r"])(None, data)["r"]
    assert drawn.mean().item() == pytest.approx(posterior.mean(), rel=0.08)


def test_draws_keep_to_the_bounds_and_follow_the_distribution():
    text = """object Row : FinSet 3
program p : Row -> Real 1
    sample r <- Gamma(200.0, 100.0)
    observe y : Row <- Gamma(r, 1.0) [truncate_lower=a, truncate_upper=5.0]
    observe n : Row <- Poisson(r) [truncate_lower=1]
    observe z : Row <- Normal(r, 1.0) [right_censored=c]
    return r
export p
"""
    model = dsl.loads(text).p
    data = {"a": torch.tensor([0.0, 1.0, 4.0]), "c": torch.tensor([1, 0, 1])}
    fixed = {"r": torch.full((5000,), 2.0)}
    drawn = Predictive(model, posterior_samples=fixed)(None, data, generator=torch.Generator().manual_seed(1))
    base = st.gamma(2.0)
    for column, low in enumerate((0.0, 1.0, 4.0)):
        sample = drawn["y"][..., column].flatten().numpy()
        mass = base.cdf(5.0) - base.cdf(low)
        assert st.kstest(sample, lambda x, low=low, mass=mass: (base.cdf(x) - base.cdf(low)) / mass).pvalue > 1e-3
        assert low <= sample.min() and sample.max() <= 5.0
    counts = drawn["n"].flatten().numpy()
    assert counts.min() == 1
    assert (counts == 1).mean() == pytest.approx(st.poisson(2.0).pmf(1) / st.poisson(2.0).sf(0), abs=0.015)
    # a censored value is drawn as it would be seen in full
    assert st.kstest(drawn["z"].flatten().numpy(), st.norm(2.0, 1.0).cdf).pvalue > 1e-3


LIFETIMES = """
object Row : FinSet _
program p : Row -> Row
    data x : Row
    data {name} : Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m + x, 1.0) [{option}]
    return m
"""


def lifetimes(option: str, name: str, data):
    """The program with these data, and two draws of what it observes."""
    model = dsl.loads(LIFETIMES.format(option=option, name=name), data=data).programs["p"]
    torch.manual_seed(0)
    return model, Predictive(model, posterior_samples={"m": torch.zeros(2)})


@pytest.mark.parametrize("option", ["right_censored=c", "left_censored=c", "interval=c"])
def test_draws_need_no_data_that_say_what_was_censored(option):
    x = torch.tensor([1.0, 20.0])
    model, predictive = lifetimes(option, "c", {"x": x})
    found = predictive()["y"]
    assert found.shape == (2, 2)
    _, whole = lifetimes(option, "c", {"x": x, "c": torch.full((2,), 99.0) if "interval" in option else x > 2})
    assert torch.equal(whole()["y"], found)
    with pytest.raises(MissingData, match="needs data `c`"):  # a density does need them
        model.log_joint(None, {"m": torch.zeros(()), "y": x})


def test_draws_need_the_bounds_of_a_truncation():
    x = torch.tensor([1.0, 20.0])
    with pytest.raises(MissingData, match="needs data `low`"):
        lifetimes("truncate_lower=low", "low", {"x": x})[1]()


def test_bounds_with_nothing_between_them_cannot_be_drawn_from():
    text = """object Row : FinSet 2
program p : Row -> Real 1
    sample r <- Normal(0.0, 1.0)
    observe y : Row <- Beta(2.0, 2.0) [truncate_lower=a]
    return r
export p
"""
    with pytest.raises(InputProblem, match="bounds with something of Beta between them, found none for 1 draws"):
        dsl.loads(text).p.rsample(None, observations={"a": torch.tensor([0.5, 1.5])})


def test_a_bound_that_is_a_latent_has_a_gradient():
    """A truncation point that is not known: the density falls in it as the mass above it does."""
    text = """object Row : FinSet 4
program p : Row -> Real 1
    sample a <- Uniform(-2.0, 0.3)
    observe y : Row <- Normal(0.0, 1.0) [truncate_lower=a]
    return a
export p
"""
    model = dsl.loads(text).p
    a = torch.tensor(-0.5, requires_grad=True)
    found = trace(model, None, {"a": a, "y": torch.as_tensor(Y)}).sites["y"].log_prob.sum()
    (slope,) = torch.autograd.grad(found, a)
    assert slope.item() == pytest.approx(4 * st.norm.pdf(-0.5) / st.norm.sf(-0.5), rel=1e-9)


@pytest.mark.parametrize("end", [math.inf, 0.99])
def test_what_overflows_and_does_not_count_leaves_the_slope(end):
    """P(Y > −0.12) of a Gumbel whose scale is small is 1, though its density at −0.12 is e^(−e^874)."""
    text = """object Row : FinSet 1
program p : Row -> Real 1
    sample scale <- HalfNormal(1.0)
    observe y : Row <- Gumbel(1.94, scale) [interval=b]
    return scale
export p
"""
    scale = torch.tensor(20.6**-2, dtype=torch.float64, requires_grad=True)
    values = {"scale": scale, "y": torch.tensor([-0.12]), "b": torch.tensor([end], dtype=torch.float64)}
    found = trace(dsl.loads(text).p, None, values).sites["y"].log_prob.sum()
    (slope,) = torch.autograd.grad(found, scale)
    with np.errstate(all="ignore"):
        expected = 0.0 if end == math.inf else -math.exp(0.95 / scale.item())
    assert found.item() == pytest.approx(expected, rel=1e-9)
    assert slope.item() == pytest.approx(0.0 if end == math.inf else -expected * 0.95 / scale.item() ** 2, rel=1e-9)


def test_inside_marginalize():
    """A cure model: a part never dies, the others' times are Weibull; everyone who has not died is censored."""
    text = """object Row : FinSet 4
object State : FinSet 2
program p : Row -> Real 1
    sample w <- Beta(1.0, 1.0)
    marginalize k : Row <- Bernoulli(w)
        let scale = 2.0 + 1000000.0 * k
        observe t : Row <- Weibull(scale, 1.4) [right_censored=c]
    return w
export p
"""
    model = dsl.loads(text).p
    values = {"t": torch.as_tensor(Y), "c": torch.as_tensor(C), "w": torch.tensor(0.3)}
    found = trace(model, None, values).sites["k"].log_prob.sum().item()
    far = st.weibull_min(1.4, scale=1e6 + 2)
    each = [np.where(C == 1, base.sf(Y), base.pdf(Y)) for base in (WEIBULL, far)]
    assert found == pytest.approx(np.log(0.7 * each[0] + 0.3 * each[1]).sum(), rel=1e-9)
