"""`qvr run svi` with a guide that the file writes as a program: taken by itself, chosen, judged, resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.store import RunStore

SCHOOLS = """\
object School : FinSet 5
program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample sigma <- HalfNormal(2.0)
    observe y[s : School] <- Normal(mu, sigma)
    return mu
program near : School -> School [guide=schools]
    param m : Real 1
    param s, w : Real 1 [low=0.0] [init=0.3]
    param c : Real 1
    sample sigma <- LogNormal(c, w)
    sample mu <- Normal(m + mean(y), s)
"""


def qvr(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "300"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.fixture(autouse=True)
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schools.qvr").write_text(SCHOOLS)
    (tmp_path / "y.csv").write_text("y\n1.0\n2.5\n-0.5\n1.5\n3.0\n")
    return tmp_path


def test_the_files_guide_is_taken_and_judged_by_its_weights() -> None:
    shown = qvr("run", "svi", "schools.qvr", "--data", "csv:y.csv", "--steps", "100", "--particles", "4")
    assert "4 parameters of the guide" in shown
    assert "Pareto k of its importance weights" in CliRunner().invoke(app, ["check-fit", "last"]).output
    assert "mu" in qvr("sample", "last")


def test_an_automatic_guide_can_be_chosen_and_a_misspelt_one_is_told() -> None:
    flags = ("schools.qvr", "--data", "csv:y.csv", "--steps", "5")
    assert "4 parameters of the guide" in qvr("run", "svi", *flags, "--guide", "normal")
    shown = qvr("run", "svi", *flags, "--guide", "nearr", code=1)
    assert "`nearr` is no guide of `schools`: its guides are `near`" in shown
    assert "Set guide = near" in shown
    assert "`near` is the guide of `schools`" in qvr("run", "svi", *flags, "--program", "near", code=2)


def test_a_resumed_run_goes_on_with_the_guides_parameters(written: Path) -> None:
    flags = ("schools.qvr", "--data", "csv:y.csv", "--threads", "1")
    qvr("run", "svi", *flags, "--steps", "12", "--schedule", "constant")
    whole = RunStore(written).open("last")
    qvr("run", "svi", *flags, "--steps", "6", "--schedule", "constant")
    begun = RunStore(written).open("last")
    qvr("run", "svi", "--resume", begun.run_id, "--steps", "12")
    assert losses_of(begun) == losses_of(whole)


def test_a_guide_is_not_exported() -> None:
    shown = qvr("export", "schools.qvr", "near", "--to", "torch", code=1)
    assert "guides fit and models are exported" in " ".join(shown.split())
    assert "def" in qvr("export", "schools.qvr", "--to", "torch")


WEIGHTS = """\
object Row : FinSet _
object Hidden : Real 2
morphism first : Real 1 -> Hidden [role=linear] ~ Normal(0.0, 1.0)
morphism second : Hidden -> Real 1 [role=linear] ~ Normal(0.0, 0.5)
program network : Row -> Real 1
    data x : Row -> Real 1
    data y : Row
    sample sigma <- HalfNormal(0.5)
    let f = second(tanh(first(x)))
    observe y : Row <- Normal(f, sigma)
    return sigma
object Out, In : FinSet 2
program around : Row -> Real 1 [guide=network, rest=mean_field]
    param m : Out * In
    param s : Out * In -> Real 1 [low=0.0] [init=0.1]
    sample first[o : Out, i : In] <- Normal(m[o, i], s[o, i])
"""


@pytest.mark.long
def test_a_guide_for_weights_with_a_prior_moves_in_the_runs_precision(written: Path) -> None:
    x, y = np.arange(10) / 5, np.arange(10) % 3
    (written / "network.qvr").write_text(WEIGHTS)
    (written / "rows.csv").write_text("x,y\n" + "".join(f"{one},{other}\n" for one, other in zip(x, y, strict=True)))
    shown = qvr("run", "svi", "network.qvr", "--data", "csv:rows.csv", "--steps", "3")
    assert "parameters of the guide" in shown
    # weights are no helpers, as other standardised latents are
    assert "first[0, 1]" in shown and "second[0, 2]" in shown

    # one number for each row may be a column of an array
    losses = losses_of(RunStore(written).open("last"))
    np.savez(written / "rows.npz", x=x[:, None], y=y)
    qvr("run", "svi", "network.qvr", "--data", "npz:rows.npz", "--steps", "3")
    assert losses_of(RunStore(written).open("last")) == losses
    np.savez(written / "rows.npz", x=x.reshape(5, 2), y=y)
    assert "the shape is 5 × 2" in qvr("run", "svi", "network.qvr", "--data", "npz:rows.npz", code=1)
