"""Two readers of csv, Python's for small files, the editor and the page, polars' for large ones: they say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qvr_core.data.binding import bind
from qvr_core.data.file_sources import of_columns
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns, read_frame
from qvr_core.data.typed.csv_text import read_csv

CELLS = (
    *("1", "2", "-3", "007", "1.5", ".5", "1.", "1e5", "1e400", "inf", "NaN", "nan", "Infinity", "+5", "+1.5", "1_0"),
    *(
        " 1",
        "2 ",
        "",
        "NA",
        "null",
        " NA",
        "NULL",
        "true",
        "false",
        "True",
        "tRuE",
        "a",
        "a b",
        "é",
        "#c",
        "2020-01-01",
    ),
    *('"NA"', '""', '"1"', '"x,y"', '"q""r"', '"a\nb"', '" "'),
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """A table whose columns hold few kinds of cells each, with short rows and empty lines now and then."""
    width = draw(st.integers(1, 3))
    pools = [draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3)) for _ in range(width)]
    header = [draw(st.sampled_from(("c0", '"q""r"'))), *(f"c{at}" for at in range(1, width))]
    rows = [header]
    for _ in range(draw(st.integers(0, 5))):
        short = draw(st.integers(0, 19)) == 0
        rows.append([draw(st.sampled_from(pool)) for pool in pools[: width - short]])
        if draw(st.integers(0, 9)) == 0:
            rows.append([])
    end = draw(st.sampled_from(("\n", "\r\n")))
    text = end.join(map(",".join, rows)) + draw(st.sampled_from(("", end, end + end)))
    return draw(st.sampled_from(("", "\ufeff"))) + text


def cells(read):
    """What a reader makes of a file; NaN is written as itself."""
    try:
        table = read()
    except DataProblem as problem:
        return "refused", problem.row
    return {name: [repr(cell) for cell in column] for name, column in table.columns.items()}


@given(tables())
def test_both_readers_say_the_same_of_any_table(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    large = cells(lambda: of_columns(read_frame(str(path), "csv"), 0))
    assert cells(lambda: read_csv(str(path), 10**6)) == large
    assert cells(lambda: of_columns(read_columns(str(path), "csv"), 0)) == large


@pytest.mark.parametrize("read", [read_columns, read_frame])
def test_what_a_row_is(tmp_path: Path, read) -> None:
    path = tmp_path / "t.csv"

    def told(text: str) -> str:
        path.write_text(text)
        with pytest.raises(DataProblem) as raised:
            read(str(path), "csv")
        return str(raised.value)

    assert "row 2: the row has 1 fields and the header 2" in told("a,b\n1,2\n3\n")
    assert "row 1: the row has 3 fields and the header 2" in told("a,b\n1,2,3\n")
    assert "row 1: a quote stands inside a field" in told('a,b\n5" pipe,2\n3,4\n')
    assert "row 2: the line before it is empty: a missing value, or no row at all" in told("a\n1\n\n2\n")
    path.write_text("a,b\n1,2\n\n3,4\n\n")
    assert {name: list(column) for name, column in read(str(path), "csv").columns.items()} == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize("read", [read_columns, read_frame])
def test_text_is_an_error_where_a_value_may_be_missing_too(tmp_path: Path, read) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y\n1.5\nNA\nabc\n")
    needs = Needs("p", (), (Need("observed", "y", "real", "Normal", missing="impute"),), ())
    with pytest.raises(DataProblem, match="row 3: `abc` is not a number"):
        bind(read(str(path), "csv"), needs, {})
    path.write_text("y\n1.5\nNA\n2\n")
    found = bind(read(str(path), "csv"), needs, {})
    assert found.observations["y"].isnan().tolist() == [False, True, False]
