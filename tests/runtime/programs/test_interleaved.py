"""Draws of steps that read one another go through them element by element."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, seed, substitute

SERIES = """
object Time : FinSet 12
object Group : FinSet 2

program garch : Time -> Real 1
    sample a <- Uniform(0.0, 0.5)
    let v[t : Time] = 0.2 + a * y[t - 1]^2 + 0.3 * v[t - 1] from 1.5
    let sd[s : Time] = sqrt(v[s])
    let mean_variance = mean(v)
    sample mu <- Normal(0.0, 1.0)
    observe y[u : Time] <- Normal(mu, sd[u])
    return (v, mean_variance)

program leverage : Time -> Real 1
    sample h[t : Time] <- Normal(0.9 * h[t - 1] - 0.3 * y[t - 1], 0.2) from Normal(0.0, 0.5)
    observe y[t : Time] <- Normal(0.0, exp(h[t] / 2))
    return h

program panel : Time -> Real 1
    sample r[g : Group] <- Normal(0.0, 0.3)
    let m[g : Group, t : Time] = r[g] + 0.5 * y[t - 1, g] from r[g]
    observe y[t : Time, g : Group] <- Normal(m[g, t], 1.0)
    return m

program neighbours : Time -> Real 1
    data near : Group * Time -> Group
    sample a <- Normal(0.0, 0.3)
    let m[g : Group, t : Time] = a * m[near[g, t], t - 1] + 0.5 * y[near[g, t], t - 1] from a
    observe y[g : Group, t : Time] <- Normal(m[g, t], 1.0)
    return m

program two : Time -> Real 1
    observe x[t : Time] <- Normal(0.5 * y[t - 1], 1.0) from Normal(0.0, 1.0)
    observe y[t : Time] <- Normal(x[t], 0.1)
    return x
"""


def _drawn(name: str, rows: int = 3, *handlers: Any) -> Any:
    model = dsl.loads(SERIES).programs[name]
    return model.execute(None, by_rows(rows), seed(torch.Generator().manual_seed(0)), *handlers)


def _score(name: str, values: dict[str, Tensor]) -> Tensor:
    """log p of values, the observed ones given as data, row by row."""
    model = dsl.loads(SERIES).programs[name]
    rows: list[Tensor] = []
    for row in range(len(next(iter(values.values())))):
        given = {key: value[row] if key in {"x", "y"} else value[row : row + 1] for key, value in values.items()}
        rows.append(model.log_joint(None, given))
    return torch.cat(rows)


def test_a_draw_follows_its_recursion() -> None:
    run = _drawn("garch")
    y, a, mu = (run.sites[name].value for name in ("y", "a", "mu"))
    v = run.output[0]
    assert y.shape == v.shape == (3, 12)
    wanted = [torch.full((3,), 1.5)]
    for t in range(1, 12):
        wanted.append(0.2 + a * y[:, t - 1] ** 2 + 0.3 * wanted[-1])
    torch.testing.assert_close(v, torch.stack(wanted, -1))
    torch.testing.assert_close(run.output[1], v.mean(-1))
    torch.testing.assert_close(run.sites["y"].log_prob, Normal(mu.unsqueeze(-1), v.sqrt()).log_prob(y).sum(-1))


def test_a_draw_follows_a_recursion_that_reads_the_past_of_another_series() -> None:
    near = torch.randint(0, 2, (2, 12), generator=torch.Generator().manual_seed(1))
    run = _drawn("neighbours", 3, condition({"near": near}))
    a, y, m = run.sites["a"].value, run.sites["y"].value, run.output
    assert torch.allclose(m[:, :, 0], a.unsqueeze(-1).expand(3, 2))
    for t in range(1, 12):
        wanted = a.unsqueeze(-1) * m[:, near[:, t], t - 1] + 0.5 * y[:, near[:, t], t - 1]
        assert torch.allclose(m[:, :, t], wanted, atol=1e-6)
    assert y.std() > 0.5


@pytest.mark.parametrize("name", ["garch", "leverage", "panel", "two"])
def test_densities_of_draws_are_those_of_data(name: str) -> None:
    run = _drawn(name)
    values = {site: record.value for site, record in run.sites.items()}
    torch.testing.assert_close(run.log_joint(), _score(name, values))


def test_draws_have_the_moments_of_the_process() -> None:
    run = _drawn("panel", 20_000)
    y = run.sites["y"].value
    assert y.shape == (20_000, 12, 2)
    # y[t] = r + y[t - 1] / 2 + e from y[0] = r + e
    variance, weight = 1.0, 1.0
    for t in range(12):
        if t:
            weight, variance = 1.0 + 0.5 * weight, 1.0 + 0.25 * variance
        total = variance + (0.3 * weight) ** 2
        assert float(y[:, t].mean()) == pytest.approx(0.0, abs=0.05)
        assert float(y[:, t, 0].var()) == pytest.approx(total, rel=0.05)


def test_the_prior_draws_a_path_and_the_posterior_looks_one_step_ahead() -> None:
    model = dsl.loads(SERIES).programs["garch"]
    prior = Predictive(model, num_samples=50)(None, {})
    assert prior["y"].shape == (50, 12) and prior["y"].std(0).min() > 0
    y = torch.linspace(-1.0, 1.0, 12)
    latents = {"a": torch.full((20_000,), 0.4), "mu": torch.zeros(20_000)}
    ahead = Predictive(model, posterior_samples=latents)(None, {"y": y})["y"]
    v = [torch.tensor(1.5)]
    for t in range(1, 12):
        v.append(0.2 + 0.4 * y[t - 1] ** 2 + 0.3 * v[-1])
    torch.testing.assert_close(ahead.std(0), torch.stack(v).sqrt(), rtol=0.03, atol=0)


def test_latents_that_are_given_stay() -> None:
    h = torch.randn(3, 12, generator=torch.Generator().manual_seed(2))
    run = _drawn("leverage", 3, substitute({"h": h}))
    assert torch.equal(run.output, h)
    assert run.sites["y"].value.shape == (3, 12)
    again = _drawn("leverage", 1, condition({"y": run.sites["y"].value[0]}), substitute({"h": h[:1]}))
    torch.testing.assert_close(again.log_joint(), run.log_joint()[:1])
