"""Data of chains of unequal length: nothing is wanted beyond their ends."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import torch
from scipy.stats import norm

from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.dsl import loads
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.data_checks import check_data
from tests.runs.jobs import make_job

PANEL = """
object Subject : FinSet _
object Time : FinSet 4
program p : Time -> Real 1
    data n : Subject -> Nat
    data y : Subject * Time
    sample m <- Normal(0.0, 1.0)
    observe y[g : Subject, t : Time] <- Normal(m, 1.0) [lengths=n]
    return m
"""
SEEN = "Subject,Time,y\nann,0,1.5\nann,1,2.5\nbob,0,0.5\n"


def prepared(folder: Path, counts: str) -> Prepared:
    (folder / "y.csv").write_text(SEEN)
    (folder / "n.csv").write_text(counts)
    job = make_job(folder, PANEL, algorithm="nuts", data="csv:y.csv", tables={"Subject": "csv:n.csv"})
    return prepare(job, analyse(PANEL))


def test_a_long_table_has_no_rows_beyond_the_ends(tmp_path: Path) -> None:
    run = prepared(tmp_path, "Subject,n\nann,2\nbob,1\n")
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    gone: list[list[bool]] = torch.isnan(values["y"]).tolist()  # pyright: ignore[reportUnknownMemberType]
    assert gone == [[False, False, True, True], [False, True, True, True]]
    assert values["n"].tolist() == [2, 1]


def test_a_chain_is_no_longer_than_its_set(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="row 2: 5 is above 4"):
        prepared(tmp_path, "Subject,n\nann,2\nbob,5\n")


def test_an_element_that_exists_has_a_value(tmp_path: Path) -> None:
    missing = r"y\.csv: there is no value for Subject bob, Time 1, and `n` is 3 there"
    with pytest.raises(DataProblem, match=missing) as told:
        prepared(tmp_path, "Subject,n\nann,2\nbob,3\n")
    assert "end the sequence before it by a smaller `n`" in str(told.value)


def test_a_check_of_the_data_finds_the_hole(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text(SEEN)
    (tmp_path / "n.csv").write_text("Subject,n\nann,3\nbob,1\n")
    config = RunConfig(data="csv:y.csv", tables={"Subject": "csv:n.csv"})
    found = check_data(analyse(PANEL), "p", config, tmp_path)
    (told,) = [str(one.problem).partition(" (for")[0] for one in found]
    assert told.endswith("y.csv: there is no value for Subject ann, Time 2, and `n` is 3 there")


@pytest.mark.parametrize(
    ("counts", "told"),
    [("ann,1\nbob,1\n", "1 value is not read: the first is that of Subject ann, Time 1, where `n` is 1"),
     ("ann,0\nbob,1\n", "2 values are not read: the first is that of Subject ann, Time 0, where `n` is 0"),
     ("ann,2\nbob,1\n", "")],
)  # fmt: skip
def test_rows_behind_the_end_of_a_sequence_are_told(tmp_path: Path, counts: str, told: str) -> None:
    run = prepared(tmp_path, f"Subject,n\n{counts}")
    config = RunConfig(data="csv:y.csv", tables={"Subject": "csv:n.csv"})
    found = [one.located(analyse(PANEL)) for one in check_data(analyse(PANEL), "p", config, tmp_path)]
    shown = [(one.code.name, one.severity.name, one.range.start.line) for one in found if one is not None]
    assert shown == ([("data-unused", "INFORMATION", 5)] if told else [])
    assert told in run.description and bool(told) == ("not read" in run.description)


def test_padding_behind_the_end_of_a_sequence_is_no_news(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"n": [2, 1], "y": [[1.5, 2.5, 0, 0], [0.5, 0, 0, 0]]}')
    assert not check_data(analyse(PANEL), "p", RunConfig(data="json:d.json"), tmp_path)


def test_a_label_that_another_file_lacks_names_that_file(tmp_path: Path) -> None:
    with pytest.raises(
        DataProblem, match=r"y\.csv, column `Subject`, row 3: `bob` is not in `Subject`, which .*n\.csv"
    ) as told:
        prepared(tmp_path, "Subject,n\nann,2\n")
    assert "add the element there" in str(told.value)


LONG = """
object Subject : FinSet _
object Visit : FinSet _
program p : One -> Real 1
    data n : Subject -> Nat
    data x, y : Subject * Visit [lengths=n]
    sample m <- Normal(0.0, 1.0)
    observe y[g : Subject, t : Visit] <- Normal(m * x[g, t], 1.0)
    return m
"""


def of_one_table(folder: Path, table: str) -> Prepared:
    (folder / "long.csv").write_text(table)
    return prepare(make_job(folder, LONG, algorithm="nuts", data="csv:long.csv"), analyse(LONG))


def test_a_long_table_tells_the_lengths(tmp_path: Path) -> None:
    run = of_one_table(
        tmp_path, "Subject,Visit,x,y\nann,0,1.0,1.5\nann,1,2.0,2.5\nbob,0,0.0,0.5\ncat,2,1,1\ncat,0,1,1\ncat,1,1,1\n"
    )
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["n"].tolist() == [2, 1, 3]
    gone: list[list[bool]] = torch.isnan(values["x"]).tolist()  # pyright: ignore[reportUnknownMemberType]
    assert gone == [[False, False, True], [False, True, True], [False, False, False]]


def test_a_visit_that_lacks_before_the_last_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="there is no value for Subject ann, Visit 1, and `n` is 3 there"):
        of_one_table(tmp_path, "Subject,Visit,x,y\nann,0,1,1\nann,2,2,2\nbob,0,0,0\nbob,1,0,0\n")


def test_a_column_of_lengths_comes_first(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="there is no value for Subject bob, Visit 1, and `n` is 2 there"):
        of_one_table(tmp_path, "Subject,Visit,x,y,n\nann,0,1,1,2\nann,1,2,2,2\nbob,0,0,0,2\n")


def test_a_table_in_python_tells_the_lengths() -> None:
    frame = pl.DataFrame({"Subject": ["a", "a", "b"], "Visit": [0, 1, 0], "x": [1.0, 1.0, 2.0], "y": [0.5, 1.5, 1.0]})
    model = loads(LONG, data=frame).morphism
    found = model.log_joint(None, {"m": torch.tensor(0.5, dtype=torch.float64)}).sum().item()
    terms = [(0.5, 0.0), (0.5, 0.5), (1.5, 0.5), (1.0, 1.0)]
    assert found == pytest.approx(sum(norm.logpdf(y, mean) for y, mean in terms), rel=1e-9)
