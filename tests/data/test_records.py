"""Large tables by records: the same values as in memory, the same messages, memory that does not grow with the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from qvr_core.data import records as module
from qvr_core.data.binding import bind
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.records import records
from qvr_core.data.tables.reading import read_columns

NEEDS = Needs(
    "p",
    (),
    (Need("observed", "y", "real", "Normal"),),
    (
        Need("data", "group", "finite", "Group", size=7),
        Need("data", "x", "any", "data"),
        Need("data", "k", "any", "data"),
    ),
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 640)


def frame(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {"y": rng.normal(size=rows), "group": rng.integers(0, 7, rows), "x": rng.normal(size=rows), "k": range(rows)}
    )


@pytest.mark.parametrize("source", ["csv", "parquet", "ndjson"])
def test_records_hold_what_the_table_holds(source: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{source}"
    getattr(frame(95), f"write_{source}")(path)
    rows = torch.tensor([94, 0, 17, 17])
    _, expected = bind(read_columns(str(path), source), NEEDS, {}).batch(torch.tensor([0]))
    made = records(str(path), source, NEEDS, {}, tmp_path / "cache")
    assert made.rows == 95
    _, found = made.batch(rows)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        assert torch.equal(found[name], values[rows])


def test_a_copy_is_used_again_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    frame(30).write_csv(path)
    first = records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    assert records(str(path), "csv", NEEDS, {}, tmp_path / "cache").path == first.path
    frame(31).write_csv(path)
    again = records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    assert (again.path != first.path, again.rows) == (True, 31)


@pytest.mark.parametrize("harm", ["cut", "cut to whole rows", "emptied", "changed", "gone"])
@pytest.mark.parametrize("part", ["records", "json"])
def test_a_damaged_copy_is_made_anew(part: str, harm: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    frame(30).write_csv(path)
    made = records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    whole, wanted = made.path.read_bytes(), made.batch(torch.arange(30))[1]
    file = made.path.with_suffix(f".{part}")
    content = file.read_bytes()
    damaged = {
        "cut": content[:-5],
        "cut to whole rows": content[: len(content) // 30 * 20],
        "emptied": b"",
        "changed": content[:70] + bytes([content[70] ^ 1]) + content[71:],
    }
    file.unlink() if harm == "gone" else file.write_bytes(damaged[harm])
    again = records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    assert again.rows == 30 and again.path.read_bytes() == whole
    assert all(torch.equal(values, wanted[name]) for name, values in again.batch(torch.arange(30))[1].items())


def test_a_misfit_far_down_names_its_row(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    lines = ["y,group,x,k", *(f"1.5,{i % 7},2,3" for i in range(64))]
    lines[43] = "1.5,7,2,3"
    path.write_text("\n".join(lines))
    with pytest.raises(DataProblem, match=r"column `group`, row 43: 7\.?0? is outside `Group`"):
        records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    lines[43] = "oops,1,2,3"
    path.write_text("\n".join(lines))
    with pytest.raises(DataProblem, match="column `y`, row 43: `oops` is not a number"):
        records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    lines[43] = "1,1,2,3,4"
    path.write_text("\n".join(lines))
    with pytest.raises(DataProblem, match="row 43: the row has 5 fields and the header 4"):
        records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    assert not [name for name in os.listdir(tmp_path / "cache") if name.endswith(".part")]


def test_quoted_line_ends_and_a_missing_last_one(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rows = [f'"a note\nof two ""lines""",{i}.5,{i % 7},{i},{i}' for i in range(60)]
    path.write_text("note,y,group,x,k\n" + "\n".join(rows))
    made = records(str(path), "csv", NEEDS, {}, tmp_path / "cache")
    assert made.rows == 60
    assert made.batch(torch.tensor([59]))[1]["y"].tolist() == [59.5]


MEASURE = """
import resource, sys, torch
sys.path.insert(0, sys.argv[3])
from tests.data.test_records import NEEDS
from qvr_core.data.records import records
from pathlib import Path
made = records(sys.argv[1], "csv", NEEDS, {}, Path(sys.argv[2]))
for step in range(50):
    made.batch(torch.randint(made.rows, (512,)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    peaks: list[int] = []
    sizes: list[int] = []
    for rows in (200_000, 1_200_000):
        path = tmp_path / f"{rows}.csv"
        frame(rows).write_csv(path)
        sizes.append(path.stat().st_size // 1024)
        done = subprocess.run(
            [sys.executable, "-m", "tests.script", MEASURE, str(path), str(tmp_path / "cache"), root],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(done.stdout))
    # its columns alone are two thirds of the file
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 3, (peaks, sizes)
