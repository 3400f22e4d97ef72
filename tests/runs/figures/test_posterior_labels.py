"""Rows of the posterior table go by the labels of the sets that a site runs over."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import xarray
from rich.console import Console

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.cli.display import posterior_table
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.axes import axes_of
from qvr_core.runs.figures.posterior import table
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.exports import export_csv
from qvr_core.runs.record.protocol import Finished, PosteriorRow
from qvr_core.runs.record.store import RunDirectory
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


def test_a_label_is_no_markup_of_the_terminal() -> None:
    row = PosteriorRow(name="beta[floor]", mean=0.0, sd=1.0, q05=-1.0, median=0.0, q95=1.0)
    console = Console(width=100)
    with console.capture() as shown:
        other = row.model_copy(update={"name": "a[\x1b[31mx]"})
        console.print(posterior_table(Finished(step=1, seconds=1.0, posterior=(row, other))))
    assert "beta[floor]" in shown.get()
    assert "\x1b" not in shown.get()


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
