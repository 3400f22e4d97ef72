"""Files that were never meant to be read: each is one sentence, and none takes memory or waits."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.records import records
from qvr_core.data.sentences import read_paragraphs
from qvr_core.data.size_limits import LINE, NESTED
from qvr_core.data.tables.reading import read_columns, read_frame
from qvr_core.data.text import read_corpus
from qvr_core.data.typed.csv_text import read_csv

ROOT = Path(__file__).resolve().parents[2]
MB = 2**20


def told(read: Callable[[], object]) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(DataProblem) as problem:
        read()
    return str(problem.value)


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """The head of an array file that claims a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe"), ("/dev/zero", "a device")):
        for source in ("csv", "npz", "ndjson", "parquet"):
            assert f"{path}: this is {kind}, not a file" in told(lambda: read_columns(path, source))  # noqa: B023
        for unit in ("byte", "character"):
            assert f"this is {kind}" in told(lambda: read_corpus(path, unit))  # noqa: B023
        assert f"this is {kind}" in told(lambda: read_paragraphs(path))  # noqa: B023


def test_only_arrays_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", header((2,)) + np.array([1.0, 2.0]).tobytes())
        archive.writestr("broken.npy", b"nothing of an array")
    columns = read_columns(path, "npz")
    assert list(columns.columns) == ["y", "broken"]
    assert columns.find("y", "y").tolist() == [1.0, 2.0]  # pyright: ignore[reportAttributeAccessIssue]
    assert "not a whole npz file" in told(lambda: columns.find("broken", "broken"))


def test_an_array_that_claims_more_than_it_has(tmp_path: Path) -> None:
    path = str(tmp_path / "claim.npz")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", header((10**12,)) + bytes(80))
    said = told(lambda: read_columns(path, "npz").find("y", "y"))
    assert "column `y`: its shape (1000000000000,) takes 8,000,000,000,000 bytes, and the archive has 80" in said


def test_a_zip_bomb(tmp_path: Path) -> None:
    path = str(tmp_path / "bomb.npz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", header((8 * MB,)) + bytes(64 * MB))
    assert os.path.getsize(path) < MB / 10
    columns = read_columns(path, "npz", room=16 * MB)
    assert "column `y`: reading it takes about 67.1 MB, and 16.8 MB" in told(lambda: columns.find("y", "y"))


def test_the_room_is_for_all_arrays_together(tmp_path: Path) -> None:
    path = str(tmp_path / "two.npz")
    np.savez(path, a=np.zeros(MB), b=np.zeros(MB))
    columns = read_columns(path, "npz", room=12 * MB)
    assert len(columns.find("a", "a")) == MB
    assert "column `b`" in told(lambda: columns.find("b", "b"))


@pytest.mark.parametrize("kind", [">f8", ">f4", ">i4", "<f8"])
def test_numbers_of_other_processors(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "big.npz")
    np.savez(path, y=np.arange(6).reshape(2, 3).astype(kind), t=np.asfortranarray(np.arange(6).reshape(2, 3)))
    columns = read_columns(path, "npz")
    y, t = columns.columns["y"], columns.columns["t"]
    assert isinstance(y, np.ndarray) and y.dtype.isnative and y.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(t, np.ndarray) and t.tolist() == y.tolist()


def test_a_cell_without_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('y,z\n1,2\n"' + "x" * 140_000 + "\n3,4\n")
    assert "t.csv, row 2: a quote is opened there and not closed" in told(lambda: read_columns(str(path), "csv"))
    path.write_text("y\n" + "1" * (LINE + 10) + "\n")
    assert "row 1: the line has more than 16.8 MB" in told(lambda: read_columns(str(path), "csv"))


def test_brackets_without_end(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    deep = "[" * 100_000 + "]" * 100_000
    path.write_text('{"y": 1}\n{"y": ' + deep + "}\n")
    assert "row 2: the line has 100,001 brackets" in told(lambda: read_columns(str(path), "ndjson"))
    path.write_text(json.dumps({"y": "[" * 1000 + '"]'}) + "\n")
    assert read_columns(str(path), "ndjson").rows == 1
    path.write_text(json.dumps({"y": [[0]] * NESTED}) + "\n")
    assert read_columns(str(path), "ndjson").rows == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [("y,z\n1.0,a\n2.0,b\rc\n", ", row 2"), ("y,z\r1.0,a\r2.0,b\r", ""), ('y,z\n1.0,"a"b\r\r\n', ", row 1")],
)
def test_every_reader_refuses_a_carriage_return_that_ends_no_line(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    needs = Needs("p", (), (Need("observed", "y", "real", "Normal"),), ())
    for read in (
        lambda: read_columns(str(path), "csv"),
        lambda: read_csv(str(path), 100),
        lambda: records(str(path), "csv", needs, {}, tmp_path / "cache"),
    ):
        assert f"t.csv{place}: a carriage return stands inside the line" in told(read)


def test_every_reader_keeps_a_carriage_return_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'y,z\r\n1.0,"a\rb\r\nc"\r\n2.0,d\r\n')
    assert read_frame(str(path), "csv").columns["z"].to_list() == ["a\rb\r\nc", "d"]
    assert list(read_csv(str(path), 100).columns["z"]) == ["a\rb\r\nc", "d"]


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,z\n")
    (tmp_path / "t.ndjson").write_text("\n\n")
    pl.DataFrame({"y": []}, schema={"y": pl.Float64}).write_parquet(tmp_path / "t.parquet")
    for source in ("csv", "ndjson", "parquet"):
        assert "the table has no rows" in told(lambda: read_columns(str(tmp_path / f"t.{source}"), source))  # noqa: B023


def test_two_columns_that_differ_in_blanks(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y, y\n1,2\n")
    assert "column `y`: two columns have this name" in told(lambda: read_columns(str(tmp_path / "t.csv"), "csv"))


@pytest.mark.long
def test_what_does_not_fit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y\n" + "1\n" * 200_000)
    (tmp_path / "t.ndjson").write_text('{"y": 1}\n' * 200_000)
    pl.DataFrame({"y": np.zeros(200_000)}).write_parquet(tmp_path / "t.parquet")
    assert os.path.getsize(tmp_path / "t.parquet") < 100_000  # packed
    for source in ("csv", "ndjson", "parquet"):
        path = str(tmp_path / f"t.{source}")
        said = told(lambda: read_columns(path, source, room=MB))  # noqa: B023
        assert "and 1.05 MB of the memory are left" in said and "raise memory_limit" in said
        assert read_columns(path, source, room=20 * MB).rows == 200_000
    (tmp_path / "t.txt").write_text("grüße" * 100_000)
    assert "are left" in told(lambda: read_corpus(str(tmp_path / "t.txt"), "character", room=MB))
    assert len(read_corpus(str(tmp_path / "t.txt"), "byte", room=MB)) == 700_000
    assert "are left" in told(lambda: read_paragraphs(str(tmp_path / "t.txt"), room=MB))


@pytest.mark.long
def test_the_memory_limit_of_a_run_holds_for_its_data(tmp_path: Path) -> None:
    (tmp_path / "p.qvr").write_text(
        "program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n    observe y <- Normal(mu, 1.0)\n"
        "    return mu\n"
    )
    np.savez_compressed(tmp_path / "large.npz", y=np.zeros(20 * MB))
    np.savez_compressed(tmp_path / "small.npz", y=np.zeros(MB))
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "p.qvr", "--steps", "2"]
    for name, limit, status in (("large", 500_000_000, 1), ("small", 5_000_000_000, 0)):
        done = subprocess.run(
            [*command, "--data", f"npz:{name}.npz", "--memory-limit", str(limit)],
            cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        assert ("reading it takes about 168 MB" in done.stderr) == (status == 1), done.stderr
