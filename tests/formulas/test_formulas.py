"""A hundred formulas as brms', Bambi's and lme4's users write them, four of each kind: how many give a program."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from qvr_core.cli import app
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
    if made.exit_code != 0:
        return Given(formula, "none", made.output)
    checked = runner.invoke(app, ["check", str(study / "model.qvr"), "--data", f"csv:{study / 'data.csv'}"])
    if checked.exit_code != 0:
        return Given(formula, "none", checked.output)
    text = (study / "model.qvr").read_text(encoding="utf-8")
    return Given(formula, "part" if "# left out" in text else "whole", text)


def test_formulas_give_programs(tmp_path: Path) -> None:
    results = list[Given]()
    for number, row in enumerate(formulas()):
        folder = tmp_path / str(number)
        folder.mkdir()
        table.write(folder / "d.csv")
        results.append(given(row["formula"], row["family"], folder))
    counted = {kind: sum(one.outcome == kind for one in results) for kind in ("whole", "part", "none")}
    print(counted)
    wrong = "\n\n".join(f"{one.formula}\n{one.said}" for one in results if one.outcome == "none")
    assert len(results) == 100 and counted["whole"] >= WHOLE, f"{counted}\n{wrong}"
