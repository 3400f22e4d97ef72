"""`qvr summary` and `qvr report`: a posterior as a table, and as a page that fetches nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app

PROGRAM = """\
object Row : FinSet _
object Group : {north, south}
object Effect : {level, slope}

program p : Row -> Row
    data g : Row -> Group
    data x, y : Row
    sample b_x <- Normal(0.0, 2.0)
    sample sd[e : Effect] <- HalfNormal(1.0)
    sample L <- LKJCholesky(2.0) [over=Effect]
    sample z[k : Group, e : Effect] <- Normal(0.0, 1.0)
    let u[k : Group, e : Effect] = sd[e] * sum(L[e, j] * z[k, j] for j : Effect)
    sample sigma <- HalfNormal(1.0)
    observe y[i : Row] <- Normal(b_x * x[i] + u[g[i], level] + u[g[i], slope] * x[i], sigma)
    return y  # <b> & co

export p
"""


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summary")
    (folder / "p.qvr").write_text(PROGRAM)
    rows = [f"{'north' if i % 2 else 'south'},{i / 10},{0.3 * i + (i * 7 % 5) / 5}" for i in range(30)]
    (folder / "d.csv").write_text("g,x,y\n" + "\n".join(rows) + "\n")
    (folder / "qvr.toml").write_text('[run.p]\ndata = "csv:d.csv"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = qvr("run", "nuts", "p.qvr", "--warmup", "150", "--samples", "150", "--chains", "2", "--seed", "1")
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(autouse=True)
def there(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)


def test_a_table_leaves_out_what_is_fixed_and_standardised_helpers() -> None:
    rows = list(csv.DictReader(io.StringIO(qvr("summary", "last", "--format", "csv").output)))
    names = [row["name"] for row in rows]
    assert {"b_x", "sigma", "sd[level]", "u[north, slope]", "L[slope, level]"} <= set(names)
    assert not any(name.startswith("z[") for name in names) and "L[level, level]" not in names
    assert all(float(row["q05"]) <= float(row["median"]) <= float(row["q95"]) for row in rows)


def test_names_and_patterns_choose_in_their_order() -> None:
    found = json.loads(qvr("summary", "last", "--format", "json", "--vars", "sigma,z,b_*").output)
    assert [row["name"] for row in found] == [
        "sigma", "z[north, level]", "z[north, slope]", "z[south, level]", "z[south, slope]", "b_x",
    ]  # fmt: skip
    one = json.loads(qvr("summary", "--format", "json", "--vars", "u[north, slope]").output)
    assert [row["name"] for row in one] == ["u[north, slope]"]
    wrong = qvr("summary", "--vars", "sigm")
    assert wrong.exit_code == 1 and "did you mean `sigma`?" in wrong.output


def test_tables_for_papers() -> None:
    latex = qvr("summary", "--format", "latex", "--vars", "b_x").output
    assert latex.startswith("\\begin{tabular}{lrrrrrrr}\n\\toprule") and "\\texttt{b\\_x} & " in latex
    lines = qvr("summary", "--vars", "b_x,sigma").output.splitlines()
    assert [line.count("|") for line in lines] == [9] * 4 and lines[2].startswith("| `b_x` | ")


def test_a_report_is_one_page_that_fetches_nothing() -> None:
    made = qvr("report", "last", "-o", "page.html")
    assert made.exit_code == 0, made.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href|url)\s*[=(](?!#)|<script|@import|http", page)
    headings = ["Program", "Data", "Data and what the prior draws", "Checks", "Posterior"]
    headings += ["Data and what the posterior draws", "Predictive accuracy (PSIS-LOO)", "Chains"]
    assert re.findall("<h2>([^<]*)", page) == [*headings, "Command and settings"]
    assert "<td>y</td><td>30 over Row</td><td>0</td>" in page and 'aria-label="what depends on what in p"' in page
    assert "return y  # &lt;b&gt; &amp; co" in page and "PSIS-LOO" in page and "elpd" in page
    assert page.count('aria-label="density of ') > 5 and 'aria-label="density of z[' not in page
    assert "qvr run nuts p.qvr" in page and "d.csv: 30 rows" in page
    rows = dict(re.findall(r"<tr><td>(\w)</td>(.*?)</tr>", page.partition("<h2>Data<")[2].partition("<h2>")[0]))
    assert "2 labels, most often north (15)" in rows["g"] and rows["g"].count("<td") == 3
    assert re.search(r"<td>30 over Row</td><td>0</td><td>0</td><td>1.45</td><td>2.9</td>", rows["x"])
    few = qvr("report", "last", "-o", "few.html", "--vars", "sigma")
    assert few.exit_code == 0
    assert Path("few.html").read_text(encoding="utf-8").count('aria-label="density of ') == 1


GRAMMAR = """\
object Word : FinSet 4
object Category : FinSet 3
object Sentence : FinSet _

deduction grammar : Word -> Category [semiring=LogProb, start=S, normalised=true]
    atoms S, NP, VP, it
    rule sentence : span(I, J, NP), span(J, K, VP) |- span(I, K, S) #[learnable]
    lexicon
        "kim" : NP = it #[learnable]
        "sandy" : NP = it #[learnable]
        "slept" : VP = it #[learnable]
        "fell" : VP = it #[learnable]

program corpus : Sentence -> Sentence
    data told : Sentence -> Seq Word
    let chart = parse(grammar, told)
    score z = chart.goal_weight()
    return z
"""


@pytest.mark.long
def test_a_fit_of_a_grammar_ends_with_its_probabilities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By counting: three of four sentences begin with Kim, and one ends with a fall."""
    monkeypatch.chdir(tmp_path)
    Path("g.qvr").write_text(GRAMMAR)
    Path("told.csv").write_text("told\nkim slept\nkim slept\nkim fell\nsandy slept\n")
    done = qvr("run", "svi", "g.qvr", "--data", "csv:told.csv", "--steps", "300", "--learning-rate", "0.1")
    assert done.exit_code == 0 and 'grammar["kim" : NP]' in done.output, done.output
    table = csv.DictReader(io.StringIO(qvr("summary", "--format", "csv").stdout))
    rows = {row["name"]: float(row["mean"]) for row in table}
    assert rows == pytest.approx({
        "grammar[sentence]": 1.0, 'grammar["kim" : NP]': 0.75, 'grammar["sandy" : NP]': 0.25,
        'grammar["slept" : VP]': 0.75, 'grammar["fell" : VP]': 0.25,
    }, abs=0.01)  # fmt: skip
    told = qvr("sample", "last")
    assert told.exit_code == 0 and "nothing to show" in told.output
