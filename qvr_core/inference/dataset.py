"""Draws with dimensions that are called as the sets of the program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.axes import Axes, Axis
from qvr_core.inference.labelled_datasets import Array, Dataset, Dims, Variable

LEAD: Dims = ("chain", "draw")


def stored_name(written: str, leading: Collection[str] = LEAD) -> str:
    """What a value is called in a dataset."""
    name = written.replace("/", ".")  # a slash would be a group of the tree
    return f"{name}." if name in leading else name


def dataset(values: Mapping[str, Tensor], axes: Axes, lead: Dims = LEAD) -> Dataset:
    """Of {name: (*lead, …)}.  A further axis is called as its set, the second one over it `Set_2`, with labels or
    numbers as coordinates; one without a set, or whose name is taken otherwise, `v_dim_0`, …  A value that is called as
    the dimension of chains or draws has a dot behind its name: NetCDF knows one array of a name."""
    found: dict[str, Variable] = {}
    known_as: dict[str, list[Any]] = {}
    leading = {*lead, *LEAD}
    taken = {*leading, *values}
    for written, value in values.items():
        name = stored_name(written, leading)
        coords: dict[str, Any] = {one: range(size) for one, size in zip(lead, value.shape, strict=False)}
        shape = tuple(value.shape[len(lead) :])
        known = [*axes.get(written, ()), *[Axis()] * len(shape)]
        for at, (axis, size) in enumerate(zip(known, shape, strict=False)):
            called = _dimension(axis, coords)
            labelled = axis.labels is not None and len(axis.labels) == size
            elements: list[Any] = list(axis.labels or ()) if labelled else list(range(size))
            if called is None or called in taken or known_as.setdefault(called, elements) != elements:
                called = f"{name}_dim_{at}"
            coords[called] = elements
        # numbers in another order would be copied by every reader that wants them in a row
        numbers = np.asarray(value.numpy(), order="C")
        found[name] = Variable(tuple(coords), numbers, {one: _labels(labels) for one, labels in coords.items()})
    return Dataset(found)


def _labels(elements: Any) -> Array:
    whole = all(isinstance(one, int) for one in elements)
    return np.array(elements, np.int64) if whole else np.array([str(one) for one in elements], dtype=object)


def _dimension(axis: Axis, before: Mapping[str, Any]) -> str | None:
    if axis.name is None or axis.name not in before:
        return axis.name
    return next(name for n in range(2, 100) if (name := f"{axis.name}_{n}") not in before)
