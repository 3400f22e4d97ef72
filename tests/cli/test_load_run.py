"""`load_run`: what a run of the command line has left, in Python."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.inference import Predictive
from qvr_core.runs import load_run
from qvr_core.runs.record.store import NoSuchRun

MODEL = """\
object Row : FinSet _
program line : Row -> Row
    data x : Row
    sample m <- Normal(0.0, 1.0)
    let mean[i : Row] = m + x[i]
    observe y[i : Row] <- Normal(mean[i], 1.0)
    return m
"""
FITS = {
    "nuts": ["--warmup", "200", "--samples", "500", "--chains", "2"],
    "svi": ["--steps", "1500", "--particles", "4"],
}


@pytest.mark.parametrize("algorithm", FITS)
def test_a_fitted_module_with_its_data_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n")
    (tmp_path / "new.csv").write_text("x\n10.0\n20.0\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", algorithm, "m.qvr", "--data", "csv:d.csv", *FITS[algorithm]])
    assert done.exit_code == 0, done.output
    run = load_run("last")
    assert (run.guide is None) == (algorithm == "nuts")
    # the posterior of a Normal mean: 3 residuals of 1.0, 1.5, 0.8, prior precision 1
    mean, sd = 3.3 / 4, 0.5
    samples = run.samples()
    assert set(samples) == {"m"}
    assert float(samples["m"].mean()) == pytest.approx(mean, abs=0.1)
    assert float(samples["m"].std()) == pytest.approx(sd, rel=0.15)
    assert set(run.posterior["posterior"].data_vars) == {"m", "mean"}
    one = {"m": torch.tensor(0.7), **run.observations}
    wanted = stats.norm(0, 1).logpdf(0.7) + stats.norm(0.7, 1.0).logpdf([1.0, 1.5, 0.8]).sum()
    assert float(run.model.log_joint(run.x, one)) == pytest.approx(wanted, abs=1e-4)
    assert run.draw(300, data="csv:new.csv")["y"].mean(0).tolist() == pytest.approx([10 + mean, 20 + mean], abs=0.4)
    again = Predictive(run.model, posterior_samples=samples)(run.x, {"x": run.observations["x"]})
    assert again["y"].shape == (len(samples["m"]), 3)
    assert run.directory.run_id in repr(run)


def test_what_has_changed_since_the_fit_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n")
    monkeypatch.chdir(tmp_path)
    few = ["--warmup", "20", "--samples", "20", "--chains", "1"]
    assert CliRunner().invoke(app, ["run", "nuts", "m.qvr", "--data", "csv:d.csv", *few]).exit_code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(load_run("last").samples()) == {"m"}
    (tmp_path / "m.qvr").write_text(MODEL.replace("sample m", "sample slope").replace("m + x", "slope + x"))
    with pytest.warns(UserWarning, match=r"m\.qvr has changed since run .*: this is the program as it was then"):
        assert set(load_run("last").samples()) == {"m"}
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n3.0,9.0\n")
    with pytest.warns(UserWarning, match=r"was fitted to other data, and these are read: .*d\.csv had 28 bytes"):
        run = load_run("last")
    assert len(run.observations["y"]) == 4
    sampled = CliRunner().invoke(app, ["sample", "last"])
    assert "the run was fitted to other data" in sampled.output


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRun):
        load_run("last", tmp_path)


NETWORK = """\
object Row : FinSet _
object Wide : Real 3
morphism lift : Real 1 -> Wide [role=linear] ~ Normal(0.0, 1.0)
morphism drop : Wide -> Real 1 [role=linear] ~ Normal(0.0, 0.5)
program network : Row -> Row
    data x, y : Row
    let f[i : Row] = drop(tanh(lift(x[i])))
    observe y[i : Row] <- Normal(f[i], 1.0)
    return f
"""


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.long
def test_weights_with_a_prior_are_the_guides_and_none_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    (tmp_path / "m.qvr").write_text(NETWORK)
    (tmp_path / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n")
    monkeypatch.chdir(tmp_path)
    flags = ["--data", "csv:d.csv", "--steps", "5", "--engine", engine]
    done = CliRunner().invoke(app, ["run", "svi", "m.qvr", *flags])
    assert done.exit_code == 0, done.output
    run = load_run("last")
    assert run.guide is not None and "raw_loc.lift" in run.guide.state_dict()
    assert not [*run.model.parameters()]
