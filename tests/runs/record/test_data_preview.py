"""A table beside the program that is to read it, before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.data.typed.excerpts import Excerpts
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.data_preview import Column, Preview, preview

RADON = """\
object County : {anoka, becker}
object House : FinSet _
program radon : House -> House
    data county : House -> County
    data floor : House
    sample mu : County <- Normal(0.0, 1.0)
    let eta = mu[county] + floor
    observe log_radon : House <- Normal(eta, 1.0)
    return mu
"""
PLAIN = """\
program coin : Real 1 -> Real 1
    sample p <- Beta(1.0, 1.0)
    observe heads <- Bernoulli(p)
    return heads
"""


def looked(folder: Path, csv: str, program: str = RADON, **settings: Any) -> Preview:
    (folder / "d.csv").write_text(csv)
    config = RunConfig.model_validate({"data": "csv:d.csv", **settings})
    snapshot = Analyzer(program).snapshot()
    return preview(snapshot, next(iter(snapshot.model.programs)), config, folder)


def columns(found: Preview) -> dict[str, Column]:
    return {column.name: column for column in found.tables[0].columns}


def test_each_column_stands_beside_the_name_that_reads_it(tmp_path: Path) -> None:
    found = looked(tmp_path, "county,floor,log_radon,note\nanoka,0,0.3,a\nbecker,1,NA,b\nanoka,1,0.1,c\n", RADON)
    assert not found.fits  # a value is missing
    found = looked(tmp_path, "county,floor,log_radon,note\nanoka,0,0.3,a\nbecker,1,-2.5,b\nanoka,1,0.1,c\n", RADON)
    assert found.fits and found.looked and found.missing == ()
    (table,) = found.tables
    assert (table.rows, table.whole, table.numbers) == (3, True, (1, 2, 3))
    shown = columns(found)
    assert shown["county"] == Column("county", "text: anoka, becker", "county", "one of anoka, becker for each House")
    assert shown["floor"].kind == "whole numbers, 0 to 1"
    assert shown["log_radon"].kind == "numbers, −2.5 to 0.3"
    assert (shown["log_radon"].site, shown["log_radon"].wanted) == ("log_radon", "a real number for each House")
    assert shown["note"].site is None and shown["note"].wanted == ""
    assert table.cells[0] == ("anoka", "becker", "anoka")


def test_a_wrong_cell_is_shown_wherever_it_stands(tmp_path: Path) -> None:
    rows = [f"anoka,0,{row / 10}\n" for row in range(40)]
    rows[30] = "anokka,0,3.0\n"
    found = looked(tmp_path, "county,floor,log_radon\n" + "".join(rows))
    assert not found.fits
    wrong = [column for column in found.tables[0].columns if column.problem]
    assert [(column.name, column.row) for column in wrong] == [("county", 31)]
    assert wrong[0].problem is not None and "Did you mean `anoka`?" in wrong[0].problem
    assert found.tables[0].numbers == (*range(1, 9), 31)
    assert found.tables[0].cells[0][-1] == "anokka"


def test_a_name_without_a_column_is_told_once(tmp_path: Path) -> None:
    found = looked(tmp_path, "county,floors,log_radon\nanoka,0,0.3\n")
    assert [one.site for one in found.missing] == ["floor"]
    assert "Did you mean `floors`?" in found.missing[0].problem
    assert all(column.problem is None for column in found.tables[0].columns)
    renamed = looked(tmp_path, "county,floors,log_radon\nanoka,0,0.3\n", columns={"floor": "floors"})
    assert renamed.fits and columns(renamed)["floors"].site == "floor"


def test_a_name_whose_shape_the_data_tell(tmp_path: Path) -> None:
    found = looked(tmp_path, "heads\n1\n0\n2\n", PLAIN)
    (column,) = found.tables[0].columns
    assert (column.site, column.row) == ("heads", 3)
    assert column.wanted.startswith("a whole number, 0 to 1")
    assert not found.fits


def test_an_observed_name_of_a_plate_says_what_it_runs_over(tmp_path: Path) -> None:
    program = """\
object School : FinSet 2
program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    observe y : School <- Normal(mu, 1.0)
    return y
"""
    found = looked(tmp_path, "y\n1.5\n2.5\n", program)
    assert found.fits and columns(found)["y"].wanted == "a real number for each School"


def test_files_that_are_not_there_or_not_read_here_are_told(tmp_path: Path) -> None:
    snapshot = Analyzer(RADON).snapshot()
    gone = preview(snapshot, "radon", RunConfig(data="csv:none.csv"), tmp_path)
    assert not gone.fits and gone.problem is not None and "there is no such file" in gone.problem
    (tmp_path / "d.parquet").write_bytes(b"")
    unread = preview(snapshot, "radon", RunConfig(data="parquet:d.parquet"), tmp_path)
    assert not unread.looked and unread.tables == ()


def test_a_table_of_json_lines_is_shown_as_its_csv_is(tmp_path: Path) -> None:
    (tmp_path / "d.ndjson").write_text('{"heads": 1}\n{"heads": 0}\n\n{"heads": 2, "note": {"by": "eve"}}\n')
    snapshot = Analyzer(PLAIN).snapshot()
    read = Excerpts(sys.executable, 100).read
    (program,) = snapshot.model.programs
    found = preview(snapshot, program, RunConfig(data="ndjson:d.ndjson"), tmp_path, read)
    heads = columns(found)["heads"]
    assert (heads.site, heads.row, found.fits) == ("heads", 3, False)
    assert found.tables[0].numbers == (1, 2, 3) and found.tables[0].cells[0] == ("1", "0", "2")


def test_wide_and_long_tables_are_shown_in_part(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(100)]
    found = looked(tmp_path, ",".join(names) + "\n" + ",".join("x" * 99 for _ in names) + "\n")
    (table,) = found.tables
    assert len(table.columns) == len(table.cells) == 60 and table.left_out == 40
    assert all(len(cell) == 40 and cell.endswith("…") for column in table.cells for cell in column)


@pytest.mark.parametrize("cells", ["true,1.5,,[1]", "false,2,,[2]"])
def test_kinds_of_columns_in_words(tmp_path: Path, cells: str) -> None:
    found = looked(tmp_path, f"a,b,c,d\n{cells}\n")
    assert columns(found)["a"].kind == "truth values"
    assert columns(found)["c"].kind == "nothing, 1 missing"
