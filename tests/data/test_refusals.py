"""What a file or an array is refused for that few meet, each told once, in the words of the file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.data.binding import bind
from qvr_core.data.json_files import read_json
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns
from qvr_core.data.text import plan, read_corpus
from qvr_core.data.typed.csv_text import read_csv
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.data_checks import plain_reader
from tests.runs.jobs import make_job

TOKENS = Needs(
    "model",
    (Need("input", "x", "finite", "Token", size=256, sequence=True),),
    (Need("observed", "token", "finite", "Token", size=256, sequence=True),),
    (),
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"x": [1, 2', "this is not json: "),
        ("[" * 100_000, "it is nested too deeply"),
        ("[1, 2]", "this is no json object. Write one object: names, each with a number or nested lists"),
        ('{"x": [1, [2]]}', "column `x`: numbers and lists stand beside each other"),
    ],
)
def test_json_that_holds_no_arrays(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(content)
    with pytest.raises(DataProblem) as caught:
        read_json(str(path), None)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"), [('{"x": [1, 2', "this is not json: "), ("[1, 2]", "this is no json object")]
)
def test_json_is_looked_at_while_one_types(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(content)
    with pytest.raises(DataProblem, match=said):
        plain_reader(str(path), "json", 1)


def test_a_table_in_other_bytes_is_no_csv_for_the_server(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(b"y\n\xff\n")
    with pytest.raises(DataProblem, match="this is not UTF-8"):
        read_csv(str(path), 10)


def test_an_archive_without_arrays(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(DataProblem, match="the archive holds no arrays"):
        read_columns(str(path), "npz")


@pytest.mark.parametrize(
    ("cells", "said"),
    [([[1, 2], [None, 3]], "row 2: a value of the list is missing"), ([["a", "b"], ["c", "d"]], "the lists hold ")],
)
def test_lists_that_are_no_sequence_of_tokens(tmp_path: Path, cells: list[Any], said: str) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"x": cells, "token": [[1, 2], [2, 3]]}).write_parquet(path)
    with pytest.raises(DataProblem, match=said):
        bind(read_columns(str(path), "parquet"), TOKENS, {})


def test_a_text_that_is_a_folder_or_empty_or_masked_for_a_sequence(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match=r"this is a folder\. Name the text file inside it"):
        read_corpus(str(tmp_path))
    path = tmp_path / "t.txt"
    path.write_text("")
    with pytest.raises(DataProblem, match=r"the file is empty\. A text run needs at least one window"):
        read_corpus(str(path))
    path.write_text("hello world, hello")
    with pytest.raises(DataProblem, match="a masked text gives one target per window, not a sequence"):
        plan(read_corpus(str(path)), TOKENS, task="masked", both_ways=False, length=4, mask="middle", mask_token=None)


RADON = """
object County : FinSet _
object House : FinSet _
program radon : House -> House
    data county : House -> County
    data floor : House
    data cut : Real 1
    sample mu : County <- Normal(cut, 1.0)
    let eta = mu[county] + floor
    observe log_radon : House <- Normal(eta, 1.0)
    return mu
"""
HOUSES = {"county": ["b", "a"], "floor": [0, 1], "cut": [1, 1], "log_radon": [0.1, 0.2]}
NUMBERED = RADON.replace("County : FinSet _", "County : FinSet 3")
SHARES = """
object Row : FinSet 2
program p : Row -> Row
    data w : Row -> Simplex 2
    sample m : Row <- Normal(w[0], 1.0)
    return m
"""


@pytest.mark.parametrize(
    ("text", "data", "said"),
    [
        (RADON, pl.DataFrame({**HOUSES, "cut": [1, 2]}), "`cut` is a single value, and the column holds several"),
        (RADON, {**HOUSES, "cut": [1.0, 2.0]}, "the shape is 2, and `Real 1` takes a single number"),
        (RADON, pl.DataFrame({**HOUSES, "county": [[1], [2]]}), "[1] is no element of a set: `County` takes text or"),
        (NUMBERED, pl.DataFrame(HOUSES), "`b` is not a number (for `county`). Number the elements of `County` from 0"),
        (SHARES, {"w": [[0.5, 0.5], [0.5, 0.6]]}, "row 2: the probabilities add up to 1.1"),
        (SHARES, {"w": [[0.5, 0.5], [0.5]]}, "column `w`: lists beside each other have 1 and 2 entries"),
    ],
)
def test_values_that_are_none_of_a_declared_type(text: str, data: Any, said: str) -> None:
    with pytest.raises(DataProblem) as caught:
        dsl.loads(text, data=data)
    assert said in str(caught.value)


LAID = """
object R, Y : FinSet _
program p : R -> R
    data x : R * Y
    data w : Y
    sample m <- Normal(0.0, 1.0)
    observe x : R * Y <- Normal(m + w, 1.0)
    return m
"""
SIZED = LAID.replace("object R, Y : FinSet _", "object R, Y : FinSet 2")
YEARS = "Y,w\na,1\nb,2\n"


@pytest.mark.parametrize(
    ("text", "main", "years", "columns", "said"),
    [
        (LAID, "p,q\n1,2\n", "Y,w\na,1\nb,2\nc,3\n", ["p", "q"], "2 columns are listed, and `Y` has 3 elements"),
        (SIZED, "x\n1\n2\n", "w\n1\n2\n", None, "`x` runs over `Y`, and the rows of "),
        (LAID, "R,Y,x\n1,a,1\n2,,2\n", YEARS, None, "column `Y`, row 2: the label is missing (for `x`). Fill it in"),
        (LAID, "R,Y,x\n1,a,1\n2,b,2\n", "Y,w\na,1\n,2\n", None, "column `Y`, row 2: the label is missing"),
    ],
)  # fmt: skip
def test_tables_that_do_not_lie_along_two_sets(
    tmp_path: Path, text: str, main: str, years: str, columns: list[str] | None, said: str
) -> None:
    with pytest.raises(DataProblem) as caught:
        prepared(tmp_path, text, main, years, columns)
    assert said in str(caught.value)


def test_listed_columns_are_sought_where_they_stand(tmp_path: Path) -> None:
    run = prepared(tmp_path, LAID, "p,q\n1,2\n3,4\n5,6\n", YEARS, ["p", "q"])
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["x"].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert values["w"].tolist() == [1.0, 2.0]


def prepared(folder: Path, text: str, main: str, years: str, columns: list[str] | None) -> Prepared:
    """A run whose main table is `main`, and whose set `Y` has a table of its own."""
    (folder / "main.csv").write_text(main)
    (folder / "years.csv").write_text(years)
    listed = {} if columns is None else {"columns": {"x": columns}}
    job = make_job(folder, text, algorithm="nuts", data="csv:main.csv", tables={"Y": "csv:years.csv"}, **listed)
    return prepare(job, analyse(text))
