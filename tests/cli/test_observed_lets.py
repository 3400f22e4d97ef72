"""Runs whose outcome is a let of data: what new rows are scaled by, what is compared, and which data are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app

MODEL = """\
object Row : FinSet _
program p : Row -> Row
    data y, x : Row
    let z = (y - mean(y)) / sd(y)
    let w[i : Row] = (x[i] - mean(x)) / sd(x)
    sample b <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    let eta[i : Row] = b * w[i]
    observe z[i : Row] <- Normal(eta[i], s)
    return b
"""
X = np.linspace(40.0, 60.0, 21)
Y = 100.0 + 3.0 * X + np.sin(np.arange(21.0))
SETTINGS = ["--warmup", "200", "--samples", "200", "--chains", "2"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("y,x\n" + "".join(f"{y},{x}\n" for y, x in zip(Y, X, strict=True)))
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def run(program: str, *more: str) -> str:
    done = qvr("run", "nuts", program, "--data", "csv:d.csv", *SETTINGS, *more)
    assert done.exit_code == 0, done.output
    return sorted(one.name for one in Path(".qvr/runs").iterdir())[-1]


def test_new_rows_are_scaled_by_the_mean_of_the_fit(folder: Path) -> None:
    """A row at the fit's mean has the predictor 0, whatever stands beside it; the outcome need not be there."""
    fitted = run("m.qvr")
    (folder / "new.csv").write_text("x\n50.0\n60.0\n80.0\n")
    done = qvr("sample", fitted, "--data", "csv:new.csv", "--json")
    assert done.exit_code == 0, done.output
    found = {row["name"]: row["mean"] for row in json.loads(done.stdout)}
    slope = 3.0 * X.std(ddof=1) / Y.std(ddof=1)
    for at, x in enumerate((50.0, 60.0, 80.0)):
        assert found[f"eta[{at}]"] == pytest.approx(slope * (x - 50.0) / X.std(ddof=1), abs=0.02)
        assert found[f"z[{at}]"] == pytest.approx(found[f"eta[{at}]"], abs=0.05)
    assert "`w` compute from all of the data is that of the fit" in done.stderr


def test_each_column_is_scaled_by_its_own_mean_of_the_fit(folder: Path) -> None:
    (folder / "m.qvr").write_text(
        """\
object Row : FinSet _
object Column : {x, v}
program p : Row -> Row
    data z : Row * Column
    let w[i : Row, c : Column] = z[i, c] - mean(z[j, c] for j : Row)
    let own[i : Row] = sum(z[i, c] for c : Column)
    sample b <- Normal(0.0, 0.001)
    let eta[i : Row] = w[i, x] + 100.0 * w[i, v] + 10000.0 * own[i] + b
    observe y[i : Row] <- Normal(eta[i], 1.0)
    return b
"""
    )
    (folder / "d.csv").write_text("y,x,v\n" + "".join(f"{10000 * (x + 4)},{x},{4}\n" for x in (1, 2, 6)))
    fitted = run("m.qvr")
    (folder / "new.csv").write_text("x,v\n5,7\n3,4\n1,1\n")
    done = qvr("sample", fitted, "--data", "csv:new.csv", "--json")
    assert done.exit_code == 0, done.output
    found = {row["name"]: row["mean"] for row in json.loads(done.stdout)}
    for at, (x, v) in enumerate(((5, 7), (3, 4), (1, 1))):
        assert found[f"eta[{at}]"] == pytest.approx(x - 3 + 100 * (v - 4) + 10_000 * (x + v), abs=0.1)


def test_fits_of_a_let_and_of_its_column_are_not_compared(folder: Path) -> None:
    (folder / "plain.qvr").write_text(MODEL.replace("observe z[", "observe y[").replace("let z = ", "let _z = "))
    runs = [run("m.qvr"), run("plain.qvr")]
    assert len(set(runs)) == 2
    assert "observed different data" in qvr("runs", "compare", *runs).output


def test_a_let_that_its_family_does_not_draw_is_refused(folder: Path) -> None:
    (folder / "m.qvr").write_text(MODEL.replace("Normal(eta[i], s)", "Gamma(2.0, s)"))
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", *SETTINGS)
    assert done.exit_code != 0
    assert "and Gamma draws numbers from 0 to" in done.output


def test_a_part_of_the_rows_has_a_mean_of_its_own_and_is_refused(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv", "--batch-size", "5")
    assert done.exit_code != 0
    assert "Leave batch_size out" in done.output
