"""Chains of vectors: densities against a loop over torch's own, draws against their moments, NUTS against Kalman's
smoother."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Dirichlet, Distribution, MultivariateNormal

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.programs.handlers import by_rows, condition, pointwise, replay, seed, substitute
from qvr_core.runtime.programs.program import ProgramModule

PROGRAM = """
object Time : FinSet 5
object State : FinSet 3
object Group : FinSet 2
program p : Time -> Real 1
    sample A[i : State, j : State] <- Normal(0.0, 1.0)
    sample v0 : State <- Normal(0.0, 1.0)
    data L : State * State
    {line}
    return A
"""
Values = dict[str, Tensor]
Law = Callable[[Values, Tensor, int], Distribution]


def normal(loc: Tensor, x: Values) -> Distribution:
    return MultivariateNormal(loc, scale_tril=x["L"])


def mapped(x: Values, v: Tensor) -> Tensor:
    return torch.einsum("bij,b...j->b...i", x["A"], v)


START = "from MultivariateNormal(v0, scale_tril=2 * L)"


def from_v0(x: Values) -> Distribution:
    return MultivariateNormal(x["v0"], scale_tril=2 * x["L"])


CASES: dict[str, tuple[str, str, Callable[[Values], Distribution] | None, Law]] = {
    "VAR(1)": (
        f"sample h[t : Time] <- MultivariateNormal(matmul(A, h[t - 1]), scale_tril=L) {START}",
        "t",
        from_v0,
        lambda x, h, t: normal(mapped(x, h[..., t - 1, :]), x),
    ),
    "from a value": (
        "sample h[t : Time] <- MultivariateNormal(matmul(A, h[t - 1]), scale_tril=L) from v0",
        "t",
        None,
        lambda x, h, t: normal(mapped(x, h[..., t - 1, :]), x),
    ),
    "an entry of its own": (
        f"sample h[t : Time] <- MultivariateNormal(h[t - 1, 0] * h[t - 1] + t, scale_tril=L) {START}",
        "t",
        from_v0,
        lambda x, h, t: normal(h[..., t - 1, :1] * h[..., t - 1, :] + t, x),
    ),
    "groups": (
        f"sample h[g : Group, t : Time] <- MultivariateNormal(matmul(A, h[g, t - 1]) + g, scale_tril=L) {START}",
        "gt",
        lambda x: MultivariateNormal(x["v0"].unsqueeze(1).expand(-1, 2, -1), scale_tril=2 * x["L"]),
        lambda x, h, t: normal(mapped(x, h[..., t - 1, :]) + torch.arange(2.0)[:, None], x),
    ),
    "groups behind": (
        f"sample h[t : Time, g : Group] <- MultivariateNormal(matmul(A, h[t - 1, g]) + g, scale_tril=L) {START}",
        "tg",
        lambda x: MultivariateNormal(x["v0"].unsqueeze(1).expand(-1, 2, -1), scale_tril=2 * x["L"]),
        lambda x, h, t: normal(mapped(x, h[..., t - 1, :]) + torch.arange(2.0)[:, None], x),
    ),
    "simplexes": (
        "sample h[t : Time] <- Dirichlet(9 * h[t - 1] + 0.1) from Dirichlet(ones(State))",
        "t",
        lambda x: Dirichlet(torch.ones(len(x["A"]), 3, dtype=torch.float64)),
        lambda x, h, t: Dirichlet(9 * h[..., t - 1, :] + 0.1),
    ),
}
ROWS = 2


def model_of(line: str) -> ProgramModule:
    return dsl.loads(PROGRAM.format(line=line)).programs["p"]


def numbers(name: str) -> Values:
    generator = torch.Generator().manual_seed(5)
    groups = (2,) if "g" in CASES[name][1] else ()
    found = {
        "A": torch.randn(ROWS, 3, 3, generator=generator, dtype=torch.float64),
        "v0": torch.randn(ROWS, 3, generator=generator, dtype=torch.float64),
        "h": torch.randn(ROWS, *groups, 5, 3, generator=generator, dtype=torch.float64),
        "L": torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.5, 0.1, 1.5]], dtype=torch.float64),
    }
    if name == "simplexes":
        found["h"] = found["h"].softmax(-1)
    return found


def by_loop(name: str, x: Values) -> Tensor:
    """log p(h | A, v0), by the elements in turn."""
    _, _, first, law = CASES[name]
    h = x["h"]
    each = [] if first is None else [first(x).log_prob(h[..., 0, :])]
    each += [law(x, h, t).log_prob(h[..., t, :]) for t in range(1, 5)]
    return sum(one.reshape(ROWS, -1).sum(-1) for one in each)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("name", CASES)
def test_densities_and_their_gradients_are_those_of_a_loop(name: str) -> None:
    model, x = model_of(CASES[name][0]), numbers(name)
    latents = {key: x[key].requires_grad_() for key in ("A", "v0", "h")}
    given = {**latents, "h": latents["h"].movedim(2, 1) if CASES[name][1] == "tg" else latents["h"]}
    data = {"L": x["L"]}
    found = model.execute(None, condition(data), substitute(given), by_rows(ROWS)).sites["h"].log_prob
    wanted = by_loop(name, x)
    assert found is not None
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    every = list(latents.values())
    slopes: list[list[Any]] = [
        list(torch.autograd.grad(log.sum(), every, allow_unused=True)) for log in (found, wanted)
    ]
    for one, two in zip(*slopes, strict=True):
        if two is not None and one is not None:
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


def test_draws_have_the_moments_of_the_chain() -> None:
    """h[t] = A h[t - 1] + L e: means A^t v0, covariances A S A' + L L'."""
    model, x = model_of(CASES["VAR(1)"][0]), numbers("VAR(1)")
    rows = 40_000
    a, v0 = 0.5 * x["A"][:1], x["v0"][:1]
    latents = {"A": a.expand(rows, 3, 3), "v0": v0.expand(rows, 3)}
    drawn = model.execute(
        None, condition({"L": x["L"]}), substitute(latents), by_rows(rows), seed(torch.Generator().manual_seed(2))
    ).sites["h"]
    assert isinstance(drawn.value, Tensor)
    mean, covariance = v0[0], 4 * x["L"] @ x["L"].mT
    for t in range(5):
        each = drawn.value[:, t]
        error = covariance.diagonal().sqrt() / rows**0.5
        assert bool(((each.mean(0) - mean).abs() < 5 * error).all())
        torch.testing.assert_close(each.mT.cov(), covariance, rtol=0.06, atol=0.06 * float(covariance.diagonal().max()))
        mean, covariance = a[0] @ mean, a[0] @ covariance @ a[0].mT + x["L"] @ x["L"].mT
    noise = {"h": drawn.noise}
    again = model.execute(None, condition({"L": x["L"]}), substitute(latents), replay(noise), by_rows(rows))
    torch.testing.assert_close(again.sites["h"].value, drawn.value)


OBSERVED = """
object Time : FinSet 6
object State : FinSet 2
program p : Time -> Real 1
    sample a <- Normal(0.0, 1.0)
    data y : Time * State
    observe y[t : Time] <- MultivariateNormal(a * y[t - 1] + [0.1, 0.2], scale_tril=0.5 * eye(State)) {option}
    return a
"""


def test_an_observed_series_of_vectors_has_one_density_a_vector() -> None:
    program = dsl.loads(OBSERVED.format(option="")).programs["p"]
    y = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    a = torch.tensor([0.3, -0.8], dtype=torch.float64)
    site = program.execute(None, condition({"y": y}), substitute({"a": a}), by_rows(2), pointwise).sites["y"]
    assert site.pointwise is not None
    assert site.log_prob is not None
    shift = torch.tensor([0.1, 0.2], dtype=torch.float64)
    loc = a[:, None, None] * y[:-1] + shift
    each = MultivariateNormal(loc, scale_tril=0.5 * torch.eye(2, dtype=torch.float64)).log_prob(y[1:])
    torch.testing.assert_close(site.pointwise[:, 1:], each)
    assert bool(site.pointwise[:, 0].isnan().all())
    torch.testing.assert_close(site.log_prob, each.sum(-1))


def test_a_missing_vector_is_left_out_with_the_one_that_reads_it() -> None:
    program = dsl.loads(OBSERVED.format(option="[missing=drop]")).programs["p"]
    y = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    a = torch.tensor([0.3], dtype=torch.float64)
    shift = torch.tensor([0.1, 0.2], dtype=torch.float64)
    each = MultivariateNormal(
        a * y[:-1] + shift, scale_tril=0.5 * torch.eye(2, dtype=torch.float64)
    ).log_prob(y[1:])  # fmt: skip
    holed = y.clone()
    holed[2] = torch.nan
    found = program.execute(None, condition({"y": holed}), substitute({"a": a})).sites["y"].log_prob
    assert found is not None
    torch.testing.assert_close(found[0], each[[0, 3, 4]].sum())


def kalman(y: Tensor, a: Tensor, h: Tensor, noise: float) -> Tensor:
    """E[x | y] of x[0] ~ N(0, I), x[t] ~ N(A x[t - 1], I), y[t] ~ N(H x[t], noise²), by the joint normal."""
    time, size = len(y), len(a)
    identity = torch.eye(size, dtype=a.dtype)
    lower = torch.zeros(time * size, time * size, dtype=a.dtype)
    power = identity
    for back in range(time):
        for t in range(back, time):
            lower[t * size : (t + 1) * size, (t - back) * size : (t - back + 1) * size] = power
        power = a @ power
    prior = lower @ lower.mT
    design = torch.zeros(time, time * size, dtype=a.dtype)
    for t in range(time):
        design[t, t * size : (t + 1) * size] = h
    seen = design @ prior @ design.mT + noise**2 * torch.eye(time, dtype=a.dtype)
    return (prior @ design.mT @ torch.linalg.solve(seen, y)).reshape(time, size)


@pytest.mark.statistical
@pytest.mark.parametrize("option", ["", "[noncentred]"])
def test_nuts_finds_the_smoothed_states(option: str) -> None:
    text = f"""
object Time : FinSet 8
object State : FinSet 2
program p : Time -> Real 1
    data A : State * State
    data H : State
    sample x[t : Time] <- MultivariateNormal(matmul(A, x[t - 1]), scale_tril=eye(State))
        from MultivariateNormal(zeros(State), scale_tril=eye(State)) {option}
    observe y[t : Time] <- Normal(sum(H[s] * x[t, s] for s : State), 0.5)
    return x
"""
    a = torch.tensor([[0.8, 0.3], [-0.2, 0.6]], dtype=torch.float64)
    h = torch.tensor([1.0, 0.5], dtype=torch.float64)
    y = torch.tensor([0.5, 1.2, 0.8, 2.0, 1.1, -0.3, -0.9, 0.2], dtype=torch.float64)
    mcmc = MCMC(NUTSKernel(), num_warmup=400, num_samples=2000, num_chains=2, seed=3)
    result = mcmc.run(dsl.loads(text).morphism, None, {"A": a, "H": h, "y": y})
    draws = torch.as_tensor(result.samples["x"]).flatten(0, 1)
    wanted = kalman(y, a, h, 0.5)
    assert float(result.r_hat["x"].max()) < 1.02
    assert float((draws.mean(0).reshape(8, 2) - wanted).abs().max()) < 0.1
