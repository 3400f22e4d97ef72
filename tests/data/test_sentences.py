"""Sentences of files: text and lists of words become numbers of a lexicon's words, and what is wrong has its row."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.cli import app
from qvr_core.data.needs import needs_of
from qvr_core.data.problems import DataProblem
from qvr_core.runs import load_run
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.data_checks import check_data, looked_at
from qvr_core.runtime.values.errors import InputProblem
from tests.runs.jobs import make_job

GRAMMAR = """
deduction english : {domain} -> FinSet 2 [start=S]
    atoms S, A, w
    rule one : span(I, J, A) |- span(I, J, S)
    rule join : span(I, K, S), span(K, J, A) |- span(I, J, S) #[weight=-0.5]
    lexicon
        "ant" : A = w #[weight=-0.1]
        "bee" : A = w #[weight=-0.2]
        "wasp" : S = w
"""
DECLARED = (
    "object Word : FinSet 3\nobject Sentence : FinSet _\n"
    + GRAMMAR.format(domain="Word")
    + """
program p : Sentence -> Sentence
    data told : Sentence -> Seq Word
    data times : Sentence
    let weight = parse(english, told).goal_weight()
    score z = sum(times[s] * weight[s] for s : Sentence)
    return z
export p
"""
)
FREE = (
    GRAMMAR.format(domain="FinSet 3")
    + """
program p : FinSet 1 -> FinSet 1
    let chart = parse(english, told)
    score z = chart.goal_weight()
    return z
export p
"""
)
SINGLE = FREE.replace("    let chart", "    data told : Seq (FinSet 3)\n    let chart")
# "bee ant bee" and "wasp", by hand
WEIGHTS = (-0.2 - 0.5 - 0.1 - 0.5 - 0.2, 0.0)


def prepared(folder: Path, text: str, name: str, content: str, **settings: Any) -> Prepared:
    (folder / name).write_text(content)
    job = make_job(
        folder, text, data=f"{name.rsplit('.', maxsplit=1)[-1]}:{folder / name}", batch_size=None, **settings
    )
    return prepare(job, analyse(text))


def data_of(found: Prepared) -> dict[str, Any]:
    _, observations = found.train.batch(torch.arange(1))
    return {name: value.tolist() for name, value in observations.items()}


def score(found: Prepared) -> float:
    _, observations = found.train.batch(torch.arange(1))
    return float(found.model.log_joint(None, dict(observations)).sum().detach())


SHORT = [[1, 0, 1], [2, -1, -1]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", "told,times\nbee ant bee,2\nwasp,3\n"),
        ("d.ndjson", '{"told": ["bee", "ant", "bee"], "times": 2}\n{"told": ["wasp"], "times": 3}\n'),
        ("d.json", '{"told": [["bee", "ant", "bee"], ["wasp"]], "times": [2, 3]}'),
        ("d.json", '{"told": ["bee ant bee", "wasp"], "times": [2, 3]}'),
        ("d.json", '{"told": [[2, 1, 2], [3]], "times": [2, 3]}'),
    ],
)
def test_sentences_are_padded_numbers_of_words_and_have_a_weight_each(tmp_path: Path, name: str, content: str) -> None:
    found = prepared(tmp_path, DECLARED, name, content)
    assert data_of(found)["told"] == SHORT
    assert score(found) == pytest.approx(2 * WEIGHTS[0] + 3 * WEIGHTS[1], abs=1e-5)


@pytest.mark.parametrize(
    ("name", "content"),
    [("d.csv", "told\nbee ant bee\nwasp\n"), ("d.json", '{"told": ["bee ant bee", "wasp"]}')],
)
def test_sentences_that_nothing_declares_are_the_rows(tmp_path: Path, name: str, content: str) -> None:
    found = prepared(tmp_path, FREE, name, content)
    assert data_of(found)["told"] == SHORT
    assert score(found) == pytest.approx(sum(WEIGHTS), abs=1e-5)


@pytest.mark.parametrize("text", [SINGLE, FREE])
def test_one_sentence_is_one(tmp_path: Path, text: str) -> None:
    found = prepared(tmp_path, text, "d.json", '{"told": "bee ant bee"}')
    assert data_of(found)["told"] == [1, 0, 1]
    assert score(found) == pytest.approx(WEIGHTS[0], abs=1e-5)


def test_the_labels_of_a_set_of_words_are_their_numbers(tmp_path: Path) -> None:
    text = DECLARED.replace("object Word : FinSet 3", "object Word : {hornet, wasp, bee, ant}")
    found = prepared(tmp_path, text, "d.csv", "told,times\nbee ant bee,2\nwasp,3\n")
    assert data_of(found)["told"] == [[2, 3, 2], [1, -1, -1]]
    assert score(found) == pytest.approx(2 * WEIGHTS[0], abs=1e-5)
    with pytest.raises(DataProblem, match="row 2: `hornet` is no word of `english`"):
        prepared(tmp_path, text, "e.csv", "told,times\nbee,2\nhornet,3\n")


@pytest.mark.parametrize(
    ("text", "name", "content", "said"),
    [
        (DECLARED, "d.csv", "told,times\nbee,2\nant bea,3\n",
         "d.csv, column `told`, row 2: `bea` is no word of `english` (for `told`). Did you mean `bee`? Its words are"),
        (FREE, "d.csv", "told\nbee\nant bea\n", "row 2: `bea` is no word of `english` (for `told`). Did you mean"),
        (FREE, "d.json", '{"told": ["bee ant", "ant bea"]}', "row 2: `bea` is no word of `english`"),
        (DECLARED, "d.json", '{"told": [["bee"], ["ant", "bea"]], "times": [1, 1]}', "row 2: `bea` is no word"),
        (DECLARED, "d.json", '{"told": [["bee"], []], "times": [1, 1]}', "row 2: the sentence has no words"),
        (DECLARED, "d.json", '{"told": [[1], [1, 4]], "times": [1, 1]}', "row 2: there is no word 4: `english` has 1"),
        (DECLARED, "d.json", '{"told": [["bee"], ["ant", 2]], "times": [1, 1]}', "row 2: 2 stands among words"),
        (DECLARED, "d.csv", "told,times\nbee,2\n,3\n", "row 2: the sentence is missing"),
        (FREE, "d.csv", "told,x\nbee,2\n,3\n", "row 2: the sentence is missing"),
        (DECLARED, "d.csv", "tolt,times\nbee,2\n", "there is no column `told`; the columns are `tolt`, `times`"),
        (FREE, "d.json", '{"tolt": ["bee"]}', "there is no array `told`; the arrays are `tolt`"),
        (DECLARED, "d.json", '{"tolt": ["bee"], "time": [1]}', "d.json: there is no array `told`; the arrays are"),
        (FREE, "d.json", '{"told": ["bee", "ant"]}', "a list of 2 words may be one sentence, or as many"),
        (DECLARED, "d.json", '{"told": ["bee", "ant", "wasp"], "times": [1, 1]}', "`Sentence` has 3"),
        (DECLARED, "d.json", '{"told": [[["bee"]]], "times": [1]}', "the shape is 1 × 1 × 1, and"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_row_and_word(tmp_path: Path, text: str, name: str, content: str, said: str) -> None:
    with pytest.raises(DataProblem) as caught:
        prepared(tmp_path, text, name, content)
    assert said in str(caught.value)
    if text is DECLARED or name == "d.csv":
        # the editor says the same without reading it into a run
        config = RunConfig(data=f"{name.rsplit('.', maxsplit=1)[-1]}:{name}")
        told = [str(finding.problem) for finding in check_data(analyse(text), "p", config, tmp_path)]
        assert any(said.removeprefix("d.csv, ") in one for one in told), told


def test_a_sentence_that_the_grammar_does_not_derive_is_refused_before_the_fit(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        prepared(tmp_path, DECLARED, "d.csv", "told,times\nbee,2\nbee wasp ant,3\nant wasp,1\n")
    said = "`english` derives no `S` from sentence 2 of `told`, `bee wasp ant`, and 1 more have none"
    assert str(caught.value) == said and caught.value.site == "told"
    # truth values and counts may be 0
    counting = FREE.replace("start=S", "start=S, semiring=Counting")
    assert score(prepared(tmp_path, counting, "d.csv", "told\nbee\nbee wasp ant\n")) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asked", "said", "place"),
    [
        ('parse(english, "bee wasp ant").goal_weight()', "derives no `S` from `bee wasp ant`", '"bee wasp ant"'),
        (
            'sum(parse(english, ["bee", "ant wasp"]).goal_weight())',
            "derives no `S` from sentence 2, `ant wasp`",
            '["bee", "ant wasp"]',
        ),
        (
            'parse(english, "bee ant").weight(span(0, 3, S))',
            "derives no `span(0, 3, S)` from `bee ant`",
            "span(0, 3, S)",
        ),
        ('parse(compose(english, english), "ant wasp").goal_weight()', "derives no `S` from `ant wasp`", '"ant wasp"'),
    ],
)
def test_a_sentence_of_a_program_that_has_no_derivation_is_refused_at_its_place(
    tmp_path: Path, asked: str, said: str, place: str
) -> None:
    text = GRAMMAR.format(domain="FinSet 3")
    text += f"program p : FinSet 1 -> FinSet 1\n    score z = {asked}\n    return z\nexport p\n"
    with pytest.raises(Refused, match=re.escape(said)) as caught:
        prepare(make_job(tmp_path, text, data="synthetic"), analyse(text))
    origin = caught.value.origin
    assert origin is not None
    found = analyse(text).find(origin)
    assert found is not None
    assert text.splitlines()[found.start.line][found.start.column : found.end.column] == place


@pytest.mark.parametrize("data", ["synthetic", "text:t.txt"])
@pytest.mark.parametrize("text", [FREE, DECLARED])
def test_sentences_are_not_made_up(tmp_path: Path, text: str, data: str) -> None:
    (tmp_path / "t.txt").write_text("bee ant")
    with pytest.raises(Refused) as caught:
        prepare(make_job(tmp_path, text, data=data), analyse(text))
    assert "`told` holds sentences" in str(caught.value) and "--data csv:FILE" in caught.value.fixes[0]


def test_a_lexicon_in_a_file_has_its_words_behind_those_of_the_text(tmp_path: Path) -> None:
    lexicon = tmp_path / "words.lex"
    lexicon.write_text('"fly" : A = w #[weight=-0.4]\n"ant" : S = w\n')
    text = FREE.replace('        "wasp" : S = w\n', f'        "wasp" : S = w\n    lexicon from "{lexicon}"\n')
    found = prepared(tmp_path, text, "d.csv", "told\nbee fly\n")
    assert data_of(found)["told"] == [[1, 3]]
    assert score(found) == pytest.approx(-0.2 - 0.5 - 0.4, abs=1e-5)
    lexicon.unlink()
    with pytest.raises((DataProblem, InputProblem), match="there is no lexicon file"):
        prepared(tmp_path, text, "d.csv", "told\nbee fly\n")


@pytest.mark.parametrize(
    "data",
    [
        pl.DataFrame({"told": ["bee ant bee", "wasp"], "times": [2.0, 3.0]}),
        {"told": [["bee", "ant", "bee"], ["wasp"]], "times": [2.0, 3.0]},
        {"told": torch.tensor(SHORT), "times": torch.tensor([2.0, 3.0])},
    ],
)
def test_python_gives_sentences_as_files_do(data: Any) -> None:
    model = dsl.loads(DECLARED, data=data).morphism
    assert float(model.log_joint(None, {}).sum()) == pytest.approx(2 * WEIGHTS[0] + 3 * WEIGHTS[1], abs=1e-5)


def test_a_frame_gives_sentences_that_nothing_declares() -> None:
    model = dsl.loads(FREE, data=pl.DataFrame({"told": ["bee ant bee", "wasp"]})).morphism
    assert float(model.log_joint(None, {}).sum()) == pytest.approx(sum(WEIGHTS), abs=1e-5)


NEW_ROWS = DECLARED.replace("    data times : Sentence\n", "    sample b <- Normal(0.0, 1.0)\n").replace(
    "score z = sum(times[s] * weight[s] for s : Sentence)\n    return z",
    "observe y[s : Sentence] <- Normal(b * weight[s], 0.1)\n    return b",
)


def test_a_fit_predicts_new_sentences_and_refuses_those_without_a_derivation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.qvr").write_text(NEW_ROWS)
    (tmp_path / "d.csv").write_text("told,y\nbee ant bee,-3.0\nbee,-0.4\nant,-0.2\nbee ant,-1.6\n")
    (tmp_path / "new.csv").write_text("told\nant ant ant ant\nbee\n")
    (tmp_path / "wrong.csv").write_text("told\nant\nant wasp\n")
    few = ["--samples", "200", "--warmup", "200", "--chains", "1"]
    done = CliRunner().invoke(app, ["run", "nuts", "p.qvr", "--data", "csv:d.csv", *few])
    assert done.exit_code == 0, done.output
    # y is twice the weight: −0.1 for each of four words and −0.5 for each of three joins
    assert load_run("last").draw(200, data="csv:new.csv")["y"].mean(0).tolist() == pytest.approx([-3.8, -0.4], abs=0.15)
    done = CliRunner().invoke(app, ["sample", "last", "--data", "csv:wrong.csv"])
    assert done.exit_code == 1
    assert "derives no `S` from sentence 2 of `told`, `ant wasp`" in " ".join((done.output + done.stderr).split())


def test_sentences_may_come_as_text_when_the_program_runs() -> None:
    text = DECLARED.replace("Sentence : FinSet _", "Sentence : FinSet 2")
    model = dsl.loads(text).morphism
    given = {"told": ["bee ant bee", ["wasp"]], "times": torch.tensor([2.0, 3.0])}
    assert float(model.log_joint(None, given).sum()) == pytest.approx(2 * WEIGHTS[0], abs=1e-5)
    with pytest.raises(InputProblem, match="found 1 sentences"):
        model.log_joint(None, {**given, "told": ["bee ant"]})
    with pytest.raises(InputProblem, match="there are words 0 to 2, but no word -1"):
        model.log_joint(None, {**given, "told": torch.tensor([[1, -1, 1], [2, -1, -1]])})


def test_equal_sentences_have_one_chart_and_gradients_of_both() -> None:
    text = FREE.replace("#[weight=-0.2]", "#[learnable]")
    d: Any = dsl.loads(text).deductions["english"]
    charts = d.parse(["bee", "bee ant bee", "bee"])
    assert len(charts.charts) == 2
    charts.goal_weight().sum().backward()
    assert d.lexicon.grad.tolist() == pytest.approx([4.0])
    total = sum(math.exp(float(d.parse(one).goal_weight().detach())) for one in ("bee", "bee ant bee"))
    assert float(charts.goal_weight().detach().exp()[:2].sum()) == pytest.approx(total, abs=1e-6)


def test_the_editor_counts_words(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("told,times\nbee ant bee,2\nwasp,3\n")
    found = looked_at(analyse(DECLARED), "p", RunConfig(data="csv:d.csv"), tmp_path)
    assert found.findings == []
    assert "4 words; `bee` 2, `ant` 1, `wasp` 1" in found.about["told"]


def test_what_a_program_needs_is_said() -> None:
    (told,) = needs_of(analyse(FREE).model.programs["p"]).data
    assert (told.kind, told.written) == ("sentences", "sentences of `english`")
    assert json.dumps(told.lexicon.words if told.lexicon else None) == '["ant", "bee", "wasp"]'


def test_a_check_reads_lexicons_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head = GRAMMAR.format(domain="FinSet 3")
    (tmp_path / "p.qvr").write_text(head + '    lexicon from "words.lex"\n')
    check = ["check", "p.qvr", "--json"]
    done = CliRunner().invoke(app, check)
    assert done.exit_code == 1 and "there is no lexicon file `words.lex`" in done.output
    (tmp_path / "words.lex").write_text('"fly" : A = w\n\n"gnat" : B = w\n')
    done = CliRunner().invoke(app, check)
    assert done.exit_code == 1 and "words.lex:3: `B` in this category is neither an atom nor bound" in done.output
    (tmp_path / "words.lex").write_text('"fly" : A = w\n')
    assert CliRunner().invoke(app, check).exit_code == 0
