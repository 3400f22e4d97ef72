"""Files of draws are those that xarray reads, and are read as xarray reads them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import torch
import xarray

from qvr_core.inference.axes import Axis
from qvr_core.inference.dataset import dataset
from qvr_core.inference.labelled_datasets import Dataset, Tree, Variable
from qvr_core.runs.record.netcdf import read_netcdf, write_netcdf

VALUES = {
    "mu": torch.tensor([[0.5, float("nan"), -1.0]], dtype=torch.float64),
    "theta": torch.arange(6.0).reshape(1, 3, 2),
    "pairs": torch.arange(12).reshape(1, 3, 2, 2),
    "deep/path": torch.ones(1, 3, 4, dtype=torch.float32),
    "bad": torch.tensor([[True, False, True]]),
}
AXES = {
    "theta": (Axis("School", ("Größe", "b c")),),
    "pairs": (Axis("School", ("Größe", "b c")), Axis("School", ("Größe", "b c"))),
}


def test_xarray_reads_what_is_written_and_the_other_way_round(tmp_path: Path) -> None:
    tree = Tree({"posterior": dataset(VALUES, AXES), "observed_data": dataset({"y": torch.arange(3)}, {}, ())})
    ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
    write_netcdf(ours, tree)
    tree.to_xarray().to_netcdf(theirs, engine="h5netcdf")
    with (
        xarray.open_datatree(ours, engine="h5netcdf") as one,
        xarray.open_datatree(theirs, engine="h5netcdf") as other,
    ):
        assert one.identical(other)
        assert one["posterior"]["bad"].dtype == bool
        assert one["posterior"]["theta"].sel(School="Größe").shape == (1, 3)
    for path in (ours, theirs):
        again = read_netcdf(path)
        assert set(again.children) == set(tree.children)
        for name, group in tree.children.items():
            assert set(again[name].data_vars) == set(group.data_vars)
            for variable, wanted in group.data_vars.items():
                found = again[name][variable]
                assert found.dims == wanted.dims and found.values.dtype == wanted.values.dtype
                np.testing.assert_array_equal(found.values, wanted.values)
                for dim, labels in wanted.coords.items():
                    assert found.coords[dim].tolist() == labels.tolist()


def test_a_dimension_without_labels_has_none_when_read(tmp_path: Path) -> None:
    write_netcdf(tmp_path / "a.nc", Dataset({"y": Variable(("row",), np.arange(3.0), {})}))
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        assert (
            list(found.variables) == ["y"] and found["y"].dims == ("row",) and found["y"].values.tolist() == [0, 1, 2]
        )


def test_each_dimension_of_a_file_has_a_number_of_its_own(tmp_path: Path) -> None:
    """The C library of NetCDF, which R and Julia read with, finds a variable's dimensions by it."""
    write_netcdf(tmp_path / "a.nc", Tree({"posterior": dataset(VALUES, AXES), "prior": dataset(VALUES, AXES)}))
    with h5py.File(tmp_path / "a.nc") as file:
        groups = [file["posterior"], file["prior"]]
        numbers = [one.attrs["_Netcdf4Dimid"] for group in groups for one in group.values() if one.is_scale]
    assert len(numbers) > 8 and len(set(numbers)) == len(numbers)


def test_one_group_is_read_alone(tmp_path: Path) -> None:
    write_netcdf(tmp_path / "a.nc", Tree({"posterior": dataset(VALUES, AXES), "prior": dataset(VALUES, AXES)}))
    assert list(read_netcdf(tmp_path / "a.nc", ("prior",)).children) == ["prior"]
