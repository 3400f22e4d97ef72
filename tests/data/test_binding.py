"""Tables and arrays become the tensors that a program reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from qvr_core.data.binding import RowsOf, Whole, bind
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns

SCHOOL = Need("data", "school", "finite", "School", size=8)
Y = Need("observed", "y", "real", "Normal")


def test_statistical_program_sees_everything_at_once(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("school,score,note\n0,1.5,a\n7,2,b\n")
    data = bind(read_columns(str(file), "csv"), Needs("p", (), (Y,), (SCHOOL,)), {"y": "score"})
    assert isinstance(data, Whole)
    x, observations = data.batch(torch.tensor([0]))
    assert x is None
    assert observations["school"].dtype == torch.int64
    assert observations["school"].tolist() == [0, 7]
    assert observations["y"].tolist() == [1.5, 2.0]


@pytest.mark.parametrize("shape", [(5, 1, 4, 3), (5, 4, 3), (5, 12)], ids=str)
def test_pictures_come_in_their_shape_or_in_one_axis(tmp_path: Path, shape: tuple[int, ...]) -> None:
    image = Need("input", "image", "real", "Real 1 4 3", width=12, several=(1, 4, 3))
    numbers = np.arange(60.0).reshape(shape)
    file = tmp_path / "d.npz"
    np.savez(file, image=numbers, y=np.zeros(5))
    data = bind(read_columns(str(file), "npz"), Needs("p", (image,), (Y,), ()), {})
    x, _ = data.batch(torch.tensor([4, 1]))
    assert isinstance(x, torch.Tensor)
    assert x.tolist() == numbers.reshape(5, 12)[[4, 1]].tolist()


def test_pictures_of_another_shape_are_told_theirs(tmp_path: Path) -> None:
    image = Need("input", "image", "real", "Real 1 4 3", width=12, several=(1, 4, 3))
    file = tmp_path / "d.npz"
    np.savez(file, image=np.zeros((5, 3, 4)), y=np.zeros(5))
    with pytest.raises(DataProblem, match="an array of shape N × 1 × 4 × 3") as caught:
        bind(read_columns(str(file), "npz"), Needs("p", (image,), (Y,), ()), {})
    assert caught.value.column == "image"


def test_rows_of_a_program_that_reads_them(tmp_path: Path) -> None:
    pixels = Need("input", "image", "real", "Pixels", width=2)
    label = Need("observed", "label", "finite", "Label", size=2, labels=("cat", "dog"))
    file = tmp_path / "d.parquet"
    pl.DataFrame({"image_0": [0.0, 1.0, 2.0], "image_1": [5, 6, 7], "label": ["dog", "cat", "dog"]}).write_parquet(file)
    data = bind(read_columns(str(file), "parquet"), Needs("p", (pixels,), (label,), ()), {})
    assert isinstance(data, RowsOf)
    x, observations = data.batch(torch.tensor([2, 0]))
    assert x.tolist() == [[2.0, 7.0], [0.0, 5.0]]
    assert observations["label"].tolist() == [1, 1]


def test_lists_arrays_and_products(tmp_path: Path) -> None:
    words = Need("input", "words", "finite", "Token", size=10, sequence=True)
    group = Need("input", "group", "finite", "Group", size=3)
    file = tmp_path / "d.ndjson"
    file.write_text('{"words": [1, 2], "group": 0, "y": 1}\n{"words": [3, 4], "group": 2, "y": 2.5}\n')
    data = bind(read_columns(str(file), "ndjson"), Needs("p", (words, group), (Y,), ()), {})
    (first, second), observations = data.batch(torch.tensor([1]))
    assert (first.tolist(), second.tolist(), observations["y"].tolist()) == ([[3, 4]], [2], [2.5])

    archive = tmp_path / "d.npz"
    np.savez(archive, words=np.array([[1, 2, 3]]), group=np.array([1]), y=np.array([0.5], np.float32))
    data = bind(read_columns(str(archive), "npz"), Needs("p", (words, group), (Y,), ()), {})
    assert data.batch(torch.tensor([0]))[0][0].tolist() == [[1, 2, 3]]


def test_whole_numbers_written_as_floats_are_whole_numbers(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("school,y\n0.0,1\n3.0,2\n")
    data = bind(read_columns(str(file), "csv"), Needs("p", (), (Y,), (SCHOOL,)), {})
    assert data.batch(torch.tensor([0]))[1]["school"].tolist() == [0, 3]


def test_rows_of_a_plate_that_a_latent_shares_are_as_many_as_it_has(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("y\n1.5\n2\n")
    shared = replace(Y, plate=("Row", 60), shared=True)
    with pytest.raises(DataProblem, match=r"column `y`: there are 2 rows, and `Row`, .* has 60 \(for `y`\)"):
        bind(read_columns(str(file), "csv"), Needs("p", (), (shared,), ()), {})
    alone = replace(Y, plate=("Row", 60))
    assert isinstance(bind(read_columns(str(file), "csv"), Needs("p", (), (alone,), ()), {}), Whole)
