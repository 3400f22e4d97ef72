"""Families that a file declares: densities, gradients, tails and draws compared with scipy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.programs.handlers import by_rows, condition, pointwise, seed, substitute
from qvr_core.runtime.values.errors import InputProblem, NoDraws

SKEW = """
family SkewNormal(loc, scale : Real 1 [low=0.0], shape) : Real 1
    let delta = shape / sqrt(1 + shape^2)
    density(x) = log(2.0) - 0.5 * log(2 * 3.141592653589793) - log(scale) - 0.5 * ((x - loc) / scale)^2
        + log_ndtr(shape * (x - loc) / scale)
    draw = loc + scale * (delta * abs(Normal(0, 1)) + sqrt(1 - delta^2) * Normal(0, 1))
"""
GOMPERTZ = """
family Gompertz(shape : Real 1 [low=0.0], rate : Real 1 [low=0.0]) : Real 1 [low=0.0]
    density(t) = log(shape) + log(rate) + rate * t - shape * expm1(rate * t)
    cdf(t) = -expm1(-shape * expm1(rate * t))
    log_survival(t) = -shape * expm1(rate * t)
    draw = log1p(-log(Uniform(0, 1)) / shape) / rate
"""
INFLATED = """
family Inflated(gate : Real 1 [low=0.0, high=1.0], rate : Real 1 [low=0.0]) : Nat
    density(n) = where(n == 0, log(gate + (1 - gate) * exp(-rate)),
        log1p(-gate) + n * log(rate) - rate - lgamma(n + 1))
    draw = where(Bernoulli(gate) == 1, 0, Poisson(rate))
"""
VECTOR = """
family Laplaces(loc : Real 3, scale : Real 3 [low=0.0]) : Real 3
    density(x) = sum(-abs(x - loc) / scale - log(2 * scale))
    draw = Laplace(loc, scale)
"""
LOGISTIC = """
family Logistic(loc = 0.0, scale : Real 1 [low=0.0] = 1.0) : Real 1
    let far = 700.0
    density(x) = -(x - loc) / scale - log(scale) - 2 * softplus(-(x - loc) / scale)
    cdf(x) = sigmoid((x - loc) / scale)
"""
DICE = """
object Face : FinSet 3
family Loaded(weights : Real 3 [low=0.0]) : Face
    density(face) = log(weights[face]) - log(sum(weights))
    draw = Categorical(weights / sum(weights))
"""
SHARES = """
family Flatter(power : Real 1 [low=0.0]) : Simplex 3
    density(p) = lgamma(3 * power) - 3 * lgamma(power) + (power - 1) * sum(log(p))
    draw = Dirichlet([power, power, power])
"""
ANY_LENGTH = """
family Spread(loc : Real k, scale : Real k [low=0.0]) : Real k
    density(x) = sum(-0.5 * ((x - loc) / scale)^2 - log(scale) - 0.5 * log(2 * 3.141592653589793))
    draw = Normal(loc, scale)
"""


def family(text: str, call: str) -> RuntimeFamily:
    """A declared family, compiled."""
    program = f"object Row : FinSet 2\n{text}\nprogram p : Row -> Row\n    observe y <- {call}\n    return y\n"
    return loads(program).morphism.sites["y"].family


def doubles(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def parameters(made: RuntimeFamily, *values: Any) -> tuple[Tensor, ...]:
    given = zip(made.facts.parameters, values, strict=False)
    return made.canonical({one.name: torch.as_tensor(value, dtype=torch.float64) for one, value in given})


@pytest.mark.parametrize(
    ("text", "call", "given", "reference", "values"),
    [
        (SKEW, "SkewNormal(0.5, 1.5, 3.0)", (0.5, 1.5, 3.0), st.skewnorm(3.0, 0.5, 1.5).logpdf, [-4.0, 0.3, 1.0, 6.0]),
        (GOMPERTZ, "Gompertz(0.3, 1.2)", (0.3, 1.2), st.gompertz(0.3, scale=1 / 1.2).logpdf, [0.1, 1.0, 3.0]),
        (LOGISTIC, "Logistic()", (), st.logistic.logpdf, [-40.0, 0.1, 3.0]),
    ],
)
def test_densities_and_gradients(text: str, call: str, given: tuple[float, ...], reference: Any, values: Any) -> None:
    made = family(text, call)
    x = doubles(*values).requires_grad_()
    args = [one.requires_grad_() for one in parameters(made, *given)]
    found = made.log_prob(x, *args)
    np.testing.assert_allclose(found.detach(), reference(values), rtol=1e-12)
    (gradient,) = torch.autograd.grad(found.sum(), x, retain_graph=True)
    step = 1e-6
    expected = (reference(np.array(values) + step) - reference(np.array(values) - step)) / (2 * step)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    if args:
        for one in torch.autograd.grad(found.sum(), args):
            assert torch.isfinite(one).all()


def test_a_count_by_hand() -> None:
    made = family(INFLATED, "Inflated(0.3, 2.5)")
    found = made.log_prob(torch.tensor([0, 1, 4]), *parameters(made, 0.3, 2.5))
    zero = math.log(0.3 + 0.7 * math.exp(-2.5))
    np.testing.assert_allclose(found, [zero, *(math.log(0.7) + st.poisson(2.5).logpmf([1, 4]))], rtol=1e-12)


def test_a_vector_family() -> None:
    made = family(VECTOR, "Laplaces([0.0, 1.0, 2.0], [1.0, 2.0, 0.5])")
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    loc, scale = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 0.5])
    found = made.log_prob(x, *parameters(made, loc, scale))
    np.testing.assert_allclose(found, st.laplace(loc, scale).logpdf(x).sum(-1), rtol=1e-12)
    # plates of the arguments meet those of the value
    locs = torch.randn(2, 3, dtype=torch.float64)
    found = made.log_prob(x, locs, torch.as_tensor(scale))
    np.testing.assert_allclose(found, st.laplace(locs, scale).logpdf(x).sum(-1), rtol=1e-12)


def test_a_family_of_vectors_as_long_as_its_arguments() -> None:
    made = family(ANY_LENGTH, "Spread([0.0, 1.0], [1.0, 2.0])")
    for size in (2, 5):
        loc, scale = torch.randn(size).double(), torch.rand(size).double() + 0.5
        x = torch.randn(7, size).double()
        expected = st.norm(loc, scale).logpdf(x).sum(-1)
        np.testing.assert_allclose(made.log_prob(x, loc, scale), expected, rtol=1e-12)
        assert made.fresh_noise((7, size), None, (loc, scale)).shape == (7, size)
        assert made.noise_event((loc, scale), None) == (size,)


def test_a_finite_set_and_a_simplex() -> None:
    made = family(DICE, "Loaded([1.0, 2.0, 5.0])")
    found = made.log_prob(torch.tensor([0, 2, 3]), *parameters(made, [1.0, 2.0, 5.0]))
    np.testing.assert_allclose(found, [math.log(1 / 8), math.log(5 / 8), -math.inf])
    assert made.categories is not None
    assert made.categories(*parameters(made, [1.0, 2.0, 5.0])) == 3
    made = family(SHARES, "Flatter(2.5)")
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    expected = st.dirichlet([2.5] * 3).logpdf(p.T)
    np.testing.assert_allclose(made.log_prob(torch.tensor(p), *parameters(made, 2.5)), expected, rtol=1e-12)
    assert made.log_prob(doubles(0.5, 0.4, 0.3), *parameters(made, 2.5)).item() == -math.inf


def test_outside_of_the_support_the_density_is_zero_without_a_wrong_gradient() -> None:
    made = family(INFLATED, "Inflated(0.3, 2.5)")
    found = made.log_prob(doubles(-1.0, 0.5, 2.0), *parameters(made, 0.3, 2.5))
    assert found.isinf().tolist() == [True, True, False]
    made = family(GOMPERTZ, "Gompertz(0.3, 1.2)")
    args = [one.requires_grad_() for one in parameters(made, 0.3, 1.2)]
    found = made.log_prob(doubles(-1.0, 0.5), *args)
    assert found.isinf().tolist() == [True, False]
    assert all(torch.isfinite(one).all() for one in torch.autograd.grad(found[1], args))


def test_a_parameter_outside_of_its_bounds_has_no_density() -> None:
    made = family(GOMPERTZ, "Gompertz(0.3, 1.2)")
    assert made.log_prob(doubles(0.5), doubles(-0.3), doubles(1.2)).isnan().all()


# ---------------------------------------------------------------- tails


@pytest.mark.parametrize(
    ("text", "call", "given", "reference", "values"),
    [
        (GOMPERTZ, "Gompertz(0.3, 1.2)", (0.3, 1.2), st.gompertz(0.3, scale=1 / 1.2), [1e-12, 0.1, 1.0, 4.0, 6.0]),
        (LOGISTIC, "Logistic(0.5, 2.0)", (0.5, 2.0), st.logistic(0.5, 2.0), [-300.0, 0.1, 30.0]),
    ],
)
def test_tails(text: str, call: str, given: tuple[float, ...], reference: Any, values: list[float]) -> None:
    made = family(text, call)
    assert made.facts.cdf
    args = parameters(made, *given)
    np.testing.assert_allclose(made.log_cdf(doubles(*values), *args), reference.logcdf(values), rtol=1e-7)
    np.testing.assert_allclose(made.log_survival(doubles(*values), *args), reference.logsf(values), rtol=1e-5)
    assert made.cdf(doubles(-math.inf, math.inf), *args).tolist() == [0.0, 1.0]


def test_censoring_and_truncation() -> None:
    text = f"""object Row : FinSet 3
{GOMPERTZ}
program p : Row -> Row
    data late : Row -> Bool
    observe y : Row <- Gompertz(0.3, 1.2) [right_censored=late]
    observe z : Row <- Gompertz(0.3, 1.2) [truncate_lower=0.5, truncate_upper=2.0]
    return y
"""
    y, z, late = doubles(0.2, 1.0, 2.0), doubles(0.6, 1.0, 1.9), torch.tensor([0, 1, 0])
    model = loads(text).morphism
    run = model.execute(None, condition({"y": y, "z": z, "late": late}), pointwise)
    reference = st.gompertz(0.3, scale=1 / 1.2)
    expected = np.where(late == 1, reference.logsf(y), reference.logpdf(y))
    np.testing.assert_allclose(run.sites["y"].pointwise[0], expected, rtol=1e-6)
    mass = np.log(reference.cdf(2.0) - reference.cdf(0.5))
    np.testing.assert_allclose(run.sites["z"].pointwise[0], reference.logpdf(z) - mass, rtol=1e-6)
    drawn = model.execute(None, by_rows(400), seed(torch.Generator().manual_seed(0)), condition({"late": late}))
    values = drawn.sites["z"].value
    assert values.min() > 0.5
    assert values.max() < 2.0


# ---------------------------------------------------------------- draws


@pytest.mark.parametrize(
    ("text", "call", "given", "reference"),
    [
        (SKEW, "SkewNormal(0.5, 1.5, 3.0)", (0.5, 1.5, 3.0), st.skewnorm(3.0, 0.5, 1.5)),
        (GOMPERTZ, "Gompertz(0.3, 1.2)", (0.3, 1.2), st.gompertz(0.3, scale=1 / 1.2)),
    ],
)
def test_draws_are_of_the_density(text: str, call: str, given: tuple[float, ...], reference: Any) -> None:
    made = family(text, call)
    draws = made.fresh_noise((4000,), torch.Generator().manual_seed(1), parameters(made, *given))
    assert draws.dtype == torch.float64
    assert st.kstest(draws.numpy(), reference.cdf).pvalue > 0.01


def test_draws_of_counts_and_vectors() -> None:
    generator = torch.Generator().manual_seed(2)
    made = family(INFLATED, "Inflated(0.3, 2.5)")
    draws = made.fresh_noise((20_000,), generator, parameters(made, 0.3, 2.5))
    zero = 0.3 + 0.7 * math.exp(-2.5)
    assert abs((draws == 0).double().mean() - zero) < 5 * math.sqrt(zero * (1 - zero) / 20_000)
    assert abs(draws.double().mean() - 0.7 * 2.5) < 0.1
    made = family(VECTOR, "Laplaces([0.0, 1.0, 2.0], [1.0, 2.0, 0.5])")
    draws = made.fresh_noise((4000, 3), generator, parameters(made, [0.0, 1.0, 2.0], [1.0, 2.0, 0.5]))
    for at, (loc, scale) in enumerate(((0.0, 1.0), (1.0, 2.0), (2.0, 0.5))):
        assert st.kstest(draws[:, at].numpy(), st.laplace(loc, scale).cdf).pvalue > 0.01
    assert abs(np.corrcoef(draws.T.numpy())[0, 1]) < 0.08


def test_draws_differ_from_element_to_element_of_a_plate() -> None:
    made = family(SKEW, "SkewNormal(0.0, 1.0, 2.0)")
    scale = doubles(1e-3, 1e3)
    draws = made.fresh_noise((500, 2), torch.Generator().manual_seed(3), (doubles(0.0), scale, doubles(2.0)))
    assert draws.shape == (500, 2)
    assert draws[:, 0].std() < 0.01
    assert draws[:, 1].std() > 100


def test_gradients_go_through_a_draw() -> None:
    made = family(SKEW, "SkewNormal(0.0, 1.0, 2.0)")
    assert made.reparameterised
    loc = doubles(0.5).requires_grad_()
    draws = made.fresh_noise((10,), None, (loc, doubles(1.0), doubles(2.0)))
    assert torch.autograd.grad(draws.sum(), loc)[0].item() == pytest.approx(10.0)
    assert not family(INFLATED, "Inflated(0.3, 2.5)").reparameterised


def test_without_a_draw() -> None:
    made = family(LOGISTIC, "Logistic()")
    with pytest.raises(NoDraws, match=r"`Logistic` does not say how it is drawn: add a line `draw = …`"):
        made.fresh_noise((3,), None, parameters(made, 0.0, 1.0))


def test_a_draw_outside_of_the_support() -> None:
    text = "family F(loc) : Real 1 [low=0.0]\n    density(x) = -x\n    draw = loc + 0 * Normal(0, 1)\n"
    made = family(text, "F(-2.0)")
    with pytest.raises(InputProblem, match=r"`draw` of `F` gives -2, which is no `Real 1 \[low=0.0\]`"):
        made.fresh_noise((3,), None, parameters(made, -2.0))


# ---------------------------------------------------------------- in a program

PLATES = f"""object School : FinSet 3
object Row : FinSet 5
{SKEW}
{GOMPERTZ}
{VECTOR}
program p : Row -> Real 1
    data school : Row -> School
    sample s <- Gompertz(1.0, 1.0)
    sample a : School <- SkewNormal(0.0, s, shape=2.0)
    sample v : School <- Laplaces([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    observe y[i : Row] <- SkewNormal(a[school[i]], s, 1.0)
    observe w[i : Row] <- Mixture([0.3, 0.7], SkewNormal(a[school[i]], 1.0, 0.0), Normal(s, 2.0))
    predict n[i : School] <- SkewNormal(a[i], 1.0, 0.0)
    return a
"""


def test_plates_indices_mixtures_and_rows() -> None:
    model = loads(PLATES).morphism
    school = torch.tensor([0, 1, 1, 2, 0])
    y, w = torch.randn(5).double(), torch.randn(5).double()
    a, s, v = torch.randn(4, 3).double(), torch.rand(4).double() + 0.5, torch.randn(4, 3, 3).double()
    run = model.execute(
        None, by_rows(4), condition({"y": y, "w": w, "school": school}), substitute({"a": a, "s": s, "v": v}), pointwise
    )
    each, scale = a[:, school].numpy(), s.unsqueeze(-1).numpy()
    expected = st.skewnorm(1.0, each, scale).logpdf(y.numpy())
    np.testing.assert_allclose(run.sites["y"].pointwise, expected, rtol=1e-9)
    mixed = np.logaddexp(
        math.log(0.3) + st.norm(each, 1.0).logpdf(w.numpy()), math.log(0.7) + st.norm(scale, 2.0).logpdf(w.numpy())
    )
    np.testing.assert_allclose(run.sites["w"].pointwise, mixed, rtol=1e-9)
    np.testing.assert_allclose(run.sites["s"].log_prob, st.gompertz(1.0).logpdf(s), rtol=1e-9)
    np.testing.assert_allclose(run.sites["v"].log_prob, st.laplace.logpdf(v).sum((1, 2)), rtol=1e-9)
    drawn = model.execute(None, by_rows(6), seed(torch.Generator().manual_seed(0)), condition({"school": school}))
    assert drawn.sites["y"].value.shape == (6, 5)
    assert drawn.sites["v"].value.shape == (6, 3, 3)


def test_a_finite_latent_is_summed_out() -> None:
    text = f"""object Row : FinSet 4
{DICE}
program p : Row -> Real 1
    sample m : Face <- Normal(0.0, 1.0)
    marginalize z : Row <- Loaded([1.0, 2.0, 5.0])
        observe y : Row <- Normal(m[z], 1.0)
    return m
"""
    m, y = doubles(-1.0, 0.0, 2.0), doubles(0.1, -0.5, 1.0, 3.0)
    run = loads(text).morphism.execute(None, condition({"y": y}), substitute({"m": m}))
    each = np.log([1 / 8, 2 / 8, 5 / 8]) + st.norm(m.numpy(), 1.0).logpdf(y.numpy()[:, None])
    assert run.sites["z"].log_prob.item() == pytest.approx(np.logaddexp.reduce(each, -1).sum())


def test_a_chain_from_a_declared_family() -> None:
    text = f"""object Time : FinSet 4
{SKEW}
program p : Time -> Time
    sample h[t : Time] <- SkewNormal(0.5 * h[t - 1], 1.0, 2.0) from SkewNormal(0.0, 2.0, 0.0)
    return h
"""
    h = doubles(0.3, -0.2, 1.0, 0.7)
    run = loads(text).morphism.execute(None, substitute({"h": h}))
    expected = st.norm(0, 2).logpdf(0.3) + st.skewnorm(2.0, 0.5 * h[:-1].numpy(), 1.0).logpdf(h[1:].numpy()).sum()
    assert run.sites["h"].log_prob.item() == pytest.approx(expected)
