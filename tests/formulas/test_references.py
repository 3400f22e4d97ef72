"""Posteriors of twenty formulas, of a kind each, against NumPyro's, by `numpyro_references.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore
from tests.formulas import table
from tests.formulas.test_formulas import formulas

REFERENCES: dict[str, dict[str, list[float]]] = json.loads(
    Path(__file__).with_name("references.json").read_text(encoding="utf-8")
)
FAMILIES = {
    "visits ~ 1 + offset(log(expo)) + (1 | g)": "poisson",
    "rating ~ x + f": "cumulative",
    "rain ~ x + (1 | g)": "hurdle_gamma",
    "stay | cens(dead) ~ x + f": "weibull",
    "share ~ x + (1 | g), phi ~ sex": "beta",
    "visits ~ f + offset(log(expo))": "negbinomial",
    "visits ~ x": "zero_inflated_poisson",
    "choice ~ x": "categorical",
    "y ~ x + z": "student",
    "stay ~ log(income) + (1 | g)": "gamma",
    "stay ~ treated + (1 | g)": "exponential",
}
NAMES = {"b_f[0]": "b_f[b]", "b_f[1]": "b_f[c]"}


def test_twenty_formulas_of_the_hundred_are_compared() -> None:
    listed = {row["formula"]: row["family"] for row in formulas()}
    assert len(REFERENCES) == 20
    assert {one: FAMILIES.get(one, "") for one in REFERENCES} == {one: listed[one] for one in REFERENCES}


@pytest.mark.statistical
@pytest.mark.parametrize("formula", REFERENCES)
def test_posteriors_agree_with_numpyros(formula: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table.write(tmp_path / "d.csv")
    family = ["--family", FAMILIES[formula]] if formula in FAMILIES else []
    made = CliRunner().invoke(app, ["init", "study", "--data", "d.csv", "--formula", formula, *family])
    assert made.exit_code == 0, made.output
    ran = CliRunner().invoke(app, ["run", "nuts", "study/model.qvr", "--seed", "1", "--samples", "3000"])
    assert ran.exit_code == 0, ran.output
    ending = RunStore(tmp_path).open("last").ending()
    assert isinstance(ending, Finished)
    drawn = {row.name: row for row in ending.posterior}
    for name, (mean, sd) in REFERENCES[formula].items():
        row = drawn[NAMES.get(name, name)]
        assert row.mean is not None and row.sd is not None
        assert abs(row.mean - mean) < 0.1 * sd, (name, row.mean, mean, sd)
        assert row.sd == pytest.approx(sd, rel=0.1), (name, row.sd, sd)
