"""What `predict` draws after a fit agrees with closed forms, and the fit knows nothing of it."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.inference.mcmc import MCMCResult
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.handlers import condition
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem

FORECAST = """
object Time : FinSet 12
object Ahead : FinSet 4
program ar : Time -> Real 1
    sample a <- Normal(0.0, 1.0)
    sample b <- Uniform(-1.0, 1.0)
    sample s <- HalfNormal(1.0)
    observe y[t : Time] <- Normal(a + b * y[t - 1], s)
    predict f[h : Ahead] <- Normal(a + b * f[h - 1], s) from Normal(a + b * y[-1], s)
    let total = sum(f[h] for h : Ahead)
    predict late <- Normal(total, 0.1)
    return a
"""


def _normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_forecast_has_the_moments_of_its_closed_form() -> None:
    model, y, count = dsl.loads(FORECAST).programs["ar"], _normals(12), 20_000
    a, b, s = 0.5, 0.7, 0.3
    latents = {"a": torch.full((count,), a), "b": torch.full((count,), b), "s": torch.full((count,), s)}
    drawn = Predictive(model, posterior_samples=latents)(None, {"y": y}, generator=torch.Generator().manual_seed(1))
    mean, variance = float(y[-1]), 0.0
    for step in range(4):
        mean, variance = a + b * mean, b**2 * variance + s**2
        found = drawn["f"][:, step]
        assert float(found.mean()) == pytest.approx(mean, abs=0.02)
        assert float(found.std()) == pytest.approx(variance**0.5, abs=0.02)
    torch.testing.assert_close(drawn["total"], drawn["f"].sum(-1))
    assert float((drawn["late"] - drawn["total"]).std()) == pytest.approx(0.1, abs=0.005)


def test_a_posterior_predictive_looks_one_step_ahead() -> None:
    model, y, count = dsl.loads(FORECAST).programs["ar"], _normals(12), 20_000
    latents = {"a": torch.full((count,), 0.5), "b": torch.full((count,), 0.7), "s": torch.full((count,), 0.3)}
    drawn = Predictive(model, posterior_samples=latents)(None, {"y": y}, generator=torch.Generator().manual_seed(1))[
        "y"
    ]
    torch.testing.assert_close(drawn[:, 1:].mean(0), 0.5 + 0.7 * y[:-1], atol=0.02, rtol=0)
    torch.testing.assert_close(drawn[:, 1:].std(0), torch.full((11,), 0.3), atol=0.02, rtol=0)
    assert bool((drawn[:, 0] == y[0]).all())


def test_the_fit_does_not_know_of_predictions() -> None:
    short = "\n".join(line for line in FORECAST.splitlines() if "predict" not in line and "total" not in line)
    values = {"a": torch.tensor([0.1]), "b": torch.tensor([0.4]), "s": torch.tensor([0.8]), "y": _normals(12)}
    with_it, without = (dsl.loads(text).programs["ar"] for text in (FORECAST, short))
    torch.testing.assert_close(with_it.log_joint(None, values), without.log_joint(None, values))
    assert set(with_it.execute(None, condition({"y": values["y"]})).sites) == {"a", "b", "s", "y"}
    assert set(with_it.site_infos()) == {"a", "b", "s", "y"}


def test_a_prediction_needs_the_data_that_it_reads() -> None:
    model = dsl.loads(FORECAST).programs["ar"]
    latents = {"a": torch.zeros(3), "b": torch.zeros(3), "s": torch.ones(3)}
    with pytest.raises(InputProblem, match="`f` is predicted from `y`: give its observed values"):
        Predictive(model, posterior_samples=latents)(None, {})


MRP = """
object State : {north, south}
object Cell : FinSet 4
object Person : FinSet 400
program mrp : Person -> Real 1
    data cell : Person -> Cell
    data state : Cell -> State
    data n : Cell
    sample p[c : Cell] <- Beta(2.0, 2.0)
    observe vote[i : Person] <- Bernoulli(p[cell[i]])
    let whole[s : State] = sum(n[c] for c : Cell if state[c] == s)
    predict share[s : State] <- Normal(sum(n[c] * p[c] for c : Cell if state[c] == s) / whole[s], 0.001)
    let swing = share[north] - share[south]
    return p
"""


def _survey() -> tuple[ProgramModule, dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    cell = torch.randint(4, (400,), generator=generator)
    vote = (torch.rand(400, generator=generator) < torch.tensor([0.2, 0.4, 0.6, 0.8])[cell]).long()
    state, n = torch.tensor([0, 1, 0, 1]), torch.tensor([100.0, 300.0, 500.0, 50.0])
    return dsl.loads(MRP).programs["mrp"], {"cell": cell, "vote": vote, "state": state, "n": n}


def _sampled(model: ProgramModule, data: dict[str, Tensor]) -> MCMCResult:
    return MCMC(NUTSKernel(), num_warmup=200, num_samples=500, num_chains=2, seed=0).run(model, None, data)


def test_poststratified_shares_of_a_survey() -> None:
    model, data = _survey()
    result = _sampled(model, data)
    shares = result.predictions["share"]
    assert shares.shape == (2, 500, 2)
    counts = torch.bincount(data["cell"], minlength=4)
    for_it = torch.bincount(data["cell"], weights=data["vote"].float(), minlength=4)
    cells = [stats.beta(2 + float(yes), 2 + float(all_ - yes)) for yes, all_ in zip(for_it, counts, strict=True)]
    for place, members in enumerate(([0, 2], [1, 3])):
        weights = [float(data["n"][c]) for c in members]
        mean = sum(w * cells[c].mean() for w, c in zip(weights, members, strict=True)) / sum(weights)
        spread = sum((w / sum(weights)) ** 2 * cells[c].var() for w, c in zip(weights, members, strict=True)) ** 0.5
        assert float(shares[..., place].mean()) == pytest.approx(mean, abs=0.01)
        assert float(shares[..., place].std()) == pytest.approx(spread, abs=0.005)
    torch.testing.assert_close(result.predictions["swing"], shares[..., 0] - shares[..., 1])


def test_predictions_are_stored_with_their_labels() -> None:
    result = _sampled(*_survey())
    tree = result.to_arviz()
    assert set(tree["posterior_predictive"].data_vars) == {"vote", "share", "swing"}
    assert list(tree["posterior_predictive"]["State"].values) == ["north", "south"]
    assert set(tree["posterior"].data_vars) == {"p"}
    assert "share" not in tree["log_likelihood"].data_vars


def test_data_drawn_anew_and_predictions_are_independent_given_the_latents() -> None:
    """Both are made for draws that a run has stored, each by a seed of its own: one would make them the same draws."""
    text = """object Time : FinSet 12
program p : Time -> Real 1
    sample a <- Normal(0.0, 1.0)
    observe y[t : Time] <- Normal(a, 1.0)
    predict again[t : Time] <- Normal(a, 1.0)
    return a
"""
    model, y, count = dsl.loads(text).programs["p"], _normals(12), 2_000
    latents = {"a": torch.zeros(count)}
    given = Given(model, None, {"y": y})
    for number in (0, 1, 7):
        drawn, later = given.replicates(latents, number)["y"], given.predictions(latents)["again"]
        assert drawn.shape == later.shape == (count, 12)
        together = torch.corrcoef(torch.stack([drawn.reshape(-1), later.reshape(-1)]))
        assert abs(float(together[0, 1])) < 5.0 / (12 * count) ** 0.5
