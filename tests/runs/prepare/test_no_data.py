"""A program that declares data is never fitted to made-up ones unless that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app

DECLARED = """\
object Row : FinSet _

program p : Row -> Row
    data x, y : Row
    sample b <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(b * x[i], 1.0)
    return y

export p
"""
UNDECLARED = """\
object School : FinSet 8
object Effect : Real 1

program p : School -> Effect
    sample mu <- Normal(0.0, 5.0)
    observe y : School <- Normal(mu, 1.0)
    return y

export p
"""
FEW = ("--warmup", "20", "--samples", "20", "--chains", "1")


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.qvr").write_text(DECLARED)


def said(*arguments: str, status: int) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == status, done.output + done.stderr
    return " ".join((done.output + done.stderr).split())


@pytest.mark.parametrize("command", [("run", "nuts"), ("run", "svi")])
def test_a_run_without_data_says_what_is_read_and_how_it_is_named(command: tuple[str, str]) -> None:
    told = said(*command, "p.qvr", status=1)
    assert "`p` reads" in told and "`x`" in told and "`y`" in told
    assert "--data csv:FILE" in told and "[run.p]" in told and "--data synthetic" in told


def test_draws_of_the_prior_need_the_predictors_too() -> None:
    assert "--data synthetic" in said("sample", "p.qvr", "--prior", status=1)
    assert "b" in said("sample", "p.qvr", "--prior", "--data", "synthetic", status=0)


def test_made_up_data_are_there_for_who_asks() -> None:
    told = said("run", "nuts", "p.qvr", "--data", "synthetic", *FEW, status=0)
    assert "synthetic" in told and "no data was given" not in told
    Path("qvr.toml").write_text('[run.p]\ndata = "synthetic"\n')
    said("run", "nuts", "p.qvr", *FEW, status=0)


def test_a_program_that_declares_none_still_draws_them_and_says_so() -> None:
    Path("p.qvr").write_text(UNDECLARED)
    assert "no data was given" in said("run", "nuts", "p.qvr", *FEW, status=0)


def test_rows_of_a_table_are_not_held_out_in_silence() -> None:
    Path("rows.csv").write_text("x,y\n" + "".join(f"{n}.0,{2 * n}.5\n" for n in range(20)))
    told = said("run", "svi", "p.qvr", "--data", "csv:rows.csv", "--held-out", "0.5", status=1)
    assert "held_out keeps a part of a text or of sentence pairs from training" in told and "`csv`" in told
    said("run", "svi", "p.qvr", "--data", "csv:rows.csv", "--held-out", "0", "--steps", "2", status=0)
