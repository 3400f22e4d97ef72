"""Sets and the data along them: labels of arrays, and what a program of several does not need."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest
import torch
import xarray

from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.runs.prepare.prepare import prepare
from tests.data.test_typed_data import given
from tests.runs.jobs import make_job

LABELLED = """
object Kind : {cat, dog, fox}
object Row : FinSet _
program p : Row -> Row
    data weight : Kind
    data x : Row * Kind
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


def test_labels_of_an_array_are_those_of_the_set() -> None:
    kinds = ["fox", "cat", "dog"]
    x = xarray.DataArray([[3.0, 6.0], [1.0, 4.0], [2.0, 5.0]], dims=["kind", "row"], coords={"kind": kinds})
    values, _ = given(LABELLED, {"weight": pandas.Series([3.0, 1.0, 2.0], index=kinds), "x": x})
    assert values["weight"] == [1.0, 2.0, 3.0]
    assert values["x"] == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    said = "the elements of `Kind` are `cat`, `dog`, `fox`, and the array has `fox`, `cat`, `owl`"
    with pytest.raises(DataProblem, match=said):
        given(LABELLED, {"weight": pandas.Series([3.0, 1.0, 2.0], index=["fox", "cat", "owl"]), "x": x})


def test_a_set_that_only_another_program_speaks_of_needs_no_data(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    two = "\n".join(
        f"program {name} : {rows} -> {rows}\n    data {x} : {rows}\n    sample b <- Normal(0.0, 1.0)\n"
        f"    observe {y} : {rows} <- Normal(b * {x}, 1.0)\n    return b"
        for name, rows, x, y in (("one", "Row", "x", "y"), ("two", "Other", "z", "w"))
    )
    text = f"object Row, Other, Third : FinSet _\n{two}\n"
    job = make_job(tmp_path, text, "one", algorithm="nuts", data="csv:d.csv", batch_size=None)
    made = prepare(job, analyse(text))
    assert made.train.batch(torch.arange(1))[1]["x"].tolist() == [1.0, 2.0, 3.0]
    assert made.description.endswith("d.csv: 3 rows (Row 3)")
    with pytest.raises(DataProblem, match="Third"):
        unsaid = text.replace("    sample b", "    sample c : Third <- Normal(0.0, 1.0)\n    sample b", 1)
        prepare(make_job(tmp_path, unsaid, "one", algorithm="nuts", data="csv:d.csv"), analyse(unsaid))


CALLED_LIKE_ITS_SET = """
object Day : {days}
program p : Day -> Day
    data day, rain : Day
    observe rain : Day <- Normal(day, 1.0)
    return rain
"""


@pytest.mark.parametrize(
    ("days", "cells", "rain"),
    [
        ("FinSet 4", [1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0]),
        ("FinSet 4", [9, 9, 2, 3], [0.0, 1.0, 2.0, 3.0]),
        ("FinSet 4", [0.5, 1, 2, 3], [0.0, 1.0, 2.0, 3.0]),
        ("FinSet _", [1, 0.5, 2, 3], [0.0, 1.0, 2.0, 3.0]),
        ("{mon, tue, wed, thu}", [4, 2, 3, 1], [0.0, 1.0, 2.0, 3.0]),
        ("FinSet 4", [3, 0, 1, 2], [1.0, 2.0, 3.0, 0.0]),  # its positions
        ("FinSet _", [7, 2, 3, 4], [1.0, 2.0, 3.0, 0.0]),  # its labels
    ],
)
def test_a_column_called_like_its_set_is_numbers_where_it_names_nothing(
    days: str, cells: list[float], rain: list[float]
) -> None:
    table = pandas.DataFrame({"day": cells, "rain": [0.0, 1.0, 2.0, 3.0]})
    values, _ = given(CALLED_LIKE_ITS_SET.format(days=days), table)
    assert values["rain"] == rain
    assert values["day"] == [cells[int(at)] for at in rain]


@pytest.mark.parametrize(
    ("days", "cells", "said"),
    [
        ("FinSet _", [1, 2, 2, 3], "row 2 is about Day 2 already .*Keep one of them. If the rows are the elements"),
        ("FinSet 4", [4, 3, 2, 1], "`4` is not in `Day`: 0 to 3 .*from 1, say `one_based.* call the set otherwise"),
    ],
)
def test_a_column_that_may_be_numbers_or_names_is_refused_with_both(days: str, cells: list[int], said: str) -> None:
    with pytest.raises(DataProblem, match=said):
        given(CALLED_LIKE_ITS_SET.format(days=days), pandas.DataFrame({"day": cells, "rain": [0.0, 1.0, 2.0, 3.0]}))
