"""Parquet tables that are read by blocks of rows: the same numbers, labels and messages as of tables read whole."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.data.binding import Whole
from qvr_core.data.problems import DataProblem
from qvr_core.data.scanned import files, plan, rows, survey
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.prepare.tables_in_blocks import Scanned
from tests.runs.jobs import make_job

MODEL = """\
object Row, G, Day : FinSet _
object F : {width, depth, height}
object Kind : {low, high}
program p : Row -> Row
    data g : Row -> G
    data day : Row -> Day
    data kind : Row -> Kind
    data x : Row * F
    data z : G
    data v : Row -> Real 2
    sample u[k : G] <- Normal(0.3 * z[k], 1.0)
    sample d[k : Day] <- Normal(0.0, 1.0)
    sample e[k : Kind] <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    let m[i : Row] = u[g[i]] + d[day[i]] + e[kind[i]] + sum(x[i, f] for f : F) + sum(v[i])
    observe y[i : Row] <- Normal(m[i], s) [missing=drop]
    observe n[i : Row] <- Poisson(exp(0.1 * m[i]))
    observe won[i : Row] <- Bernoulli(0.5)
    return u
"""
ROWS = 500


def table(count: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    y = [None if at % 97 == 5 else float(value) for at, value in enumerate(rng.normal(size=count))]
    start = datetime.date(2024, 1, 1)
    return pl.DataFrame(
        {
            "y": y,
            "g": [f" site {at} " if at % 2 else f"site {at}" for at in rng.integers(0, 9, count).tolist()],
            "day": [start + datetime.timedelta(days=int(at)) for at in rng.integers(0, 30, count)],
            "kind": [["high", "low"][at] for at in rng.integers(0, 2, count).tolist()],
            **{name: rng.normal(size=count).astype(np.float32) for name in ("depth", "width", "height")},
            "v": pl.Series([[float(at), float(-at)] for at in range(count)], dtype=pl.Array(pl.Float64, 2)),
            "n": rng.integers(0, 5, count).astype(np.int16),
            "won": [bool(at) for at in rng.integers(0, 2, count)],
            "other": ["never read"] * count,
        }
    )


def written(folder: Path, frame: pl.DataFrame, parts: int = 3) -> None:
    """A folder of parquet files with so many rows together, and the table of the groups."""
    (folder / "d").mkdir(exist_ok=True)
    bounds = np.linspace(0, len(frame), parts + 1).astype(int)
    for at, (start, end) in enumerate(pairwise(bounds)):
        frame[int(start) : int(end)].write_parquet(folder / "d" / f"part-{at}.parquet", row_group_size=60)
    (folder / "g.csv").write_text("G,z\n" + "".join(f"site {at},{at}.5\n" for at in range(9)))


def prepared(folder: Path, text: str = MODEL, data: str = "parquet:d", **config: object) -> Prepared:
    asked = {"batch_size": 20, "algorithm": "svi", "tables": {"G": "csv:g.csv"}, **config}
    job = make_job(folder, text, data=data, **asked)
    return prepare(job, analyse(job.text))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large, and blocks have few rows."""
    monkeypatch.setattr(plan, "STREAMED", 0)
    monkeypatch.setattr(rows, "MOST_ROWS", 32)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)
    monkeypatch.setattr(survey, "STRETCH", 8 * 11 * 70)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int, int]]]:
    """Which stretches of which files are read."""
    found: list[tuple[str, int, int]] = []
    read = files.Part.read

    def noted(part: files.Part, start: int, count: int, names: list[str]) -> pl.DataFrame:
        found.append((part.path, start, count))
        return read(part, start, count, names)

    monkeypatch.setattr(files.Part, "read", noted)
    yield found


def test_rows_by_blocks_are_those_of_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    written(tmp_path, table())
    by_blocks = prepared(tmp_path)
    monkeypatch.setattr(plan, "STREAMED", 2**30)
    whole = prepared(tmp_path)
    assert isinstance(by_blocks.train, Scanned) and isinstance(whole.train, Whole)
    assert by_blocks.known == whole.known
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))
    _, found = by_blocks.train.batch(order)
    assert found.keys() == whole.train.observations.keys()
    for name, values in whole.train.observations.items():
        expected = values if name == "z" else values[order]
        assert found[name].dtype == values.dtype, name
        assert torch.equal(torch.nan_to_num(found[name], 9e9), torch.nan_to_num(expected, 9e9)), name
    assert torch.isnan(found["y"]).any()


def test_all_rows_of_a_table_that_fits_are_those_of_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    written(tmp_path, table())
    by_blocks = prepared(tmp_path, batch_size=None)
    monkeypatch.setattr(plan, "STREAMED", 2**30)
    whole = prepared(tmp_path, batch_size=None)
    assert isinstance(by_blocks.train, Whole) and isinstance(whole.train, Whole)
    for name, values in whole.train.observations.items():
        found = by_blocks.train.observations[name]
        assert torch.equal(torch.nan_to_num(found, 9e9), torch.nan_to_num(values, 9e9)), name


WRONG = {
    "a missing number": ("depth", 470, None, "column `depth`, row 305: the value is missing"),
    "a label of no row of another file": ("g", 470, "nowhere", "column `g`, row 305: `nowhere` is not in `G`"),
    "a label of no enumeration": ("kind", 170, "lo", "column `kind`, row 5: `lo` is not in `Kind`"),
    "a negative count": ("n", 300, -1, "column `n`, row 135: -1 is negative"),
    "an infinite number": ("height", 0, float("inf"), "column `height`, row 1: inf is not finite"),
    "a label that is missing": ("day", 499, None, "column `day`, row 334: the value is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told_with_its_file_and_row(tmp_path: Path, case: str, small: None) -> None:
    column, row, value, message = WRONG[case]
    frame = table()
    cells = frame[column].to_list()
    cells[row] = value
    frame = frame.with_columns(pl.Series(column, cells, dtype=frame[column].dtype))
    written(tmp_path, frame, parts=1)
    (tmp_path / "d" / "part-0.parquet").unlink()
    frame[:166].write_parquet(tmp_path / "d" / "a.parquet")
    frame[166:].write_parquet(tmp_path / "d" / "b.parquet")
    with pytest.raises(DataProblem) as caught:
        prepared(tmp_path)
    assert f"{'a' if row < 166 else 'b'}.parquet, {message}" in str(caught.value)


def test_a_table_is_looked_through_once(tmp_path: Path, small: None, reads: list[tuple[str, int, int]]) -> None:
    written(tmp_path, table())
    first = prepared(tmp_path)
    assert sum(count for _, _, count in reads) == ROWS
    reads.clear()
    assert prepared(tmp_path).known == first.known
    assert not reads
    [kept] = (tmp_path / ".qvr" / "cache").glob("*.survey.json")
    content = json.loads(kept.read_text())
    content[1][0]["day"].pop()  # damaged: a day is lost
    kept.write_text(json.dumps(content))
    assert prepared(tmp_path).known == first.known
    assert sum(count for _, _, count in reads) == ROWS
    reads.clear()
    written(tmp_path, table(ROWS + 30))
    assert isinstance(again := prepared(tmp_path).train, Scanned)
    assert again.rows == ROWS + 30
    assert sum(count for _, _, count in reads) == ROWS + 30


def test_labels_of_rows_must_ascend(tmp_path: Path, small: None) -> None:
    numbered = table().with_columns(pl.Series("Row", range(ROWS)))
    written(tmp_path, numbered)
    assert isinstance(prepared(tmp_path).train, Scanned)
    twice = [*range(200), 150, *range(201, ROWS)]
    written(tmp_path, numbered.with_columns(pl.Series("Row", twice)))
    with pytest.raises(DataProblem, match="column `Row`, row 35: the labels of `Row` do not ascend"):
        prepared(tmp_path)


def test_files_of_other_columns_are_told(tmp_path: Path, small: None) -> None:
    written(tmp_path, table())
    table().drop("depth").write_parquet(tmp_path / "d" / "part-2.parquet")
    with pytest.raises(DataProblem, match=r"part-2.parquet: there is no column `depth`, which .*part-0.parquet has"):
        prepared(tmp_path)


@pytest.mark.parametrize("algorithm", ["nuts", "svi"])
def test_what_sees_all_rows_says_what_it_needs(tmp_path: Path, algorithm: str, small: None) -> None:
    written(tmp_path, table())
    asked = {"algorithm": algorithm, "batch_size": None}
    base = prepared(tmp_path, **asked).memory
    assert isinstance(prepared(tmp_path, memory_limit=base + 10_000_000, **asked).train, Whole)
    with pytest.raises(DataProblem) as caught:
        prepared(tmp_path, memory_limit=base + 100_000, **asked)
    said = str(caught.value)
    assert "500 of 11 numbers, for which the run needs about " in said and "Fit it by svi with batch_size" in said
