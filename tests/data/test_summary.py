"""What is said of the data behind a name: values, gaps, range, labels."""

from __future__ import annotations

import pytest

from qvr_core.analysis import analyse
from qvr_core.data.needs import needs_of
from qvr_core.data.typed.sources import Array, Arrays, Sources, Table
from qvr_core.data.typed.summary import summaries

TEXT = """
object Row : FinSet _
object Feature : {basement, garden}
object Town : FinSet _
program p : Row -> Row
    data x : Row * Feature
    data town : Row -> Town
    data y : Row
    sample b : Feature <- Normal(0.0, 1.0)
    sample m : Town <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(m[town[i]] + sum(b[f] * x[i, f] for f : Feature), 1.0) [missing=drop]
    return b
"""
NEEDS = needs_of(analyse(TEXT).model.programs["p"]).all


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x", "`t.csv`: 10 values; 0 to 8, mean 2.5"),
        ("town", "`t.csv`: 5 values; `a` 1, `b` 1, `c` 1, `d` 1 and 1 more"),
        ("y", "`t.csv`: 3 values and 2 missing; -1 to 2.5, mean 0.5"),
    ],
)
def test_columns_are_counted_and_summed_up(name: str, words: str) -> None:
    columns = {
        "basement": [0, 1, 0, 1, 1],
        "garden": [2, 4, 8, 8, 0],
        "town": list("abcde"),
        "y": [-1, 2.5, None, float("nan"), 0],
    }
    assert summaries(NEEDS, Sources(Table("t.csv", columns, 5), {}, {}))[name] == words


def test_a_part_of_a_table_and_an_array_say_so_and_what_is_not_there_says_nothing() -> None:
    part = Table("t.csv", {"y": [1, 2]}, 2, whole=False)
    array = Arrays("a.json", {"x": Array((2, 2), [1, 2, 3, 4])})
    found = summaries(NEEDS, Sources(part, {"x": array}, {}))
    assert found == {
        "x": "`a.json`: 4 values; 1 to 4, mean 2.5",
        "y": "`t.csv`: 2 values in the first 2 rows; 1 to 2, mean 1.5",
    }
