"""Stored draws: groups of arrays as a NetCDF file, as xarray writes and reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qvr_core.inference.labelled_datasets import ATTRIBUTES, Array, Dataset, Tree, Variable
from qvr_core.runs.record.files import sync_folder

if TYPE_CHECKING:
    from h5netcdf import Group
    from h5netcdf import Variable as Stored


def write_netcdf(path: Path, data: Tree | Dataset) -> None:
    """Write them whole or not at all.  Raises OSError."""
    import h5netcdf

    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # Compressed, draws would be a sixth smaller and take ten times as long.
        with h5netcdf.File(partial, "w") as file:
            if isinstance(data, Dataset):
                _write(file, data)
            else:
                for name, group in data.children.items():
                    _write(file.create_group(name), group)
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def _write(group: Group, data: Dataset) -> None:
    group.dimensions = data.sizes
    for name, labels in data.coords.items():
        _put(group, name, (name,), labels)
    for name, one in data.data_vars.items():
        _put(group, name, one.dims, one.values)
    for name, value in ATTRIBUTES.items():
        group.attrs[name] = value


def _put(group: Group, name: str, dims: tuple[str, ...], values: Array) -> None:
    import h5py

    if values.dtype == object:
        group.create_variable(name, dims, dtype=h5py.string_dtype(), data=values)
    elif values.dtype == bool:
        # NetCDF has no truth values: xarray's way to say so
        group.create_variable(name, dims, data=values.astype(np.int8)).attrs["dtype"] = "bool"
    else:
        group.create_variable(name, dims, data=values)


def read_netcdf(path: Path, groups: Iterable[str] | None = None) -> Tree:
    """The groups, all of them by default.  Raises OSError."""
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        wanted = set(file.groups if groups is None else groups)
        return Tree({name: _read(group) for name, group in file.groups.items() if name in wanted})


def _read(group: Group) -> Dataset:
    values = {name: _values(variable) for name, variable in group.variables.items()}
    found: dict[str, Variable] = {}
    for name, variable in group.variables.items():
        if name not in group.dimensions:
            dims = tuple(map(str, variable.dimensions))
            found[str(name)] = Variable(dims, values[name], {one: values[one] for one in dims if one in values})
    return Dataset(found)


def _values(variable: Stored) -> Array:
    found = np.asarray(variable[...])
    if variable.attrs.get("dtype") == "bool":
        return found.astype(bool)
    if found.dtype.kind in "OS":
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in found.ravel().tolist()]
        return np.array(texts, dtype=object).reshape(found.shape)
    return found
