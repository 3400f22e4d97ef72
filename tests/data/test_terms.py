"""Terms in files: however they are written they are the same tables, and what is wrong is told at its row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from qvr_core.analysis import analyse
from qvr_core.cli import app
from qvr_core.data.binding import bind
from qvr_core.data.needs import needs_of
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.semantics.terms.written import DEEPEST, MOST_NODES, TermProblem, term_table, term_text
from qvr_core.semantics.types.spaces import Finite, Real, Terms
from tests.runs.jobs import make_job

FILE = """\
object Name : {p, q, r}
object Code : Real 4
object Label : {no, yes}
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula) | box(Real 2, Formula)
morphism letter : Name -> Code [role=embed]
morphism combine : Code * Code -> Code [role=linear]
morphism judge : Code -> Label [role=kernel] ~ Categorical
encoder meaning : Formula -> Code
    atom(n) = letter(n)
    truth = zeros(4)
    not(a) = -a
    and(a, b) = tanh(combine(a, b))
    box(s, a) = a
program classify(f) : Formula -> Label
    let code = meaning(f)
    observe label <- judge(code)
    return label
export classify
"""
WRITTEN = ["(and (atom p) (not truth))", "truth", " (box (0.5 -1e3)\t(atom 2)) ", '(not (atom "q"))']
LISTS: list[Any] = [
    ["and", ["atom", "p"], ["not", "truth"]],
    "truth",
    ["box", [0.5, -1000], ["atom", "r"]],
    ["not", ["atom", 1]],
]
OBJECTS: list[Any] = [
    {"and": [{"atom": "p"}, {"not": "truth"}]},
    {"truth": []},
    {"box": [[0.5, -1000.0], {"atom": 2}]},
    {"not": {"atom": "q"}},
]
SPACE = Terms(
    "Formula",
    (
        ("atom", (Finite(3, "Name", ("p", "q", "r")),)),
        ("truth", ()),
        ("not", (None,)),
        ("and", (None, None)),
        ("box", (Real((2,), low=-2000.0), None)),
    ),
)


def bound(path: Path, source: str) -> torch.Tensor:
    model = analyse(FILE).model
    rows = bind(read_columns(str(path), source), needs_of(model.programs["classify"]), {})
    return rows.batch(torch.arange(rows.rows))[0]


def written(folder: Path) -> list[tuple[Path, str]]:
    """The same four terms in every kind of file."""
    labels = [0, 1, 1, 0]
    quoted = ['"{}"'.format(text.replace('"', '""')) for text in WRITTEN]
    csv = "f,label\n" + "".join(f"{f},{y}\n" for f, y in zip(quoted, labels, strict=True))
    (folder / "d.csv").write_text(csv)
    jsons = [json.dumps(one).replace('"', '""') for one in LISTS]
    (folder / "j.csv").write_text("f,label\n" + "".join(f'"{f}",{y}\n' for f, y in zip(jsons, labels, strict=True)))
    for name, terms in (("text", WRITTEN), ("lists", LISTS), ("objects", OBJECTS)):
        lines = (json.dumps({"f": f, "label": y}) for f, y in zip(terms, labels, strict=True))
        (folder / f"{name}.ndjson").write_text("\n".join(lines))
    pl.DataFrame({"f": WRITTEN, "label": labels}).write_parquet(folder / "d.parquet")
    np.savez(folder / "d.npz", f=np.array(WRITTEN), label=np.array(labels))
    files = ["d.csv", "j.csv", "text.ndjson", "lists.ndjson", "objects.ndjson", "d.parquet", "d.npz"]
    return [(folder / name, name.rpartition(".")[2]) for name in files]


def test_all_ways_to_write_a_term(tmp_path: Path) -> None:
    tables = [bound(path, source) for path, source in written(tmp_path)]
    assert tables[0].shape == (4, 4, 5)
    for table in tables[1:]:
        assert torch.equal(table, tables[0])
    # and(atom p, not truth): the root, then level by level
    assert tables[0][0].tolist() == [[3, 0, 1, 2, -1], [0, 1, 0, -1, -1], [2, 1, 3, -1, -1], [1, 2, -1, -1, -1]]
    numbers = tables[0][2, 0, 2:4].contiguous().view(torch.float64)
    assert numbers.tolist() == [0.5, -1000.0]


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("(xor truth truth)", "`Formula` has no constructor `xor`. It has `atom`, `truth`, `not`, `and`, `box`"),
        ("(not (andd truth truth))", "has no constructor `andd`, in argument 1 of `not`. Did you mean `and`?"),
        ("(and truth)", "`and` takes 2 arguments, and 1 stands here. It is `(and … …)`"),
        ("(not (truth truth))", "`truth` takes nothing, and 1 stands here, in argument 1 of `not`. It is `truth`"),
        ("(and truth (not (atom x)))", "`x` is no element of `Name`, in argument 1 of `atom`, in argument 1 of `not`"),
        ("(atom 3)", "`3` is no element of `Name`, in argument 1 of `atom`. Its elements are `p`, `q`, `r`"),
        ("(box (1 2 3) truth)", "3 stand, and 2 numbers are wanted, in argument 1 of `box`. Write `(0.0 0.0)`"),
        ("(box (1 x) truth)", "`x` is not a number, in argument 1 of `box`"),
        ("(box (1 nan) truth)", "nan is not finite, in argument 1 of `box`"),
        ("(box (1 -3000) truth)", "-3000 is below -2000, in argument 1 of `box`"),
        ("not truth", "more than one term stands here. A constructor stands inside its brackets: `(not …)`"),
        ("(not truth", "1 `)` is missing at the end"),
        ("(not truth))", "a `)` closes nothing"),
        ("  ", "there is no term"),
        ("()", "a term begins with its constructor, and nothing stands here"),
        ('["not", ', "this is no JSON: "),
        ("(not [a])", "`[a]` is no argument, and no JSON, in argument 1 of `not`. An s-expression has round brackets"),
        ('(atom "p)', "a quote is not closed"),
        (None, "there is no term"),
        (3, "`3` is no term. Write `(name …)`, "),
        ({"not": "truth", "truth": []}, "is no term"),
    ],
)
def test_what_is_wrong_with_a_term(term: object, said: str) -> None:
    with pytest.raises(TermProblem) as caught:
        term_table(term, SPACE)
    assert said in f"{caught.value.message}. {caught.value.remedy}"


def test_terms_are_of_bounded_size() -> None:
    assert len(term_table("(not " * (DEEPEST - 1) + "truth" + ")" * (DEEPEST - 1), SPACE)) == DEEPEST
    for depth in (DEEPEST, 100_000):
        with pytest.raises(TermProblem, match="levels deep"):
            term_table("(not " * depth + "truth" + ")" * depth, SPACE)
    with pytest.raises(TermProblem, match="nested too deeply for JSON"):
        term_table('["not",' * 100_000 + '"truth"' + "]" * 100_000, SPACE)
    wide = "truth"
    for _ in range(MOST_NODES.bit_length()):
        wide = f"(and {wide} {wide})"
    with pytest.raises(TermProblem, match="more than 10,000 nodes"):
        term_table(wide, SPACE)


def test_errors_name_file_column_row_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.qvr").write_text(FILE)
    Path("d.csv").write_text("f,label\ntruth,1\n(nott truth),0\n")
    said = "`d.csv`, column `f`, row 2: `Formula` has no constructor `nott`"
    with pytest.raises(DataProblem) as caught:
        bound(Path("d.csv"), "csv")
    assert said.replace("`d.csv`", "d.csv") in str(caught.value)
    # while one types, too
    checked = CliRunner().invoke(app, ["check", "m.qvr", "--data", "csv:d.csv"])
    assert checked.exit_code == 1
    assert said.replace("`d.csv`", "d.csv") in " ".join(checked.output.split())


def test_a_fit_and_its_predictions_of_new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.qvr").write_text(FILE)
    rows = ["(atom p),1", "(not (atom p)),0", "truth,1", "(and (atom q) (atom p)),1"]
    Path("d.csv").write_text("f,label\n" + "\n".join(rows * 8) + "\n")
    Path("new.ndjson").write_text('{"f": ["and", ["atom", "p"], ["not", ["atom", "q"]]]}\n{"f": "truth"}\n')
    run = CliRunner()
    done = run.invoke(app, ["run", "svi", "m.qvr", "--data", "csv:d.csv", "--steps", "3", "--batch-size", "4"])
    assert done.exit_code == 0, done.output
    drawn = run.invoke(app, ["sample", "last", "--data", "ndjson:new.ndjson", "--draws", "5", "--json"])
    assert drawn.exit_code == 0, drawn.output
    assert {row["name"] for row in json.loads(drawn.stdout)} == {"label[0]", "label[1]"}


def test_synthetic_terms_and_sources_without_cells(tmp_path: Path) -> None:
    job = make_job(tmp_path, FILE, data="synthetic", rows=40)
    train = prepare(job, analyse(FILE)).train
    x, observed = train.batch(torch.arange(40))
    assert x.shape[0] == 40
    assert x.shape[1] > 1
    assert x[:, :, 1].max() < 4  # levels
    assert {*observed} == {"label"}
    (tmp_path / "d.json").write_text("{}")
    with pytest.raises(Refused, match="`f` is a term a row, and those are read from csv, ndjson, parquet and npz"):
        prepare(make_job(tmp_path, FILE, data="json:d.json"), analyse(FILE))


@pytest.mark.parametrize("term", ["truth", '(and (atom "p") (box (0.1 -1e-300) (not (atom 1))))', "(not (not truth))"])
def test_a_table_written_as_text_is_the_same_term(term: str) -> None:
    table = term_table(term, SPACE)
    text = term_text([*table, (-1,) * 5], SPACE)
    assert term_table(text, SPACE) == table
    assert term_text(term_table(text, SPACE), SPACE) == text


def test_labels_that_are_no_words_are_quoted() -> None:
    space = Terms("T", (("of", (Finite(2, "L", ("a b", 'c"d')),)),))
    for label in ("a b", 'c"d'):
        table = term_table(["of", label], space)
        assert term_table(term_text(table, space), space) == table


MADE = """\
object Name : {p, q, r}
object Code : Real 4
data type Formula = atom(Name) | not(Formula) | and(Formula, Formula)
morphism prior : One -> Code [role=kernel] ~ Normal(0.0, 1.0)
morphism choose : Code -> FinSet 3 [role=kernel, hidden_dim=4] ~ Categorical
morphism letter : Code -> Name [role=kernel, hidden_dim=4] ~ Categorical
morphism left, right : Code -> Code [role=linear]
morphism name : Name -> Code [role=embed]
morphism look : Code -> Code [role=kernel, hidden_dim=4] ~ Normal
decoder unmeaning : Code -> Formula [depth=3]
    Formula(h) = choose(h)
    atom(h) = letter(h)
    not(h) = left(h)
    and(h) = (left(h), right(h))
encoder meaning : Formula -> Code
    atom(n) = name(n)
    not(a) = left(a)
    and(a, b) = a - b
program vae(unit) : One -> Formula
    sample code <- prior(unit)
    observe formula <- unmeaning(code)
    return formula
program looking : One -> Formula [guide=vae]
    let seen = meaning(formula)
    sample code <- look(seen)
export vae
"""


def test_a_fit_of_what_draws_terms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms are observed, read by a guide, drawn anew and written as text; deeper ones are refused."""
    monkeypatch.chdir(tmp_path)
    Path("m.qvr").write_text(MADE)
    rows = ["(atom p)", "(not (atom q))", "(and (atom q) (not (atom p)))", "(atom r)"]
    Path("d.csv").write_text("unit,formula\n" + "".join(f"0,{row}\n" for row in rows * 4))
    Path("deep.csv").write_text("unit,formula\n0,(atom p)\n0,(not (not (not (atom p))))\n")
    run = CliRunner()
    deep = run.invoke(app, ["check", "m.qvr", "--data", "csv:deep.csv"])
    assert deep.exit_code == 1
    said = "row 2: the term is deeper than 3 levels, the most that its decoder makes"
    assert said in " ".join(deep.output.split())
    done = run.invoke(app, ["run", "svi", "m.qvr", "--data", "csv:d.csv", "--steps", "3", "--batch-size", "4"])
    assert done.exit_code == 0, done.output
    new = ["sample", "last", "--draws", "6"]
    drawn = run.invoke(app, [*new, "--json"])
    found = {row["name"]: row for row in json.loads(drawn.stdout)}
    space = analyse(MADE).model.term_arrows["unmeaning"].codomain.space
    assert isinstance(space, Terms)
    for at in (0, 1):
        assert term_table(found[f"formula[{at}]"]["term"], space)
        assert 1 / 6 <= found[f"formula[{at}]"]["share"] <= 1
    for name in ("out.csv", "out.npz", "out.nc"):
        assert run.invoke(app, [*new, "-o", name]).exit_code == 0
    assert "name,mean,sd,q05,median,q95,term,share" in Path("out.csv").read_text()
    texts = np.load("out.npz")["formula"]
    assert texts.shape == (6, 16)
    assert all(term_table(str(text), space) for text in texts.flatten())
    shown = run.invoke(app, [*new])
    assert "commonest term" in shown.output and "formula[1]" in shown.output


def test_synthetic_terms_are_as_deep_as_their_decoder_makes_them(tmp_path: Path) -> None:
    job = make_job(tmp_path, MADE, data="synthetic", rows=40, program="vae")
    train = prepare(job, analyse(MADE)).train
    _, observed = train.batch(torch.arange(40))
    assert observed["formula"].shape[1] > 1
    assert observed["formula"][:, :, 1].max() < 3


DRAWN = """\
data type Tree = leaf(Real 2) | up(Tree) | node(Tree, Tree)
object Code : Real 2
morphism grow : Code -> Code [role=kernel, param_source=linear] ~ Normal
morphism join : Code * Code -> Code [role=kernel, param_source=linear] ~ Normal
encoder walk : Tree -> Code
    leaf(x) = x
    up(a) = grow(a)
    node(a, b) = join(a, b)
program p(t) : Tree -> Code
    sample m <- walk(t)
    observe y : Code <- Normal(m, 0.5)
    return m
export p
"""


@pytest.mark.parametrize(
    "how", [["svi", "--steps", "20"], ["nuts", "--warmup", "5", "--samples", "5", "--chains", "1"]]
)
def test_new_terms_are_drawn_anew_of_a_fit(how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger ones than the fit saw; what is computed is the same in every draw."""
    monkeypatch.chdir(tmp_path)
    Path("m.qvr").write_text(DRAWN)
    rows = {
        "(up (leaf (1 2)))": [0.5, 1.0],
        "(node (leaf (0 0)) (up (leaf (1 1))))": [0.0, 1.0],
        "(leaf (1 1))": [1.0, 1.0],
    }
    Path("d.ndjson").write_text("".join(json.dumps({"t": t, "y": y}) + "\n" for t, y in rows.items()))
    Path("new.csv").write_text("t\n(leaf (3 4))\n(node (node (up (up (leaf (1 1)))) (leaf (0 1))) (up (leaf (2 2))))\n")
    fitted = CliRunner().invoke(app, ["run", *how, "m.qvr", "--data", "ndjson:d.ndjson", "--threads", "1"])
    assert fitted.exit_code == 0, fitted.output
    done = CliRunner().invoke(app, ["sample", "last", "--data", "csv:new.csv", "--json"])
    assert done.exit_code == 0, done.output
    found = {row["name"]: row for row in json.loads(done.stdout)}
    for place, number in enumerate((3.0, 4.0)):
        assert found[f"y[0, {place}]"]["mean"] == pytest.approx(number, abs=1.0)
        assert found[f"y[1, {place}]"]["sd"] > 0.6
