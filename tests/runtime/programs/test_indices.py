"""Index notation means what a loop means, and runs as whole-tensor operations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.programs.handlers import condition
from qvr_core.runtime.values.errors import InputProblem
from tests.runtime.operations import Operations

REGRESSION = """
object County : FinSet 4
object Row : FinSet {rows}
object Feature : {{floor, area}}
object Time : FinSet {rows}

program p : Row -> Real 1
    sample a[c : County] <- Normal(0.0, 1.0)
    sample beta[f : Feature] <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    let eta[i : Row] = a[county[i]] + sum(beta[f] * x[i, f] for f : Feature)
    let total[c : County] = sum(eta[i] for i : Row if county[i] == c)
    let top[c : County] = max(eta[i] for i : Row if county[i] == c)
    let k[s : County, t : County] = a[s] * a[t]^2 + 0.1 * (s == t)
    let d[t : Time] = w[t] - w[t - 1] from 0.0
    observe y[i : Row] <- Normal(eta[i], sigma)
    return (eta, total, top, k, d)
"""


def _data(rows: int) -> dict[str, Tensor]:
    return {
        "county": torch.arange(rows) % 4,
        "x": torch.randn(rows, 2),
        "y": torch.randn(rows),
        "w": torch.randn(rows),
    }


def _run(source: str, data: dict[str, Tensor], name: str = "p") -> Any:
    return dsl.loads(source).programs[name].execute(None, condition(data))


def test_a_regression_is_what_its_loops_say() -> None:
    torch.manual_seed(0)
    data = _data(9)
    run = _run(REGRESSION.format(rows=9), data)
    a, beta, sigma = (run.sites[name].value[0] for name in ("a", "beta", "sigma"))
    eta, total, top, k, d = (part[0] for part in run.output)
    wanted = torch.stack([a[data["county"][i]] + sum(beta[f] * data["x"][i, f] for f in range(2)) for i in range(9)])
    torch.testing.assert_close(eta, wanted)
    groups = [[i for i in range(9) if data["county"][i] == c] for c in range(4)]
    torch.testing.assert_close(total, torch.stack([wanted[group].sum() for group in groups]))
    torch.testing.assert_close(top, torch.stack([wanted[group].max() for group in groups]))
    torch.testing.assert_close(k, a[:, None] * a[None, :] ** 2 + 0.1 * torch.eye(4))
    torch.testing.assert_close(d, torch.cat([torch.zeros(1), data["w"][1:] - data["w"][:-1]]))
    torch.testing.assert_close(run.sites["y"].log_prob.sum(), Normal(wanted, sigma).log_prob(data["y"]).sum())


def test_ten_rows_and_ten_thousand_take_as_many_operations() -> None:
    counts: list[int] = []
    for rows in (10, 10_000):
        torch.manual_seed(0)
        data = _data(rows)
        model = dsl.loads(REGRESSION.format(rows=rows)).programs["p"]
        with Operations() as operations:
            model.execute(None, condition(data))
        counts.append(operations.count)
    assert counts[0] == counts[1]


SERIES = """
object Time : FinSet 12
object Group : FinSet 3
object Lag : FinSet 2

program levels : Time -> Real 1
    let (l, b)[t : Time] = (
        0.5 * w[t] + 0.5 * (l[t - 1] + b[t - 1]), 0.3 * (l[t] - l[t - 1]) + 0.7 * b[t - 1]
    ) from (0.0, 0.1)
    let v[t : Time] = 0.1 + 0.3 * w[t - 1]^2 + 0.5 * v[t - 2] from (1.0, 2.0)
    return (l, b, v)

program volatility : Time -> Real 1
    sample mu <- Normal(0.0, 1.0)
    sample phi <- Uniform(-1.0, 1.0)
    sample s <- HalfNormal(0.5)
    sample h[t : Time] <- Normal(mu + phi * (h[t - 1] - mu), s) from Normal(mu, s / sqrt(1.0 - phi^2))
    observe y[t : Time] <- Normal(0.0, exp(h[t] / 2.0))
    return h

program autoregression : Time -> Real 1
    sample c <- Normal(0.0, 1.0)
    sample phi[j : Lag] <- Normal(0.0, 0.5)
    sample s <- HalfNormal(1.0)
    observe y[t : Time] <- Normal(c + sum(phi[j] * y[t - 1 - j] for j : Lag), s)
    return c

program garch : Time -> Real 1
    sample a <- HalfNormal(1.0)
    sample b <- Uniform(0.0, 1.0)
    let v[t : Time] = 0.2 + a * y[t - 1]^2 + b * v[t - 1] from 1.0
    observe y[t : Time] <- Normal(0.0, sqrt(v[t]))
    return v

program panel : Time -> Real 1
    sample r[g : Group] <- Normal(0.0, 0.3)
    sample h[g : Group, t : Time] <- Normal(r[g] * h[g, t - 1], 1.0) from Normal(r[g], 2.0)
    observe y[t : Time, g : Group] <- Normal(h[g, t], 1.0)
    return h

program walk : Time -> Real 1
    sample h[t : Time] <- Normal(h[t - 1], 0.5) from Normal(10.0, 0.1)
    return h
"""


def test_recursions_run_in_order() -> None:
    torch.manual_seed(0)
    w = torch.randn(12)
    levels, b, v = _run(SERIES, {"w": w}, "levels").output
    level, slope, var = [torch.tensor(0.0)], [torch.tensor(0.1)], [torch.tensor(1.0), torch.tensor(2.0)]
    for t in range(1, 12):
        level.append(0.5 * w[t] + 0.5 * (level[-1] + slope[-1]))
        slope.append(0.3 * (level[-1] - level[-2]) + 0.7 * slope[-1])
    for t in range(2, 12):
        var.append(0.1 + 0.3 * w[t - 1] ** 2 + 0.5 * var[t - 2])
    for found, wanted in ((levels, level), (b, slope), (v, var)):
        torch.testing.assert_close(found.squeeze(0), torch.stack(wanted))


@pytest.mark.parametrize("name", ["volatility", "autoregression", "garch", "panel"])
def test_densities_of_series_are_exact(name: str) -> None:
    torch.manual_seed(0)
    y = torch.randn(12, 3) if name == "panel" else torch.randn(12)
    run = _run(SERIES, {"y": y}, name)
    at = {site: record.value[0] for site, record in run.sites.items() if site != "y"}
    match name:
        case "volatility":
            mu, phi, s, h = at["mu"], at["phi"], at["s"], at["h"]
            prior = Normal(mu, s / (1 - phi**2).sqrt()).log_prob(h[0])
            prior = prior + Normal(mu + phi * (h[:-1] - mu), s).log_prob(h[1:]).sum()
            torch.testing.assert_close(run.sites["h"].log_prob[0], prior)
            wanted = Normal(0.0, (h / 2).exp()).log_prob(y).sum()
        case "autoregression":
            mean = at["c"] + at["phi"][0] * y[1:-1] + at["phi"][1] * y[:-2]
            wanted = Normal(mean, at["s"]).log_prob(y[2:]).sum()
        case "garch":
            var = [torch.tensor(1.0)]
            for t in range(1, 12):
                var.append(0.2 + at["a"] * y[t - 1] ** 2 + at["b"] * var[-1])
            wanted = Normal(0.0, torch.stack(var).sqrt()).log_prob(y).sum()
        case _:
            r, h = at["r"], at["h"]
            prior = (
                Normal(r, 2.0).log_prob(h[:, 0]).sum() + Normal(r[:, None] * h[:, :-1], 1.0).log_prob(h[:, 1:]).sum()
            )
            torch.testing.assert_close(run.sites["h"].log_prob[0], prior)
            wanted = Normal(h.T, 1.0).log_prob(y).sum()
    torch.testing.assert_close(run.sites["y"].log_prob[0], wanted)


def test_a_chain_is_drawn_from_the_first_element_on() -> None:
    torch.manual_seed(0)
    model = dsl.loads(SERIES).programs["walk"]
    drawn = model.rsample(sample_shape=(4_000,)).reshape(-1, 12)
    wanted = (0.1**2 + 0.25 * torch.arange(12)).sqrt()
    torch.testing.assert_close(drawn.mean(0), torch.full((12,), 10.0), atol=0.12, rtol=0)
    torch.testing.assert_close(drawn.std(0), wanted, atol=0.06, rtol=0.06)


def test_a_chain_is_sampled_by_nuts() -> None:
    model = dsl.loads(SERIES).programs["panel"]
    result = MCMC(NUTSKernel(), num_warmup=150, num_samples=150, num_chains=1, seed=1).run(
        model, None, {"y": torch.zeros(12, 3)}
    )
    assert result.samples["h"].shape == (1, 150, 3, 12)
    assert abs(float(result.samples["h"].mean())) < 0.2


LABELS = """
object Kind : {k, "town house"}
object Row : FinSet 3
program p : Row -> Row
    data kind : Row -> Kind
    let same[k : Kind, l : Kind] = where(k == l, 1.0, 0.0)
    let town[i : Row] = ("town house" == kind[i]) + 2.0 * (kind[i] == "k") + 4.0 * (kind[i] == k)
    observe y[i : Row] <- Normal(town[i], 1.0)
    return (same, town)
"""


def test_an_index_hides_a_label_and_one_in_quotes_is_the_element_it_names() -> None:
    same, town = _run(LABELS, {"kind": torch.tensor([0, 1, 1]), "y": torch.zeros(3)}).output
    torch.testing.assert_close(same.reshape(2, 2), torch.eye(2))
    torch.testing.assert_close(town.flatten(), torch.tensor([6.0, 1.0, 1.0]))


def test_a_finite_set_beside_indices_is_what_each_element_is_drawn_from() -> None:
    """log p = sum over rows of log share[k[i]] (the categorical mass function)."""
    model = dsl.loads(
        "object Row : FinSet 4\nobject Kind : FinSet 3\nprogram p : Row -> Real 1\n"
        "    sample share : Kind <- Dirichlet(1.0)\n    sample k[i : Row] : Kind <- Categorical(share)\n"
        "    sample b[c : Kind] <- Normal(0.0, 1.0)\n    observe y[i : Row] <- Normal(b[k[i]], 1.0)\n    return b\n"
    ).morphism
    share, kinds = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([2, 0, 1, 2])
    known = {"share": share[None], "k": kinds[None], "y": torch.zeros(4)}
    run = model.execute(None, condition(known))
    torch.testing.assert_close(run.sites["k"].log_prob[0], share.log()[kinds].sum())
    drawn = model.execute(None, condition({"share": torch.tensor([[0.0, 0.0, 1.0]])})).sites["k"].value
    assert drawn.tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize(("x", "found"), [(torch.zeros(5), "found 5"), (torch.tensor(1.0), "found a single number")])
def test_data_that_lack_elements_of_an_index_are_told(x: Tensor, found: str) -> None:
    source = """
object Row : FinSet 8
program p : Row -> Real 1
    sample b <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(b * x[i], 1.0)
    return b
"""
    with pytest.raises(InputProblem, match=f"expected `x` with 8 elements, one for each `i`, {found}") as told:
        _run(source, {"x": x, "y": torch.zeros(8)})
    assert told.value.place is not None
