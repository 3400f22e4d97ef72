"""`:run` and `:posterior`, of a document that was never saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.cli.repl.fits import usual
from qvr_core.cli.repl.session import Session
from qvr_core.runs.record.store import RunStore
from tests.cli.repl.conftest import SCHOOLS, Ask

DATA = "y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n"
SETTINGS = '[run.schools]\nalgorithm = "nuts"\ndata = "csv:d.csv"\nwarmup = 60\nsamples = 60\nchains = 2\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "d.csv").write_text(DATA)
    (tmp_path / "qvr.toml").write_text(SETTINGS)
    return tmp_path


@pytest.mark.long
def test_run_fits_what_is_typed_and_posterior_shows_it(session: Session, ask: Ask, data: Path) -> None:
    ask(SCHOOLS.replace("HalfCauchy(5.0)", "HalfNormal(5.0)"))
    said = ask(":run --samples 80")
    assert "d.csv: 8 rows" in said and "theta[7]" in said and "finished 140 steps" in said, said
    assert "HalfNormal(5.0)" in RunStore(data).open("last").job().text
    for names in ("mu,tau", "mu tau"):
        shown = ask(f":posterior {names}")
        assert "mu" in shown and "tau" in shown and "theta" not in shown
    assert "has no `nu`" in ask(":posterior nu")


@pytest.mark.long
def test_a_later_session_finds_the_run(session: Session, ask: Ask, data: Path) -> None:
    assert "no program to be fitted" in ask(":posterior")
    ask(SCHOOLS)
    assert "there are no runs" in ask(":posterior")
    ask(":run nuts")
    session.run_id = None
    assert "theta[7]" in ask(":posterior")


def test_flags_are_those_of_qvr_run(session: Session, ask: Ask, data: Path) -> None:
    ask(SCHOOLS)
    assert "--bogus" in ask(":run nuts --bogus 3") and session.refused
    assert "target_accept" in ask(":run nuts --explain") and not (data / ".qvr" / "runs").exists()
    assert "--nproc is for `qvr run`" in ask(":run svi --nproc 2")
    assert "No closing quotation" in ask(":run nuts --data 'csv")
    assert "y" in ask(":run svi --steps 5 --data csv:d.csv --columns y=nothing")


def test_the_algorithm_is_qvr_tomls_else_what_suits_the_program(session: Session, ask: Ask, tmp_path: Path) -> None:
    ask(SCHOOLS)
    assert usual(session.document) == "nuts"
    ask("object H : Real 4", "morphism e : School -> H [role=kernel] ~ Normal", "program net : School -> H",
        "    sample h <- e", "    return h", "export net")  # fmt: skip
    assert usual(session.document) == "svi"
    (tmp_path / "qvr.toml").write_text('[run.net]\nalgorithm = "nuts"\n')
    assert usual(session.document) == "nuts"
