"""`qvr new` and `qvr init`: from a table to a checked fit with a prediction."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from scipy.stats import nbinom
from typer.testing import CliRunner

from qvr_core import examples
from qvr_core.cli import app
from qvr_core.dsl import loads
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
        ("y ~ 0 + x + colour", ["mean_colour[colour[i]]", "object ColourLevels : {blue, red}", "b_x * x_c[i]"]),
        ("y ~ x + colour", ["object ColourContrast : {red}  # against blue", "intercept: the outcome at x "]),
        ("y ~ x + (1 + x | g)", ["LKJCholesky(2.0)", "effect_g[g[i], x_g] * x_c[i]"]),
        ("y ~ (1 + x || g)", ["g_intercept[g[i]] + g_x[g[i]] * x_c[i]"]),
        ("seen ~ x + (1 | g)", ["data seen : Row -> Bool", "Bernoulli(logits=eta[i])"]),
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
        (["y ~ xx + zz + (1 | gg)"], "`xx`; did you mean `x`?; no column `zz`"),
        (["y ~ x + x^0.5"], "what is computed stands in I(…)"),
        (["y"], "is no formula"),
        (["count ~ x"], "--family poisson"),
        (["y ~ x", "--family", "gamma"], "not all above 0, which --family gamma wants"),
        (["y ~ x", "--family", "poisson"], "not all whole numbers"),
        (["y ~ x", "--family", "gama"], "did you mean gamma?"),
        (["y ~ C(colour, ref = 'green')"], "`colour` has no level `green`; there are `blue`, `red`"),
    ],
)
def test_what_cannot_be_written_names_the_remedy(folder: Path, arguments: list[str], said: str) -> None:
    done = qvr("new", *arguments, "--data", "csv:d.csv")
    assert done.exit_code != 0 and said in done.output, done.output


MESSY = """School Name,Hours/week,Größe (cm),data,passed?,visits,late,born on,row id,term,mean.temp
{rows}
"""


def test_a_messy_table_goes_to_a_fitted_model_in_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces, umlauts, dots, a reserved word, truth values, dates, ids, constants; 5 % of the cells of each predictor
    are empty."""
    draw = random.Random(5)
    lines = list[str]()
    for i in range(200):
        school, hours, size = draw.choice(["North Hill", "South.Bank"]), draw.randint(5, 40), draw.gauss(170, 9)
        score = 50 + 0.5 * hours + 0.2 * size + draw.gauss(0, 3)
        cells = [school, hours, round(size, 1), round(score, 1), draw.choice(["true", "false"]), i % 4]
        cells += [draw.choice(["yes", "no"]), f"2001-0{1 + i % 9}-11", f"id-{i}", "autumn", round(draw.gauss(12, 4), 1)]
        for at in (0, 1, 2, 4, 5, 6, 10):
            if (i + at) % 20 == 7:
                cells[at] = ""
        lines.append(",".join(map(str, cells)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(MESSY.format(rows="\n".join(lines)), encoding="utf-8")
    made = qvr(
        "init", "study", "--data", "t.csv", "--formula", "data ~ . + Hours/week:School Name", "--family", "normal"
    )
    assert made.exit_code == 0, made.output
    said = " ".join(made.output.split())
    assert "left out 30 of 200 rows, in which a cell is missing: 10 in School Name, 10 in passed?, 10 in late" in said
    for one in ("Größe (cm)", "Hours/week", "visits", "mean.temp"):
        assert f"10 missing cells of {one} are filled in (imputed)" in said
    for one in ("born on (a date)", "row id (another value in every row)", "term (the same value in every row)"):
        assert one in said
    ran = qvr("run", "nuts", "study/model.qvr", "--warmup", "300", "--samples", "300", "--chains", "2")
    assert ran.exit_code == 0, ran.output
    ending = RunStore(tmp_path).open("last").ending()
    assert isinstance(ending, Finished)
    found = {row.name: row.mean for row in ending.posterior}
    assert found["b_Groesse_cm"] == pytest.approx(0.2, abs=0.15), found
    assert {"b_passed", "b_late[yes]", "b_mean_temp"} <= found.keys(), found.keys()
    assert any(name.startswith("b_School_Name[") for name in found)


@pytest.mark.parametrize(
    ("formula", "has"),
    [
        ("visits ~ Hours/week", "visits ~ Hours/week: poisson"),
        ("visits ~ 1 + (1 | School Name)", "data School_Name : Row -> SchoolNameLevels"),
        ("passed? ~ 1", "data passed : Row -> Bool"),
        ("visits ~ 1", "[missing=drop]"),
        ("late ~ 1", "object LateLevels : {no, yes}"),
    ],
)
def test_a_table_as_people_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, formula: str, has: str) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["School Name,Hours/week,passed?,visits,late", "A,3,true,2,yes", "B,4,false,,no", "A,5,true,1,no"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    family = ("--family", "poisson") if formula.startswith("visits") else ()
    done = qvr("init", "study", "--data", "t.csv", "--formula", formula, *family)
    assert done.exit_code == 0, done.output
    assert has in (tmp_path / "study/model.qvr").read_text(encoding="utf-8")
    checked = qvr("check", "study/model.qvr")
    assert checked.exit_code == 0 and "no problems" in checked.output, checked.output
    again = qvr("init", "again", "--data", "csv:t.csv", "--formula", formula, *family)  # as other commands name it
    assert again.exit_code == 0, again.output
    written = [Path(folder, "model.qvr").read_text(encoding="utf-8") for folder in ("study", "again")]
    assert written[0] == written[1]


def test_labels_that_ascend_are_told_in_which_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{('mild', 'none', 'severe')[at % 3]},{at % 3},{at / 7:.2f}" for at in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["pain,grade,x", *rows]))
    made = qvr("init", "study", "--data", "t.csv", "--formula", "pain ~ x", "--family", "cumulative")
    assert made.exit_code == 0 and "the alphabet, mild, none, severe" in " ".join(made.output.split()), made.output
    program = tmp_path / "study/model.qvr"
    text = program.read_text(encoding="utf-8")
    assert "object PainLevels : {mild, none, severe}" in text
    program.write_text(text.replace("{mild, none, severe}", "{none, mild, severe}"), encoding="utf-8")
    checked = qvr("check", "study/model.qvr")
    assert checked.exit_code == 0 and "no problems" in checked.output, checked.output
    graded = qvr("init", "other", "--data", "t.csv", "--formula", "grade ~ x", "--family", "cumulative")
    assert graded.exit_code == 0 and "alphabet" not in graded.output, graded.output


def test_a_truncated_outcome_is_fitted_and_drawn_again(folder: Path) -> None:
    """Its posterior predictive is drawn by whatever engine the run has, torch or not."""
    made = qvr("init", "study", "--data", "d.csv", "--formula", "y | trunc(lb = -20) ~ x")
    assert made.exit_code == 0, made.output
    ran = qvr("run", "nuts", "study/model.qvr", "--warmup", "60", "--samples", "20", "--chains", "2")
    assert ran.exit_code == 0, ran.output
    drawn = qvr("sample", "last", "--draws", "20")
    assert drawn.exit_code == 0 and "y[0]" in drawn.output, drawn.output


def test_what_has_no_program_is_a_comment_at_its_place(folder: Path) -> None:
    made = qvr("new", "y ~ x + s(x, count) + ma(p = 1)", "--data", "csv:d.csv", "-o", "m.qvr")
    assert made.exit_code == 1 and "2 terms of the formula left out" in made.output, made.output
    assert "left out: s(x, count): smooths of several columns" in " ".join(made.output.split())
    text = (folder / "m.qvr").read_text()
    assert "    # left out: s(x, count): " in text and "    # left out: ma(p=1): " in text and "b_x" in text
    assert "no problems" in qvr("check", "m.qvr", "--data", "csv:d.csv").output


def test_a_folder_is_made_without_a_term_that_has_no_program_and_the_command_says_so(folder: Path) -> None:
    made = qvr("init", "study", "--data", "d.csv", "--formula", "y ~ x + ma(p = 1)")
    assert made.exit_code == 1 and "a term of the formula left out" in made.output
    assert (folder / "study" / "data.csv").read_text() == (folder / "d.csv").read_text()
    assert "no problems" in qvr("check", "study/model.qvr", "--data", "csv:study/data.csv").output


@pytest.mark.parametrize("text", ["y,x\n1,2\n3\n", "y,x\n,1\n,2\n"])
def test_what_is_wrong_with_a_table_is_said_of_the_one_that_was_given(folder: Path, text: str) -> None:
    (folder / "mine.csv").write_text(text)
    made = qvr("init", "study", "--data", "mine.csv", "--formula", "y ~ factor(x)")
    assert made.exit_code == 1 and "data.csv" not in made.output
    assert not (folder / "study").exists()


def test_counts_from_a_hurdle_are_drawn(folder: Path) -> None:
    """Of a gate of 0.3, a mean of 2 and a dispersion of 0.5 before the zeros are taken away."""
    made = qvr("new", "count ~ 1", "--data", "csv:d.csv", "--family", "hurdle_negbinomial", "-o", "m.qvr")
    assert made.exit_code == 0, made.output
    family = (folder / "m.qvr").read_text().partition("program ")[0].partition("# A zero")[2]
    steps = "    sample y[i : Row] <- HurdleNegativeBinomial(0.3, 2.0, 0.5)\n    return y\nexport p\n"
    text = f"object Row : FinSet 100000\n#{family}\nprogram p : Row -> Row\n{steps}"
    torch.manual_seed(0)
    drawn = loads(text).morphism.rsample().flatten().numpy()
    mass = nbinom.pmf(np.arange(60), 2.0, 0.5)
    mass[1:] *= 0.7 / (1.0 - mass[0])
    mass[0] = 0.3
    found = np.bincount(drawn.astype(int), minlength=60)[:60] / len(drawn)
    np.testing.assert_allclose(found, mass, atol=0.006)


@pytest.mark.long
def test_from_a_table_to_a_prediction_in_four_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = qvr("init", "study", "--data", "d.csv", "--formula", "y ~ x + (1 | g)")
    assert made.exit_code == 0, made.output
    monkeypatch.chdir(folder / "study")
    chains = ("--warmup", "200", "--samples", "200", "--chains", "2")
    ran = qvr("run", "nuts", "model.qvr", *chains, "--plot", "traces.svg")
    assert ran.exit_code == 0 and "Pareto k" in ran.output, ran.output
    traces = Path("traces.svg").read_text(encoding="utf-8")
    assert "<!-- b_x -->" in traces and "<!-- sigma -->" in traces and "ELBO" not in traces
    compared = qvr("runs", "compare", "last", "last", "--plot", "loss.png")
    assert compared.exit_code == 2 and "no losses to draw" in compared.output, compared.output
    Path("few.csv").write_text("x,g\n0.5,a\n-1.0,b\n", encoding="utf-8")
    few = qvr("sample", "last", "--data", "csv:few.csv", "--plot", "few.png")
    assert few.exit_code == 0 and "wrote few.png" in few.output, few.output
    ending = RunStore(folder / "study").open("last").ending()
    assert isinstance(ending, Finished)
    found = {row.name: row.mean for row in ending.posterior}
    assert found["b_x"] == pytest.approx(1.5, abs=0.15) and found["sigma"] == pytest.approx(0.3, abs=0.1)
    drawn = qvr("sample", "last", "--draws", "100", "--plot", "predicted.png")
    assert drawn.exit_code == 0 and "y[0]" in drawn.output, drawn.output
    before = qvr("sample", "model.qvr", "--prior", "--draws", "100", "--plot", "prior.svg")
    assert before.exit_code == 0 and "wrote prior.svg" in before.output, before.output
    assert Path("predicted.png").read_bytes()[:4] == b"\x89PNG"
    picture = Path("prior.svg").read_text(encoding="utf-8")
    assert picture.count('<g id="patch_') > 5 and "LineCollection" in picture
    refused = qvr("sample", "last", "--plot", "predicted.docx")
    assert refused.exit_code == 1 and "predicted.docx" in refused.output
    assert qvr("init", ".").exit_code == 1


def test_a_folder_of_its_own_data_checks(folder: Path) -> None:
    assert qvr("init", "farm").exit_code == 0
    assert sorted(path.name for path in (folder / "farm").iterdir()) == ["data.csv", "model.qvr", "qvr.toml"]
    checked = qvr("check", "farm/model.qvr", "--data", "csv:farm/data.csv")
    assert checked.exit_code == 0 and "no problems" in checked.output, checked.output


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("statistics/radon", {"radon.qvr", "radon.csv", "radon_counties.csv", "qvr.toml"}),
        ("hidden_markov", {"hidden_markov.qvr", "dice.npz", "qvr.toml"}),
        ("analyses/nile", {"nile.qvr", "nile.csv", "qvr.toml"}),
    ],
)
def test_an_example_comes_with_its_data_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["init", "mine", "--example", name])
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "mine").iterdir()} == files
    monkeypatch.chdir(tmp_path / "mine")
    named = re.findall(r'"(?:csv|npz):([^"]+)"', Path("qvr.toml").read_text())
    assert named
    assert {*named} <= files
    assert CliRunner().invoke(app, ["check", "."]).exit_code == 0


def test_every_example_can_be_had() -> None:
    assert {"radon", "statistics/radon", "analyses/bills"} <= set(examples.names())
    for name in examples.names():
        found = examples.example(name)
        assert found is not None
        assert found.files or "data =" not in found.settings


def test_an_example_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["init", str(tmp_path / "x"), "--example", "statistics/radn"])
    assert result.exit_code == 2
    assert "did you mean `statistics/radon`?" in result.output
