"""A hundred formulas as brms', Bambi's and lme4's users write them, four of each kind: how many give a program."""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.data.formula.centring import informative
from qvr_core.data.formula.columns import Column
from qvr_core.data.formula.smooths import SPLINE
from tests.formulas import table

WHOLE = 95
"""Formulas that give a program which checks against its data and leaves nothing out, at the least."""
LISTED = Path(__file__).with_name("formulas.tsv")


@dataclass(frozen=True)
class Given:
    """What became of a formula: `whole`, `part` (something is left out) or `none`, and what was said."""

    formula: str
    outcome: str
    said: str


def formulas() -> list[dict[str, str]]:
    with LISTED.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def given(formula: str, family: str, folder: Path) -> Given:
    """Make a study of a formula and check it against its data."""
    study = folder / "study"
    arguments = ["init", str(study), "--data", str(folder / "d.csv"), "--formula", formula]
    runner = CliRunner()
    made = runner.invoke(app, [*arguments, *(["--family", family] if family else [])])
    if not (study / "model.qvr").exists():
        return Given(formula, "none", made.output)
    checked = runner.invoke(app, ["check", str(study / "model.qvr"), "--data", f"csv:{study / 'data.csv'}"])
    if checked.exit_code != 0:
        return Given(formula, "none", checked.output)
    text = (study / "model.qvr").read_text(encoding="utf-8")
    return Given(formula, "part" if "# left out" in text else "whole", text)


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_formulas_give_programs(share: int, tmp_path: Path) -> None:
    results, least = list[Given](), len(formulas()) / share - (len(formulas()) - WHOLE)
    for number, row in enumerate(formulas()[::share]):
        folder = tmp_path / str(number)
        folder.mkdir()
        table.write(folder / "d.csv")
        results.append(given(row["formula"], row["family"], folder))
    counted = {kind: sum(one.outcome == kind for one in results) for kind in ("whole", "part", "none")}
    print(counted)
    wrong = "\n\n".join(f"{one.formula}\n{one.said}" for one in results if one.outcome == "none")
    assert len(results) == 100 / share and counted["whole"] >= least, f"{counted}\n{wrong}"


GAPPED = """y,x,count,Row,g,G
{rows}
"""


@pytest.fixture
def gapped(tmp_path: Path) -> Path:
    """A table with a positive column and one of counts, both with missing cells, and columns named as sets are."""
    draw = random.Random(5)
    rows = list[str]()
    for at in range(40):
        x = "" if at % 7 == 0 else f"{math.exp(draw.gauss(0, 1)):.3f}"
        count = "" if at % 9 == 0 else str(draw.randint(0, 3))
        rows.append(f"{draw.gauss(1, 2):.3f},{x},{count},{'uvwxyz'[at % 6]},{'ab'[at % 2]},{'cd'[at // 2 % 2]}")
    (tmp_path / "d.csv").write_text(GAPPED.format(rows="\n".join(rows)), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "formula", ["y ~ log(x)", "y ~ sqrt(count) + I(1 / x)", "y ~ log1p(count) + scale(log(x))", "y ~ s(log(x))",
                "y ~ log(x), x | mi() ~ count"]
)  # fmt: skip
def test_missing_cells_are_filled_in_where_the_formula_is_defined(
    gapped: Path, monkeypatch: pytest.MonkeyPatch, formula: str
) -> None:
    found = given(formula, "", gapped)
    assert found.outcome == "whole", found.said
    monkeypatch.chdir(gapped / "study")
    drawn = CliRunner().invoke(app, ["sample", "model.qvr", "--prior", "--draws", "100", "--json"])
    assert drawn.exit_code == 0 and "NaN" not in drawn.output and "cannot take" not in drawn.output, drawn.output


def test_rows_leave_where_no_number_can_stand_for_a_missing_cell(gapped: Path) -> None:
    found = given("y ~ log(100 - x)", "", gapped)
    rows = (gapped / "study" / "data.csv").read_text(encoding="utf-8").splitlines()
    assert found.outcome == "whole" and "impute" not in found.said and len(rows) == 1 + 34


@pytest.mark.parametrize("formula", ["y ~ (1 | Row)", "y ~ Row + count", "y ~ (1 | g) + (1 | G)", "y ~ g * G"])
def test_a_column_named_as_a_set_of_the_program_is_a_column(
    gapped: Path, monkeypatch: pytest.MonkeyPatch, formula: str
) -> None:
    found = given(formula, "", gapped)
    assert found.outcome == "whole", found.said
    monkeypatch.chdir(gapped / "study")
    ran = CliRunner().invoke(app, ["run", "svi", "model.qvr", "--steps", "2"])
    assert ran.exit_code == 0, ran.output


def test_groups_that_the_data_tell_by_themselves_are_drawn_about_the_intercept(tmp_path: Path) -> None:
    """An offset of many log odds: each level of a group is known far better than they differ."""
    table.write(tmp_path / "d.csv")
    found = given("k | trials(n) ~ (1 | g) + offset(z)", "binomial", tmp_path)
    assert found.outcome == "whole"
    assert "sample g_level[l : GLevels] <- Normal(intercept, sd_g_intercept)" in found.said
    assert "let g_intercept[l : GLevels] = g_level[l] - intercept" in found.said
    (tmp_path / "plain").mkdir()
    table.write(tmp_path / "plain" / "d.csv")
    plain = given("k | trials(n) ~ x + (1 | g)", "binomial", tmp_path / "plain")
    assert (
        plain.outcome == "whole"
        and "sample g_intercept[l : GLevels] <- Normal(0.0, sd_g_intercept) [noncentred]" in plain.said
    )


def test_data_are_informative_where_their_errors_are_an_eighth_of_their_sd() -> None:
    labels = [label for label in "abcd" for _ in range(25)]
    column = Column("g", "g", polars.Series("g", labels))
    trials, offset = np.full(100, 40.0), np.zeros(100)
    far = np.repeat([4.0, 14.0, 26.0, 36.0], 25)
    assert informative(column, far, trials, offset)
    assert not informative(column, np.repeat([19.0, 20.0, 21.0, 20.0], 25), trials, offset)
    assert not informative(column, far / 40, np.ones(100), offset), "few trials tell little"
    assert informative(column, np.full(100, 20.0), trials, np.repeat([-9.0, 0.0, 4.0, 12.0], 25))


def test_a_smooth_curve_goes_on_straight_beyond_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cubic splines whose weights are the places of their knots give each number itself (Marsden's identity)."""
    x = [-4.0, 0.0, 0.3, 5.5, 6.9, 7.0, 7.5, 30.0]  # knots from -1 to 8, data from 0 to 7
    (tmp_path / "d.csv").write_text("\n".join(["x,y", *(f"{one},{one}" for one in x)]), encoding="utf-8")
    (tmp_path / "curve.qvr").write_text(
        f"""object Row : FinSet _
object Knot : FinSet 10

{SPLINE}
program curve : Row -> Row [keep=[f]]
    data x, y : Row
    sample level <- Normal(0.0, 1.0)
    let f[i : Row] = level + sum((k - 1.0) * spline(x[i] + 1.0, 8.0, k) for k : Knot)
    observe y[i : Row] <- Normal(f[i], 1.0)
    return f
""",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    asked = ["sample", "curve.qvr", "--prior", "--data", "csv:d.csv", "--draws", "10", "-o", "drawn.csv"]
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 0, ran.output
    with open("drawn.csv", encoding="utf-8") as file:
        drawn = {row["name"]: float(row["mean"]) for row in csv.DictReader(file)}
    assert [drawn[f"f[{at}]"] - drawn["level"] for at in range(len(x))] == pytest.approx(x, abs=1e-9)
