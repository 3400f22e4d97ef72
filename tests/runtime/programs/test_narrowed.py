"""Draws on a smaller space than their family's own: densities by scipy at five points, gradients, draws, engines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, trace
from qvr_core.runtime.values.errors import InputProblem

HEAD = "object Row : FinSet 4\nobject Time : FinSet 3\nprogram p : Row -> Real 1\n"
Y = [0.4, 1.5, 2.0, 3.5]
POINTS = [(-1.0, 0.3), (-0.2, 0.9), (0.0, 1.4), (0.7, 2.2), (2.5, 3.0)]
"""Values of `m` and of one number that the program draws below it."""


pytestmark = pytest.mark.usefixtures("double_precision")


def normal(m: float) -> float:
    return float(st.norm.logpdf(m))


def above(value: Any, loc: Any, scale: Any, low: float = 0.0) -> float:
    return float(np.sum(st.norm.logpdf(value, loc, scale) - st.norm.logsf(low, loc, scale)))


def _poisson(x: float) -> float:
    return float(np.sum(st.poisson.logpmf([1, 2, 2, 4], x)) - 4 * st.poisson.logsf(0, x))


def _observed(m: float) -> float:
    whole = st.norm.cdf(9.0, m, 2.0) - st.norm.cdf(0.0, m, 2.0)
    return float(np.sum(st.norm.logpdf(Y, m, 2.0)) - 4 * np.log(whole))


def _censored(m: float) -> float:
    whole = st.norm.cdf(9.0, m, 2.0) - st.norm.cdf(0.0, m, 2.0)
    late = st.norm.cdf(9.0, m, 2.0) - st.norm.cdf(Y[-1], m, 2.0)
    return float(np.sum(st.norm.logpdf(Y[:-1], m, 2.0)) + np.log(late) - 4 * np.log(whole))


def _mixture(s: float, m: float) -> float:
    density = 0.3 * st.norm.pdf(s, m, 1.0) + 0.7 * st.t.pdf(s, 3.0, m, 2.0)
    return float(np.log(density / (0.3 * st.norm.sf(0.0, m, 1.0) + 0.7 * st.t.sf(0.0, 3.0, m, 2.0))))


FAMILY = """family Bell(loc) : Real 1
    density(x) = -(x - loc)^2 / 2 - 0.9189385332046727
    cdf(x) = 0.5 + 0.5 * erf((x - loc) / sqrt(2.0))
"""
# lines, the values that are drawn below `m` from one number, data, and the log density without that of `m`
CASES: dict[str, tuple[str, Callable[[float], dict[str, Any]], dict[str, Any], Callable[[float, float], float]]] = {
    "normal above 0": (
        "sample s : Real 1 [low=0.0] <- Normal(m, 2.0)", lambda x: {"s": x}, {}, lambda m, x: above(x, m, 2.0),
    ),
    "student between": (
        "sample s : Real 1 [low=-4.0, high=4.0] <- StudentT(4.0, m, 1.5)", lambda x: {"s": x}, {},
        lambda m, x: st.t.logpdf(x, 4, m, 1.5) - np.log(st.t.cdf(4, 4, m, 1.5) - st.t.cdf(-4, 4, m, 1.5)),
    ),
    "gamma below": (
        "sample s : Real 1 [high=5.0] <- Gamma(2.0, exp(m))", lambda x: {"s": x}, {},
        lambda m, x: st.gamma.logpdf(x, 2, 0, np.exp(-m)) - st.gamma.logcdf(5, 2, 0, np.exp(-m)),
    ),
    "uniform within": (
        "sample s : Real 1 [low=0.0] <- Uniform(-1.0, 4.0)", lambda x: {"s": x}, {}, lambda m, x: -math.log(4.0),
    ),
    "pareto above": (
        "sample s : Real 1 [low=2.0] <- Pareto(0.5, 3.0)", lambda x: {"s": 2.0 + x}, {},
        lambda m, x: st.pareto.logpdf(2.0 + x, 3.0, 0, 0.5) - st.pareto.logsf(2.0, 3.0, 0, 0.5),
    ),
    "mixture": (
        "sample s : Real 1 [low=0.0] <- Mixture([0.3, 0.7], Normal(m, 1.0), StudentT(3.0, m, 2.0))",
        lambda x: {"s": x}, {}, lambda m, x: _mixture(x, m),
    ),
    "declared": ("sample s : Real 1 [low=0.0] <- Bell(m)", lambda x: {"s": x}, {}, lambda m, x: above(x, m, 1.0)),
    "indexed": (
        "sample s[r : Row] : Real 1 [low=0.0] <- Normal(m + c[r], 2.0)", lambda x: {"s": [x, 1.0, 2.0, 0.5]},
        {"c": Y}, lambda m, x: above([x, 1.0, 2.0, 0.5], m + np.array(Y), 2.0),
    ),
    "entries": (
        "sample s : Real 2 [low=0.0] <- Normal(m, [1.0, 3.0])", lambda x: {"s": [x, 0.4]}, {},
        lambda m, x: above([x, 0.4], m, [1.0, 3.0]),
    ),
    "chain": (
        "sample s[t : Time] : Real 1 [low=0.0] <- Normal(0.5 * s[t - 1] + m, 1.0) from Normal(m, 2.0)",
        lambda x: {"s": [x, 0.5, 1.5]}, {},
        lambda m, x: above(x, m, 2.0) + above([0.5, 1.5], [0.5 * x + m, 0.25 + m], 1.0),
    ),
    "counts": (
        "sample s <- LogNormal(m, 1.0)\n    observe n[r : Row] : Real 1 [low=1.0] <- Poisson(s)", lambda x: {"s": x},
        {"n": [1, 2, 2, 4]}, lambda m, x: st.lognorm.logpdf(x, 1.0, 0, np.exp(m)) + _poisson(x),
    ),
    "observed": (
        "observe y[r : Row] : Real 1 [low=0.0, high=9.0] <- Normal(m, 2.0)", lambda x: {}, {"y": Y},
        lambda m, x: _observed(m),
    ),
    "censored": (
        "observe y[r : Row] : Real 1 [low=0.0, high=9.0] <- Normal(m, 2.0) [right_censored=c]", lambda x: {},
        {"y": Y, "c": [0, 0, 0, 1]}, lambda m, x: _censored(m),
    ),
    "ordered above 0": (
        "sample s : Ordered 3 [low=0.0] <- Normal(m, 2.0)", lambda x: {"s": [x, x + 1.0, x + 1.5]}, {},
        lambda m, x: math.log(6.0) + above([x, x + 1.0, x + 1.5], m, 2.0),
    ),
    "ordered by place": (
        "sample s : Ordered 2 <- Normal([3.0, 10.0], 1.0)", lambda x: {"s": [x, x + 5.0]}, {},
        lambda m, x: float(st.norm.logpdf([x, x + 5.0], [3.0, 10.0]).sum()),
    ),
    "by place, positive, plates": (
        "sample s[r : Row] : Ordered 2 [low=0.0] <- Normal(m, [1.0, 2.0])",
        lambda x: {"s": [[x, x + 1.0]] * 4}, {}, lambda m, x: 4 * above([x, x + 1.0], m, [1.0, 2.0]),
    ),
    "flat above 0": ("sample s : Real 1 [low=0.0] <- Flat()", lambda x: {"s": x}, {}, lambda m, x: 0.0),
    "flat between": ("sample s : Real 1 [low=0.0, high=8.0] <- Flat()", lambda x: {"s": x}, {}, lambda m, x: 0.0),
    "flat ordered": ("sample s : Ordered 2 <- Flat()", lambda x: {"s": [x, x + 1.0]}, {}, lambda m, x: 0.0),
    "flat simplex": (
        "sample s : Simplex 3 <- Flat()", lambda x: {"s": [0.2, 0.1 * x, 0.8 - 0.1 * x]}, {}, lambda m, x: 0.0
    ),
    "flat covariance": (
        "sample s : Covariance 2 <- Flat()", lambda x: {"s": [[2.0, 0.3], [0.3, x]]}, {}, lambda m, x: 0.0
    ),
    "flat correlation": (
        "sample s : Correlation 2 <- Flat()", lambda x: {"s": [[1.0, x / 4], [x / 4, 1.0]]}, {}, lambda m, x: 0.0
    ),
    "flat factor": (
        "sample s : CholeskyFactor 2 <- Flat()",
        lambda x: {"s": [[1.0, 0.0], [x / 4, math.sqrt(1.0 - x * x / 16)]]}, {}, lambda m, x: 0.0,
    ),
}  # fmt: skip


def program(lines: str) -> Any:
    data = "".join(f"    data {name} : Row\n" for name in ("c",) if f"{name}[r]" in lines or f"={name}]" in lines)
    text = f"{FAMILY}{HEAD}{data}    sample m <- Normal(0.0, 1.0)\n    {lines}\n    return m\nexport p\n"
    return dsl.loads(text).morphism


def tensors(values: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_density_is_that_of_scipy(name: str) -> None:
    lines, drawn, data, expected = CASES[name]
    model = program(lines)
    for m, x in POINTS:
        found = model.log_joint(None, tensors({"m": m, **drawn(x), **data}))
        assert found.item() == pytest.approx(normal(m) + expected(m, x), abs=1e-9), (m, x)


@pytest.mark.parametrize("name", ["normal above 0", "student between", "gamma below", "mixture", "chain", "counts"])
def test_gradients_of_parameters_include_what_is_divided_by(name: str) -> None:
    lines, drawn, data, expected = CASES[name]
    model = program(lines)
    m = torch.tensor(0.7, requires_grad=True)
    model.log_joint(None, {**tensors({**drawn(0.9), **data}), "m": m}).sum().backward()
    step = 1e-5
    there, back = (normal(0.7 + e) + expected(0.7 + e, 0.9) for e in (step, -step))
    assert m.grad is not None
    assert m.grad.item() == pytest.approx((there - back) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("flat")])
@pytest.mark.sampled(2)
def test_draws_lie_in_the_space(name: str) -> None:
    lines, _, data, _ = CASES[name]
    model = program(lines)
    torch.manual_seed(1)
    given = tensors({key: value for key, value in data.items() if key == "c"})
    site = "y" if name in ("observed", "censored") else "n" if name == "counts" else "s"
    low, high = _bound(lines, "low", -math.inf), _bound(lines, "high", math.inf)
    for _ in range(20):
        drawn = trace(model, None, given).sites[site].value
        assert bool(((drawn >= low) & (drawn <= high)).all())
        if "Ordered" in lines:
            assert bool((drawn[..., 1:] > drawn[..., :-1]).all())


def _bound(lines: str, key: str, otherwise: float) -> float:
    found = re.search(rf"{key}=([-.0-9]+)", lines)
    return otherwise if found is None else float(found[1])


def test_draws_have_the_distribution() -> None:
    model = program("sample s[r : Row] : Real 1 [low=0.0] <- Normal(-1.0, 2.0)")
    torch.manual_seed(3)
    drawn = torch.cat([trace(model, None).sites["s"].value.reshape(-1) for _ in range(250)]).numpy()
    assert st.kstest(drawn, st.truncnorm(0.5, np.inf, -1.0, 2.0).cdf).pvalue > 0.01


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(3)
def test_chains_are_machine_code_and_agree_with_plain_ones(name: str) -> None:
    lines, _, data, _ = CASES[name]
    model = program(lines)
    given = tensors(data)
    for engine in ("compiled", "plain"):
        mcmc = MCMC(NUTSKernel(), num_warmup=3, num_samples=2, num_chains=1, seed=2, engine=engine)
        result = mcmc.run(model, None, given)
        assert result.engine == engine
        finite = all(bool(np.isfinite(np.asarray(one)).all()) for one in result.samples.values())
        assert finite or name.startswith("flat")  # nothing holds an improper one


@pytest.mark.parametrize("value", [-0.5, 9.5])
def test_a_value_outside_has_no_density(value: float) -> None:
    model = program("sample s : Real 1 [low=0.0, high=9.0] <- Normal(m, 2.0)")
    assert model.log_joint(None, tensors({"m": 0.0, "s": value})).item() == -math.inf
    flat = program("sample s : Real 1 [low=0.0, high=9.0] <- Flat()")
    assert flat.log_joint(None, tensors({"m": 0.0, "s": value})).item() == -math.inf


def test_flat_has_no_draws() -> None:
    with pytest.raises(InputProblem, match="Flat has a density everywhere and no draws"):
        program("sample s : Simplex 3 <- Flat()").rsample(None)
