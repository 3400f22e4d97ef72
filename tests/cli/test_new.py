"""`qvr new` and `qvr init`: from a table to a checked fit with a prediction."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore

random.seed(3)
LEVELS = {"a": 1.5, "b": -0.5, "c": 0.3, "d": -1.0}
ROWS = [
    (level, x, round(2.0 + effect + 1.5 * x + random.gauss(0, 0.3), 3), int(x > 0), i % 5, "red" if i % 2 else "blue")
    for level, effect in LEVELS.items()
    for i in range(12)
    for x in [round(random.gauss(0, 1), 3)]
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["g,x,y,seen,count,colour", *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("formula", "has"),
    [
        ("y ~ x", ["Normal(mean[i], sigma)", "sample b_x"]),
        ("y ~ 0 + x + colour", ["by_colour[colour[i]]", "object ColourLevels : FinSet _"]),
        ("y ~ x + (1 + x | g)", ["LKJCholesky(2.0)", "effect_g[g[i], x_g] * x[i]"]),
        ("y ~ (1 + x || g)", ["g_intercept[g[i]] + g_x[g[i]] * x[i]"]),
        ("seen ~ x + (1 | g)", ["data seen : Row -> Bool", "Bernoulli(logits=mean[i])"]),
    ],
)
def test_programs_of_formulas_check_against_their_data(folder: Path, formula: str, has: list[str]) -> None:
    made = qvr("new", formula, "--data", "csv:d.csv", "-o", "m.qvr")
    assert made.exit_code == 0, made.output
    text = (folder / "m.qvr").read_text()
    assert all(one in text for one in has), text
    checked = qvr("check", "m.qvr", "--data", "csv:d.csv", "--hints")
    assert checked.exit_code == 0 and "no problems" in checked.output, checked.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["y ~ xx"], "no column `xx`; did you mean `x`?"),
        (["y ~ log(x)"], "make a column of what is computed"),
        (["y"], "is no formula"),
        (["count ~ x"], "--family poisson"),
        (["y ~ x", "--family", "gamma"], "one of normal, bernoulli, poisson"),
        (["y ~ x", "--family", "poisson"], "not all whole numbers"),
        (["y ~ (colour | g)"], "wants numbers"),
    ],
)
def test_what_cannot_be_written_names_the_remedy(folder: Path, arguments: list[str], said: str) -> None:
    done = qvr("new", *arguments, "--data", "csv:d.csv")
    assert done.exit_code != 0 and said in done.output, done.output


def test_from_a_table_to_a_prediction_in_four_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = qvr("init", "study", "--data", "d.csv", "--formula", "y ~ x + (1 | g)")
    assert made.exit_code == 0, made.output
    monkeypatch.chdir(folder / "study")
    ran = qvr("run", "nuts", "model.qvr", "--warmup", "200", "--samples", "200", "--chains", "2", "--engine", "replay")
    assert ran.exit_code == 0 and "Pareto k" in ran.output, ran.output
    ending = RunStore(folder / "study").open("last").ending()
    assert isinstance(ending, Finished)
    found = {row.name: row.mean for row in ending.posterior}
    assert found["b_x"] == pytest.approx(1.5, abs=0.15) and found["sigma"] == pytest.approx(0.3, abs=0.1)
    drawn = qvr("sample", "last", "--draws", "100")
    assert drawn.exit_code == 0 and "y[0]" in drawn.output, drawn.output
    assert qvr("init", ".").exit_code == 1


def test_a_folder_of_its_own_data_checks(folder: Path) -> None:
    assert qvr("init", "farm").exit_code == 0
    assert sorted(path.name for path in (folder / "farm").iterdir()) == ["data.csv", "model.qvr", "qvr.toml"]
    checked = qvr("check", "farm/model.qvr", "--data", "csv:farm/data.csv")
    assert checked.exit_code == 0 and "no problems" in checked.output, checked.output
