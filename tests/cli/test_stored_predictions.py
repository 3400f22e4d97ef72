"""`predict` steps in runs: in the closing table, in `posterior.nc`, and in `qvr sample`, by their labels."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore

MODEL = """\
object Row : FinSet 4
object Side : {left, right}
program means : Row -> Real 1
    sample mu <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(mu, 1.0)
    predict next[s : Side] <- Normal(mu + y[-1] + 10.0 * s, 0.001)
    let gap = next[right] - next[left]
    return mu
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("y\n1\n2\n0\n5\n")
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def _means(folder: Path) -> dict[str, float]:
    ending = RunStore(folder).open("last").ending()
    assert isinstance(ending, Finished)
    return {row.name: row.mean for row in ending.posterior}


def test_chains_store_predictions(folder: Path) -> None:
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", "--warmup", "100", "--samples", "200", "--chains", "1")
    assert done.exit_code == 0, done.output
    means = _means(folder)
    assert means["next[left]"] == pytest.approx(means["mu"] + 5.0, abs=0.01)
    assert means["next[right]"] == pytest.approx(means["mu"] + 15.0, abs=0.01)
    stored = xarray.open_dataset(RunStore(folder).open("last").posterior, group="posterior_predictive")
    assert list(stored["Side"].values) == ["left", "right"] and stored["gap"].shape == (1, 200)


def test_a_fitted_guide_draws_predictions_from_the_data(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv", "--steps", "300", "--learning-rate", "0.05")
    assert done.exit_code == 0, done.output
    means = _means(folder)
    assert means["next[left]"] == pytest.approx(means["mu"] + 5.0, abs=0.01)
    drawn = qvr("sample", "last", "-n", "50")
    assert drawn.exit_code == 0, drawn.output
    assert "next[left]" in drawn.output and "next[right]" in drawn.output and "gap" in drawn.output
