"""Rows of the posterior table go by the labels of the sets that a site runs over."""

from __future__ import annotations

import math
from pathlib import Path

import polars
import pytest
import torch
import xarray
from rich.console import Console

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.cli.output.run_display import folded_sites, posterior_table
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.axes import axes_of
from qvr_core.runs.evaluation.loo import called
from qvr_core.runs.evaluation.posterior_table import table
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.exports import export_csv
from qvr_core.runs.record.protocol import Finished, Job, PosteriorRow
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.labelled.axes import site_axes
from tests.runs.jobs import make_job

SOURCE = """
object Row : FinSet 9
object County : FinSet 2
object Feature : {floor, "living area"}
program p : Row -> Real 1
    sample beta[f : Feature] <- Normal(0.0, 1.0)
    sample u[c : County, f : Feature] <- Normal(0.0, 1.0)
    sample w : Feature <- Dirichlet(2.0)
    sample s <- HalfNormal(1.0)
    observe y : Row <- Normal(beta[floor] + u[0, floor] + w[0], s)
    return beta
"""


def test_rows_are_named_by_labels() -> None:
    model = dsl.loads(SOURCE).programs["p"]
    draws = {"beta": torch.randn(5, 2), "u": torch.randn(5, 2, 2), "w": torch.rand(5, 2), "s": torch.rand(5)}
    assert [row.name for row in table(draws, axes_of(model))] == [
        "beta[floor]", "beta[living area]",
        "u[0, floor]", "u[0, living area]", "u[1, floor]", "u[1, living area]",
        "w[floor]", "w[living area]",
        "s",
    ]  # fmt: skip


SIZED = """
object Row : FinSet 9
object Group : {north, south}
object Cut : {low, mid, high}
object Effect : {level, slope}
object Cuts : Ordered Cut
program p : Row -> Real 1
    sample cuts : Ordered Cut <- Normal(0.0, 5.0)
    sample named : Cuts <- Normal(0.0, 5.0)
    sample each[g : Group] : Ordered Cut <- Normal(0.0, 5.0)
    sample L : CholeskyFactor Effect <- LKJCholesky(2.0)
    sample R : CholeskyFactor 2 <- LKJCholesky(2.0) [over=Effect]
    sample q : Simplex Cut <- Dirichlet([1.0, 1.0, 1.0])
    observe y : Row <- Normal(cuts[0] + L[1, 0] + each[0, 0] + q[0] + R[1, 0] + named[0], 1.0)
    return cuts
"""


@pytest.mark.parametrize(
    ("site", "shape", "some"),
    [
        ("cuts", (3,), ["cuts[low]", "cuts[mid]", "cuts[high]"]),
        ("named", (3,), ["named[low]"]),
        ("each", (2, 3), ["each[north, low]", "each[south, high]"]),
        ("L", (2, 2), ["L[slope, level]", "L[slope, slope]"]),
        ("R", (2, 2), ["R[slope, level]"]),
        ("q", (3,), ["q[mid]"]),
    ],
)
def test_entries_go_by_the_set_that_the_size_of_their_space_is(
    site: str, shape: tuple[int, ...], some: list[str]
) -> None:
    model = dsl.loads(SIZED).programs["p"]
    found = [row.name for row in table({site: torch.randn(5, *shape)}, axes_of(model))]
    assert set(some) <= set(found) and not any("[0" in name for name in found)


def test_a_label_is_no_markup_of_the_terminal() -> None:
    row = PosteriorRow(name="beta[floor]", mean=0.0, sd=1.0, q05=-1.0, median=0.0, q95=1.0)
    console = Console(width=100)
    with console.capture() as shown:
        other = row.model_copy(update={"name": "a[\x1b[31mx]"})
        console.print(posterior_table((row, other)))
    assert "beta[floor]" in shown.get()
    assert "\x1b" not in shown.get()


BASIS = """
object Row, Basis : FinSet 6
program p : Row -> Row
    data x : Row * Basis
    sample z[j : Basis] <- Normal(0.0, 1.0)
    sample tau <- HalfNormal(1.0)
    let eta[i : Row] = tau * sum(z[j] * x[i, j] for j : Basis)
    observe y[i : Row] <- Normal(eta[i], 1.0)
    return tau
"""


def test_standardised_numbers_that_only_others_are_computed_with_are_one_row(tmp_path: Path) -> None:
    rows = tuple(
        PosteriorRow(name=name, mean=1.0, sd=1.0, q05=0.0, median=1.0, q95=2.0, r_hat=r_hat, ess=ess)
        for name, r_hat, ess in [("tau", 1.0, 900.0), *((f"z[{at}]", 1.0 + at / 100, 400.0 + at) for at in range(6))]
    )
    config = RunConfig(algorithm="nuts")
    job = Job(run_id="r", directory=str(tmp_path), path="m.qvr", text=BASIS, config=config, program="p", base=".")
    folded = folded_sites(rows, job)
    assert list(folded) == ["z"]
    console = Console(width=120)
    with console.capture() as shown:
        console.print(posterior_table(rows, folded))
    lines = shown.get().splitlines()
    assert not any("z[0]" in line for line in lines)
    (line,) = (line for line in lines if "z[…], 6 numbers" in line)
    assert "1.05" in line and "400" in line and any("tau" in one for one in lines)
    assert folded_sites(rows[:4], job) == (), "few are shown one by one"


CELLS = """
object Person : FinSet _
program p : Person -> Person
    data bmi : Person
    sample mu <- Normal(25.0, 5.0)
    observe {step} <- Normal(mu, 3.0) [missing=impute]
    return mu
"""


@pytest.mark.parametrize("step", ["bmi", "bmi : Person", "bmi[i : Person]"])
def test_filled_in_cells_have_the_labels_of_the_data_however_the_step_is_written(step: str) -> None:
    frame = polars.DataFrame({"Person": ["q0", "q1", "q2", "q3"], "bmi": [None, 25.0, 22.0, None]})
    file = dsl.loads(CELLS.format(step=step), data=frame)
    model = file.programs["p"]
    observed = {"bmi": torch.tensor([math.nan, 25.0, 22.0, math.nan])}
    result = MCMC(NUTSKernel(), 20, 10, 1, seed=1).run(model, None, observed)
    assert {"bmi[q0]", "bmi[q3]"} <= set(result.summary()["name"])
    tree = result.to_arviz()
    assert tree["posterior"]["bmi"].coords["bmi_missing"].values.tolist() == ["q0", "q3"]
    assert tree["posterior_predictive"]["bmi"].coords["Person"].values.tolist() == ["q0", "q1", "q2", "q3"]
    assert site_axes(model.program)["bmi"][0].labels == ("q0", "q1", "q2", "q3")  # what `qvr sample` calls them


SERIES = """
object Time : FinSet 4
object Firm : {"General Motors", tesla}
program p : Time -> Time
    data y : Firm * Time
    sample m : Firm <- Normal(0.0, 1.0)
    let level[f : Firm, t : Time] = m[f] * t
    let gap = level - y
    let cross[s : Firm, t : Firm] = m[s] * m[t]
    observe y[f : Firm, t : Time] <- Normal(level[f, t], 1.0) [missing=impute]
    return (gap, cross)
"""


def test_dimensions_are_called_as_sets_and_have_their_labels() -> None:
    y = torch.tensor([[0.1, math.nan, 0.3, 0.2], [0.1, 0.2, 0.3, math.nan]]).double()
    result = MCMC(NUTSKernel(), 20, 10, 1, seed=1).run(dsl.loads(SERIES).programs["p"], None, {"y": y})
    tree = result.to_arviz()
    firms = ["General Motors", "tesla"]
    posterior = tree["posterior"]
    assert posterior["m"].dims == ("chain", "draw", "Firm")
    assert posterior["m"].coords["Firm"].values.tolist() == firms
    assert posterior["level"].dims == posterior["gap"].dims == ("chain", "draw", "Firm", "Time")
    assert posterior["cross"].dims == ("chain", "draw", "Firm", "Firm_2")
    assert posterior["y"].coords["y_missing"].values.tolist() == ["General Motors, 1", "tesla, 3"]
    # cells that are missing have no log likelihood: the others stand in a row
    scored = tree["log_likelihood"]["y"]
    assert scored.dims == ("chain", "draw", "y_scored") and not bool(scored.isnull().any())
    assert scored.coords["y_scored"].values.tolist() == [f"{firms[0]}, {t}" for t in (0, 2, 3)] + [
        f"{firms[1]}, {t}" for t in (0, 1, 2)
    ]
    assert float(tree["observed_data"]["y"].sel(Firm="tesla", Time=2)) == pytest.approx(0.3)


def test_a_fit_by_svi_stores_its_draws_and_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("Firm,Time,y\nGeneral Motors,0,0.5\ntesla,1,0.2\ntesla,3,0.4\n")
    text = SERIES.replace("object Time : FinSet 4", "object Time : FinSet 4\nobject Ahead : FinSet 2").replace(
        "    return", "    predict later[a : Ahead] <- Normal(m[0], 0.1)\n    return"
    )
    job = make_job(tmp_path, text, "p", data="csv:y.csv", steps=20, batch_size=None)
    last = list(SviFit(prepare(job, analyse(text)), Stop()).run())[-1]
    assert isinstance(last, Finished)
    names = {row.name for row in last.posterior}
    assert {"m[tesla]", "y[tesla, 2]", "level[General Motors, 3]", "later[1]"} <= names
    run = RunDirectory.of(job)
    run.check_posterior()
    posterior = xarray.open_dataset(run.posterior, group="posterior", engine="h5netcdf")
    assert posterior["level"].dims == ("chain", "draw", "Firm", "Time")
    assert posterior["level"].shape == (1, 1000, 2, 4)
    assert posterior["y"].shape == (1, 1000, 5)
    output = tmp_path / "losses.csv"
    export_csv(run, output)
    assert output.read_text().startswith("step,loss")


def test_warnings_and_summaries_call_numbers_as_tables_do() -> None:
    text = """
object Kind : {cat, dog}
object One : FinSet 1
program p : Kind -> Kind
    sample a : Kind <- Normal(0.0, 1.0)
    sample gap : One <- Normal(0.0, 1.0)
    observe y : Kind <- Normal(a, 1.0)
    return a
"""
    model = loads(text).morphism
    fit = MCMC(NUTSKernel(), num_warmup=20, num_samples=120, num_chains=2, seed=1, engine="plain")
    result = fit.run(model, None, {"y": torch.zeros(2)})
    assert result.summary()["name"].to_list() == ["a[cat]", "a[dog]", "gap"]
    result.samples["a"][0, :, 1] += 50.0
    result.samples["a"][:, :, 0] = torch.randn(2, 120, generator=torch.Generator().manual_seed(0))
    result.samples["gap"][:] = torch.randn(2, 120, 1, generator=torch.Generator().manual_seed(1))
    (said,) = [one for one in result.warnings_of() if "not mixed" in one]
    assert "`a[dog]`" in said
    stored = result.to_arviz()["posterior"]
    assert called("gap", stored["gap"]) == ["gap"] and called("a", stored["a"]) == ["a[cat]", "a[dog]"]
