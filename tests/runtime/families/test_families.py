"""Every family: density and draws against torch.distributions or scipy, and heads that are legal for any raw output."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
import torch.distributions as D

from qvr_core.runtime.families import RUNTIME_FAMILIES, table
from qvr_core.runtime.families.categories import ordered_logistic_logits
from qvr_core.runtime.families.heads import Head
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family_heads import head_problem
from qvr_core.semantics.types.spaces import Constrained, Finite, Real

t = torch.tensor
A = t([0.3, 1.2, 2.5], dtype=torch.float64)
B = t([0.7, 2.0, 1.1], dtype=torch.float64)
L = t([-0.5, 0.0, 1.5], dtype=torch.float64)
P = t([0.1, 0.5, 0.93], dtype=torch.float64)
V3 = t([[0.5, 1.0, 2.5], [3.0, 0.4, 1.0]], dtype=torch.float64)
TRIL = t([[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.3, 0.2, 1.4]], dtype=torch.float64)


class Stacked:
    """Distributions of torch side by side, where torch takes one number for all."""

    def __init__(self, *parts):
        self.parts = parts
        self.batch_shape, self.event_shape = torch.Size([len(parts)]), parts[0].event_shape

    def sample(self, shape):
        return torch.stack([part.sample(shape) for part in self.parts], len(shape))

    def log_prob(self, value):
        each = value.unbind(-1 - len(self.event_shape))
        return torch.stack([part.log_prob(one) for part, one in zip(self.parts, each, strict=True)], -1)


REFERENCE = {
    "Normal": ({"loc": L, "scale": A}, D.Normal(L, A)),
    "LogNormal": ({"loc": L, "scale": A}, D.LogNormal(L, A)),
    "LogitNormal": (
        {"loc": L, "scale": A},
        D.TransformedDistribution(D.Normal(L, A), D.transforms.SigmoidTransform()),
    ),
    "HalfNormal": ({"scale": A}, D.HalfNormal(A)),
    "HalfCauchy": ({"scale": A}, D.HalfCauchy(A)),
    "Cauchy": ({"loc": L, "scale": A}, D.Cauchy(L, A)),
    "StudentT": ({"df": B + 1, "loc": L, "scale": A}, D.StudentT(B + 1, L, A)),
    "Laplace": ({"loc": L, "scale": A}, D.Laplace(L, A)),
    "Gumbel": ({"loc": L, "scale": A}, D.Gumbel(L, A)),
    "Uniform": ({"low": L, "high": L + A}, D.Uniform(L, L + A)),
    "Exponential": ({"rate": A}, D.Exponential(A)),
    "Gamma": ({"concentration": A, "rate": B}, D.Gamma(A, B)),
    "InverseGamma": ({"concentration": A, "rate": B}, D.InverseGamma(A, B)),
    "Beta": ({"a": A, "b": B}, D.Beta(A, B)),
    "Kumaraswamy": ({"a": A, "b": B}, D.Kumaraswamy(A, B)),
    "Chi2": ({"df": B}, D.Chi2(B)),
    "Weibull": ({"scale": A, "concentration": B}, D.Weibull(A, B)),
    "Pareto": ({"scale": A, "alpha": B}, D.Pareto(A, B)),
    "VonMises": ({"loc": L, "concentration": A}, D.VonMises(L, A)),
    "Bernoulli": ({"probs": P}, D.Bernoulli(P)),
    "ContinuousBernoulli": ({"probs": P}, D.ContinuousBernoulli(P)),
    "Binomial": ({"total": t([3.0, 5.0, 9.0]).double(), "probs": P}, D.Binomial(t([3.0, 5.0, 9.0]).double(), P)),
    "Categorical": ({"probs": V3 / V3.sum(-1, keepdim=True)}, D.Categorical(V3)),
    "Geometric": ({"probs": P}, D.Geometric(P)),
    "Poisson": ({"rate": B}, D.Poisson(B)),
    "NegativeBinomial": ({"total": B, "probs": P}, D.NegativeBinomial(B, P)),
    "Multinomial": (
        {"total": t([9.0, 4.0]).double(), "probs": V3 / V3.sum(-1, keepdim=True)},
        Stacked(D.Multinomial(9, V3[0]), D.Multinomial(4, V3[1])),
    ),
    "Dirichlet": ({"concentration": V3}, D.Dirichlet(V3)),
    "MultivariateNormal": ({"loc": V3, "scale_tril": TRIL}, D.MultivariateNormal(V3, scale_tril=TRIL)),
    "LowRankMultivariateNormal": (
        {"loc": V3, "cov_factor": TRIL[:, :2], "cov_diag": A},
        D.LowRankMultivariateNormal(V3, TRIL[:, :2], A),
    ),
    "Wishart": (
        {"df": t([3.5, 6.0]).double(), "scale_tril": TRIL},
        D.Wishart(t([3.5, 6.0]).double(), scale_tril=TRIL.expand(2, 3, 3)),
    ),
    "LKJCholesky": ({"concentration": t([0.7, 2.0]).double()}, D.LKJCholesky(3, t([0.7, 2.0]).double())),
}
WITHOUT = {"HalfStudentT", "TruncatedNormal", "ZeroInflatedPoisson", "OrderedLogistic", "LogisticNormal"}
WITHOUT |= {"MatrixNormal", "InverseWishart", "Horseshoe", "MixtureNormal"}
WITHOUT |= {"BetaBinomial", "ZeroInflatedNegativeBinomial", "DiscreteUniform", "GaussianRandomWalk", "LKJCorrelation"}
WITHOUT |= {"ICAR", "Flat"}


def draws(name: str, arguments: dict[str, torch.Tensor], count: int, event: tuple[int, ...]) -> torch.Tensor:
    family = RUNTIME_FAMILIES[name]
    params = family.canonical(arguments)
    batch = len(event) - family.event
    shape = (count, *event[:batch], *family.noise_event(params, event[batch:]))
    return family.value_of(family.fresh_noise(shape, None, params), params)


def test_every_family_is_covered():
    assert set(REFERENCE) | WITHOUT == set(FAMILIES) == set(RUNTIME_FAMILIES)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_log_prob_equals_torch(name):
    arguments, reference = REFERENCE[name]
    value = reference.sample((20,))
    ours = RUNTIME_FAMILIES[name].log_prob(value, *RUNTIME_FAMILIES[name].canonical(arguments))
    assert torch.allclose(ours, reference.log_prob(value), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_float32_log_prob_is_close_to_float64(name):
    arguments, reference = REFERENCE[name]
    value = reference.sample((20,))
    if FAMILIES[name].support.high == 1.0 and not FAMILIES[name].discrete:
        # nearer to 1 a float32 cannot tell the values apart
        value = value.clamp(1e-3, 1.0 - 1e-3)
    single = RUNTIME_FAMILIES[name].log_prob(
        value.float() if value.is_floating_point() else value,
        *RUNTIME_FAMILIES[name].canonical({key: argument.float() for key, argument in arguments.items()}),
    )
    assert torch.allclose(single.double(), reference.log_prob(value), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", sorted(set(REFERENCE) - {"Categorical", "Dirichlet", "Wishart", "LKJCholesky"}))
def test_draws_follow_the_distribution(name):
    """Two-sample Kolmogorov–Smirnov against torch's own sampler, per coordinate; p above 1e-4 at this seed."""
    arguments, reference = REFERENCE[name]
    theirs = reference.sample((4000,)).flatten(1)
    ours = draws(name, arguments, 4000, reference.batch_shape + reference.event_shape).flatten(1)
    assert ours.shape == theirs.shape
    for column in range(ours.shape[1]):
        assert scipy.stats.ks_2samp(ours[:, column].numpy(), theirs[:, column].numpy()).pvalue > 1e-4


def test_lkj_correlations_are_exchangeable_with_the_known_variance():
    """Each correlation is Beta(η − 1 + d/2) on (−1, 1): variance 1 / (2η + d − 1).  (torch's sampler misses this.)"""
    eta = t([0.7, 2.0]).double()
    sample = draws("LKJCholesky", {"concentration": eta}, 20000, (2, 4, 4))
    correlations = sample @ sample.mT
    expected = (1 / (2 * eta + 3)).expand(6, 2).T
    rows, columns = torch.tril_indices(4, 4, -1)
    assert torch.allclose(correlations[..., rows, columns].var(0), expected, rtol=0.05)


@pytest.mark.parametrize("name", ["Dirichlet", "Wishart"])
def test_draws_of_matrices_and_simplices_have_the_right_moments(name):
    arguments, reference = REFERENCE[name]
    theirs = reference.sample((8000,)).flatten(1)
    ours = draws(name, arguments, 8000, reference.batch_shape + reference.event_shape).flatten(1)
    for moment in (1, 2):
        gap = (ours.pow(moment).mean(0) - theirs.pow(moment).mean(0)).abs()
        spread = theirs.pow(moment).std(0) + ours.pow(moment).std(0)
        assert (gap <= 5 * spread / math.sqrt(8000) + 1e-9).all()


def test_categorical_frequencies():
    arguments, reference = REFERENCE["Categorical"]
    sample = draws("Categorical", arguments, 20000, (2,))
    frequency = torch.stack([(sample == k).double().mean(0) for k in range(3)], -1)
    assert torch.allclose(frequency, reference.probs, atol=0.015)


def test_draws_carry_gradients():
    for name, (arguments, reference) in REFERENCE.items():
        if not RUNTIME_FAMILIES[name].reparameterised:
            continue
        leaves = {key: value.clone().requires_grad_() for key, value in arguments.items()}
        draws(name, leaves, 50, reference.batch_shape + reference.event_shape).pow(2).sum().backward()
        for key, leaf in leaves.items():
            assert leaf.grad is not None and torch.isfinite(leaf.grad).all(), (name, key)


def test_half_student_t():
    value = t([0.2, 1.5]).double()
    ours = RUNTIME_FAMILIES["HalfStudentT"].log_prob(value, t(3.0).double(), t(2.0).double())
    expected = scipy.stats.t(3, scale=2).logpdf(value) + math.log(2)
    assert np.allclose(ours, expected)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (5.0, 9.0), (-math.inf, -4.0), (0.0, math.inf), (30.0, 31.0)])
def test_truncated_normal(low, high):
    family = RUNTIME_FAMILIES["TruncatedNormal"]
    params = tuple(t(v).double() for v in (0.5, 1.5, low, high))
    reference = scipy.stats.truncnorm((low - 0.5) / 1.5, (high - 0.5) / 1.5, 0.5, 1.5)
    value = torch.as_tensor(reference.rvs(50, random_state=1))
    assert np.allclose(family.log_prob(value, *params), reference.logpdf(value), rtol=1e-5)
    single = family.log_prob(value.float(), *(p.float() for p in params))
    assert np.allclose(single, reference.logpdf(value), rtol=1e-2, atol=1e-2)
    ours = family.transform(torch.rand(4000, dtype=torch.float64), *params)
    assert scipy.stats.kstest(ours.numpy(), reference.cdf).pvalue > 1e-4
    loc = t(0.5, requires_grad=True)
    family.log_prob(value.float(), loc, t(1.5), t(low), t(high)).sum().backward()
    assert torch.isfinite(loc.grad)


def test_zero_inflated_poisson():
    family = RUNTIME_FAMILIES["ZeroInflatedPoisson"]
    params = RUNTIME_FAMILIES["ZeroInflatedPoisson"].canonical({"gate": t(0.3).double(), "rate": t(2.0).double()})
    value = torch.arange(8).double()
    expected = 0.7 * scipy.stats.poisson(2.0).pmf(value) + 0.3 * (value.numpy() == 0)
    assert np.allclose(family.log_prob(value, *params).exp(), expected)
    sample = family.draw((20000,), None, *params)
    assert sample.mean().item() == pytest.approx(1.4, abs=0.05)


def test_ordered_logistic():
    family = RUNTIME_FAMILIES["OrderedLogistic"]
    predictor, cutpoints = t([0.3, -2.0, 40.0]).double(), t([-1.0, 0.5, 2.0]).double().expand(3, 3)
    each = torch.stack([family.log_prob(t([k] * 3), predictor, cutpoints) for k in range(4)], -1)
    cdf = torch.sigmoid(cutpoints - predictor[:, None])
    expected = torch.diff(cdf, dim=-1, prepend=torch.zeros(3, 1), append=torch.ones(3, 1))
    assert torch.allclose(each.exp(), expected, atol=1e-12)
    assert torch.isfinite(each).all()


def test_ordered_logistic_of_one_category_is_that_of_all():
    """In the tails too, with a gradient in every cutpoint and the predictor; only two cutpoints have one."""
    family = RUNTIME_FAMILIES["OrderedLogistic"]
    torch.manual_seed(0)
    predictor = (30.0 * torch.randn(400).double()).requires_grad_()
    cutpoints = t([-20.0, -1.0, -0.9, 0.5, 25.0]).double().requires_grad_()
    value = torch.randint(6, (400,))
    found = family.log_prob(value, predictor, cutpoints)
    every = ordered_logistic_logits(predictor, cutpoints).gather(-1, value.unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(found, every, rtol=1e-12, atol=1e-12)
    z = scipy.special.expit(cutpoints.detach().numpy() - predictor.detach().numpy()[:, None])
    mass = np.diff(np.pad(z, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))), axis=1)[np.arange(400), value]
    sure = mass > 1e-6
    assert np.allclose(found.detach().numpy()[sure], np.log(mass[sure]), rtol=1e-8)
    ours = torch.autograd.grad(found.sum(), (predictor, cutpoints), retain_graph=True)
    theirs = torch.autograd.grad(every.sum(), (predictor, cutpoints))
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-11) for a, b in zip(ours, theirs, strict=True))


def test_logistic_normal():
    family = RUNTIME_FAMILIES["LogisticNormal"]
    loc, scale = V3[0, :2], A[:2]
    reference = D.TransformedDistribution(D.Independent(D.Normal(loc, scale), 1), D.transforms.StickBreakingTransform())
    value = reference.sample((5,))
    z = value[:, :-1].log() - value[:, -1:].log()
    # density of the first two coordinates: |dz/dy| = 1 / ∏ y
    expected = D.Normal(loc, scale).log_prob(z).sum(-1) - value.log().sum(-1)
    assert torch.allclose(family.log_prob(value, loc, scale), expected)
    made = family.transform(torch.randn(9, 2).double(), loc, scale)
    assert made.shape == (9, 3) and torch.allclose(made.sum(-1), torch.ones(9).double())


def test_matrix_normal_is_a_normal_of_the_kronecker_product():
    family = RUNTIME_FAMILIES["MatrixNormal"]
    loc, column = torch.randn(3, 2).double(), t([[1.2, 0.0], [0.4, 0.7]]).double()
    value = torch.randn(5, 3, 2).double()
    kronecker = torch.kron(TRIL.contiguous(), column)
    expected = D.MultivariateNormal(loc.flatten(), scale_tril=kronecker).log_prob(value.flatten(1))
    assert torch.allclose(family.log_prob(value, loc, TRIL, column), expected)
    sample = family.transform(torch.randn(20000, 3, 2).double(), loc, TRIL, column)
    assert torch.allclose(torch.cov(sample.flatten(1).T), kronecker @ kronecker.T, atol=0.15)


def test_inverse_wishart():
    family = RUNTIME_FAMILIES["InverseWishart"]
    reference = scipy.stats.invwishart(df=6, scale=(TRIL @ TRIL.T).numpy())
    sample = family.draw((20000, 3, 3), None, t(6.0).double(), TRIL)
    assert torch.allclose(sample.mean(0), torch.as_tensor(reference.mean()), atol=0.15)
    value = sample[:4]
    assert np.allclose(
        family.log_prob(value, t(6.0).double(), TRIL), [reference.logpdf(v.numpy()) for v in value], rtol=1e-8
    )


def test_horseshoe_density_integrates_to_one_and_matches_draws():
    family = RUNTIME_FAMILIES["Horseshoe"]
    edges = np.concatenate([[1e-9], np.geomspace(1e-8, 200.0, 40001)])
    middle = torch.as_tensor(0.5 * (edges[1:] + edges[:-1]))
    density = family.log_prob(middle, t(1.5).double()).exp().numpy()
    mass = 2 * np.cumsum(density * np.diff(edges))
    assert mass[-1] == pytest.approx(1.0, abs=0.01)
    sample = family.draw((20000,), None, t(1.5).double()).abs()
    for x in (0.1, 1.0, 5.0):
        cdf = mass[np.searchsorted(edges, x) - 1]
        assert (sample < x).double().mean().item() == pytest.approx(cdf, abs=0.015)


def test_mixture_normal():
    family = RUNTIME_FAMILIES["MixtureNormal"]
    params = RUNTIME_FAMILIES["MixtureNormal"].canonical({"weights": V3[0] / V3[0].sum(), "locs": L, "scales": A})
    reference = D.MixtureSameFamily(D.Categorical(V3[0]), D.Normal(L, A))
    value = reference.sample((10,))
    assert torch.allclose(family.log_prob(value, *params), reference.log_prob(value))
    sample = family.draw((4000,), None, *params)
    assert scipy.stats.ks_2samp(sample.numpy(), reference.sample((4000,)).numpy()).pvalue > 1e-4


def test_alternative_arguments():
    logits = t([0.3, -1.0, 2.0])
    categorical = RUNTIME_FAMILIES["Categorical"]
    by_logits = categorical.log_prob(t(2), *categorical.canonical({"logits": logits}))
    assert by_logits == pytest.approx(D.Categorical(logits=logits).log_prob(t(2)).item())
    covariance = TRIL @ TRIL.T
    for key, matrix in (("covariance_matrix", covariance), ("precision_matrix", torch.linalg.inv(covariance))):
        tril = RUNTIME_FAMILIES["MultivariateNormal"].canonical({"loc": L, key: matrix})[1]
        assert torch.allclose(tril @ tril.T, covariance)


# ---------------------------------------------------------------- heads

CODOMAINS = (Real((3,)), Finite(2), Finite(4), Constrained("Simplex", 3), Constrained("Covariance", 2))
CODOMAINS += (Constrained("CholeskyFactor", 3), Real((2, 3)), Real((2,), 0.0, None), Real((2,), 0.0, 1.0))
CODOMAINS += (Real((2,), -4.0, 4.0), Constrained("Correlation", 3))
HEADS = [(name, space) for name in FAMILIES for space in CODOMAINS if head_problem(FAMILIES[name], space) is None]


def test_every_family_has_a_head():
    assert {name for name, _ in HEADS} == {name for name, family in FAMILIES.items() if not family.step_only}


@pytest.mark.parametrize(("name", "space"), HEADS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(HEADS)])
def test_heads_are_legal_for_any_raw_output(name, space):
    head = Head(name, space, 0.5, {})
    for spread in (0.0, 1.0, 30.0, 1e6):
        raw = (torch.randn(6, head.raw_width) * spread).requires_grad_()
        params = head.link(raw)
        noise = head.make_noise((6,), params, None)
        value = head.to_value(noise, params)
        density = head.log_prob(value, params)
        assert density.shape == (6,) and not torch.isnan(density).any()
        if spread <= 1.0:
            assert torch.isfinite(density).all()
            made = head.log_prob_of_draw(noise, value, params)
            assert torch.allclose(made, density, rtol=1e-3, atol=1e-3)
            density.sum().backward()
            assert raw.grad is not None and torch.isfinite(raw.grad).all()


@pytest.mark.parametrize("name", ["Categorical", "Bernoulli", "Binomial", "OrderedLogistic"])
def test_finite_heads_sum_to_one(name):
    space = Finite(2) if name == "Bernoulli" else Finite(5)
    head = Head(name, space, 1.0, {})
    params = head.link(torch.randn(3, head.raw_width))
    table = head.log_table(params)
    assert torch.allclose(table.exp().sum(-1), torch.ones(3), atol=1e-5)
    for k in range(table.shape[1]):
        assert torch.allclose(table[:, k], head.log_prob(torch.full((3,), k), params), atol=1e-5)


def test_finite_value_is_an_index_and_a_product_a_tuple():
    from qvr_core.semantics.types.spaces import Product

    head = Head("Categorical", Product((Finite(2), Finite(3)), (None, None)), 1.0, {})
    params = head.link(torch.randn(4, 6))
    value = head.to_value(head.make_noise((4,), params, None), params)
    assert [part.dtype for part in value] == [torch.int64] * 2
    assert torch.allclose(
        head.log_prob(value, params), params[0].log_softmax(-1)[torch.arange(4), value[0] * 3 + value[1]]
    )


# ---------------------------------------------------------------- one home


def test_the_table_of_the_front_end_is_fresh():
    """`python -m qvr_core.runtime.families.table` brings it up to date."""
    assert table.PATH.read_text(encoding="utf-8") == table.table()
    assert repr([*FAMILIES.values()]) == repr([family.facts for family in RUNTIME_FAMILIES.values()])


ROOT = Path(__file__).resolve().parents[3]
HOMES = (
    ROOT / "qvr_core" / "runtime" / "families",
    ROOT / "qvr_core" / "semantics" / "language",
    # what another system calls a family, and how it wants it, no field of ours says
    ROOT / "qvr_core" / "export",
    # the tails as arithmetic that is printed: those of the runtime are functions
    ROOT / "qvr_core" / "lowered" / "tails.py",
)


def asked_by_name(tree: ast.AST) -> Iterator[ast.Constant]:
    """Names of families that something is compared with, matched with, or looked up by."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
            case ast.MatchValue(value=value):
                asked = [value]
            case ast.Dict(keys=keys):
                asked = [key for key in keys if key is not None]
            case ast.Subscript(slice=index):
                asked = [index]
            case _:
                continue
        inside = (found for part in asked for found in ast.walk(part))
        yield from (one for one in inside if isinstance(one, ast.Constant) and one.value in FAMILIES)


def test_nothing_outside_asks_for_a_family_by_its_name():
    """What differs from family to family is a field of the family."""
    names_of_families = re.compile(rf"""["'](?:{"|".join(FAMILIES)})["']""")
    wrong = [
        f"{path.relative_to(ROOT)}:{name.lineno} asks for {name.value}"
        for package in ("qvr_core", "qvr_lsp")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(home in (path, *path.parents) for home in HOMES)
        for text in [path.read_text(encoding="utf-8")]
        for name in asked_by_name(ast.parse(text if names_of_families.search(text) else ""))
    ]
    assert not wrong, "\n".join(wrong)
