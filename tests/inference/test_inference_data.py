"""The tree that a fit leaves: its groups against closed forms, by NUTS and from a guide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray
from arviz_stats.base.array import array_stats
from scipy import stats

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel, inference_data
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.netcdf import read_netcdf, write_netcdf
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.prediction import latents_of
from tests.runs.jobs import make_job

Y = np.array([0.3, 1.2, -0.7, 2.5, 1.1, 0.4])
NORMAL = """
object Row : {a, b, c, d, e, f}
program p : Row -> Row
    data x : Row
    sample mu <- Normal(0.0, 2.0)
    let eta = mu + x
    observe y : Row <- Normal(eta, 1.0)
    return mu
"""
VARIANCE = 1 / (1 / 4 + len(Y))
X = np.arange(6) / 2
GROUPS = {
    "posterior", "sample_stats", "posterior_predictive", "log_likelihood", "prior", "prior_predictive",
    "observed_data", "constant_data",
}  # fmt: skip


def leave_one_out() -> np.ndarray:
    """log p(y_i | the others) of the normal with known variance."""
    others = (Y - X).sum() - (Y - X)
    variance = 1 / (1 / 4 + len(Y) - 1)
    return stats.norm(X + others * variance, np.sqrt(variance + 1)).logpdf(Y)


def check(tree: xarray.DataTree, within: float) -> None:
    """The figures of the conjugate normal in a tree."""
    assert set(tree.children) == GROUPS
    mean = VARIANCE * (Y - X).sum()
    assert float(tree["posterior"]["mu"].mean()) == pytest.approx(mean, abs=within)
    again = tree["posterior_predictive"]["y"]
    assert list(again["Row"].values) == list("abcdef")
    np.testing.assert_allclose(again.mean(("chain", "draw")), mean + X, atol=3 * within)
    np.testing.assert_allclose(again.var(("chain", "draw")), VARIANCE + 1, atol=5 * within)
    prior = tree["prior_predictive"]["y"].values[0]
    assert prior.var(0) == pytest.approx(np.full(6, 5.0), rel=0.3)
    between = tree["prior"]["eta"].values[0] - tree["prior"]["mu"].values[0][:, None]
    np.testing.assert_allclose(between, np.broadcast_to(X, between.shape), atol=1e-5)
    np.testing.assert_allclose(tree["constant_data"]["x"].values, X)
    assert tree["constant_data"]["x"].dims == ("Row",)
    np.testing.assert_allclose(tree["observed_data"]["y"].values, Y, rtol=1e-6)
    elpd, _, _ = array_stats.loo(tree["log_likelihood"]["y"].to_numpy(), chain_axis=0, draw_axis=1)
    np.testing.assert_allclose(elpd, leave_one_out(), atol=3 * within)


def test_chains_leave_all_groups_in_double_precision() -> None:
    given = {"y": torch.tensor(Y), "x": torch.tensor(X)}
    result = MCMC(NUTSKernel(), 300, 1000, 4, seed=2).run(loads(NORMAL).morphism, None, given)
    tree = result.to_arviz()
    check(tree, 0.03)
    kept = {"diverging", "acceptance_rate", "tree_depth", "n_steps", "step_size", "lp", "energy"}
    assert set(tree["sample_stats"].data_vars) == kept
    for group in ("posterior", "log_likelihood", "posterior_predictive"):
        assert all(variable.dtype == np.float64 for variable in tree[group].data_vars.values())


@pytest.mark.long
def test_a_fit_by_svi_leaves_the_same_groups_and_its_weights(tmp_path: Path) -> None:
    rows = "\n".join(f"{row},{x},{y}" for row, x, y in zip("abcdef", X, Y, strict=True))
    (tmp_path / "d.csv").write_text(f"Row,x,y\n{rows}\n")
    job = make_job(tmp_path, NORMAL, "p", data="csv:d.csv", steps=2000, particles=8, batch_size=None)
    last = list(SviFit(prepare(job, analyse(NORMAL)), Stop()).run())[-1]
    assert isinstance(last, Finished)
    with xarray.open_datatree(RunDirectory.of(job).posterior, engine="h5netcdf") as tree:
        check(tree, 0.06)
        # the guide has the posterior's form, so log p(y, z) − log q(z) is the log evidence whatever z is
        evidence = stats.multivariate_normal(X, np.eye(6) + 4.0).logpdf(Y)
        weights = tree["sample_stats"]["log_weight"].values
        assert float(np.median(weights)) == pytest.approx(evidence, abs=0.05) and weights.std() < 0.1


def test_latents_called_as_the_dimensions_of_draws_are_stored_and_read_again(tmp_path: Path) -> None:
    text = """
object Row : FinSet 3
program p : Row -> Row
    sample chain <- Normal(0.0, 1.0)
    sample draw : Row <- Normal(chain, 1.0)
    observe y : Row <- Normal(draw, 1.0)
    return draw
export p
"""
    given = {"y": torch.tensor([0.1, 0.2, 0.3])}
    result = MCMC(NUTSKernel(), 20, 30, 2, seed=2).run(loads(text).morphism, None, given)
    write_netcdf(tmp_path / "posterior.nc", result.groups().tree())
    stored = read_netcdf(tmp_path / "posterior.nc")["posterior"]
    assert stored["draw."].sizes == {"chain": 2, "draw": 30, "Row": 3}
    again = latents_of({name: torch.from_numpy(one.values) for name, one in stored.data_vars.items()}, result.given)
    for name in ("chain", "draw"):
        torch.testing.assert_close(again[name], result.samples[name])


def test_predictors_that_are_filled_in_are_no_observations() -> None:
    text = """
object Row : FinSet 6
program p : Row -> Row
    data x, y : Row
    sample b <- Normal(0.0, 1.0)
    observe x[i : Row] <- Normal(0.0, 1.0) [missing=impute]
    let eta[i : Row] = b * x[i]
    observe y[i : Row] <- Normal(eta[i], 1.0)
    return b
"""
    x = torch.tensor([0.5, torch.nan, 1.0, -1.0, 0.2, torch.nan], dtype=torch.float64)
    result = MCMC(NUTSKernel(), 50, 50, 2, seed=0).run(loads(text).morphism, None, {"x": x, "y": torch.tensor(Y)})
    assert set(result.to_arviz()["log_likelihood"].data_vars) == {"y"}
    pareto = next(one for one in result.checks if one.name == "Pareto k")
    assert "6 observations" in pareto.text or (pareto.worst or "").startswith("y"), pareto


def test_what_cannot_be_drawn_from_a_prior_is_said() -> None:
    text = NORMAL.replace("Normal(0.0, 2.0)", "Flat()")
    given = {"y": torch.tensor(Y), "x": torch.tensor(X)}
    groups = MCMC(NUTSKernel(), 50, 20, 1, seed=2).run(loads(text).morphism, None, given).groups()
    assert set(GROUPS) - set(groups.found) == {"prior", "prior_predictive"}
    assert len(groups.notes) == 1 and "no draws from the prior" in groups.notes[0]


MIXTURE = """
object Row : {a, b, c, d, e, f}
object Kind : {low, high}
program m : Row -> Row
    sample w <- Dirichlet(2.0) [over=Kind]
    sample centre : Kind <- Normal(0.0, 1.0)
    marginalize z : Row <- Categorical(w)
        observe y : Row <- Normal(centre[z], 0.7)
    return centre
"""


def check_kinds(tree: xarray.DataTree) -> None:
    """The probabilities of the kinds of a mixture by Bayes' rule, for each draw."""
    found, latents = tree["posterior_predictive"]["z"], tree["posterior"]
    assert found.dims == ("chain", "draw", "Row", "Kind")
    assert list(found["Kind"].values) == ["low", "high"] and list(found["Row"].values) == list("abcdef")
    centre = latents["centre"].transpose("chain", "draw", "Kind").to_numpy()
    joint = latents["w"].to_numpy()[:, :, None] * stats.norm(centre[:, :, None], 0.7).pdf(Y[:, None])
    np.testing.assert_allclose(found, joint / joint.sum(-1, keepdims=True), atol=1e-5)


def test_hidden_states_have_their_probabilities_for_each_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = MCMC(NUTSKernel(), 50, 30, 2, seed=2).run(loads(MIXTURE).morphism, None, {"y": torch.tensor(Y)})
    check_kinds(result.to_arviz(prior_draws=0))
    rows = "\n".join(f"{row},{y}" for row, y in zip("abcdef", Y, strict=True))
    (tmp_path / "d.csv").write_text(f"Row,y\n{rows}\n")
    job = make_job(tmp_path, MIXTURE, "m", data="csv:d.csv", steps=20, batch_size=None)
    list(SviFit(prepare(job, analyse(MIXTURE)), Stop()).run())
    with xarray.open_datatree(RunDirectory.of(job).posterior, engine="h5netcdf") as tree:
        check_kinds(tree)
    # 2 chains of 30 draws with 6 rows of 2 kinds
    monkeypatch.setattr(inference_data, "MOST_HIDDEN", 719)
    groups = result.groups(0)
    assert list(groups.found["posterior_predictive"].data_vars) == ["y"]
    assert groups.notes == [
        "the probabilities of the states of `z` are left out of the stored draws: more than 719 numbers"
    ]
