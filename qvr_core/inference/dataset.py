"""Arrays whose dimensions are called as the sets of a program: what a fit stores, without xarray.

Names and attributes are those of xarray that readers here use (`data_vars`, `coords`, `sizes`, `children`,
`to_numpy()`), so an open `xarray.DataTree` serves as well; importing xarray costs 0.4 s and 100 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core import __version__
from qvr_core.arrays.engine import Tensor
from qvr_core.inference.axes import Axes, Axis

Array = NDArray[Any]
Dims = tuple[str, ...]
ATTRIBUTES = {"inference_library": "qvr", "inference_library_version": __version__}


@dataclass(frozen=True, slots=True)
class Variable:
    """An array, what its dimensions are called, and the labels along them."""

    dims: Dims
    values: Array
    coords: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions in order."""
        return self.values.shape

    @property
    def size(self) -> int:
        """How many numbers."""
        return self.values.size

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(self.dims, self.values.shape, strict=True))

    def to_numpy(self) -> Array:
        """The array."""
        return self.values


@dataclass(frozen=True, slots=True)
class Dataset:
    """Arrays by name that share their dimensions."""

    data_vars: dict[str, Variable] = field(default_factory=dict[str, Variable])

    def __getitem__(self, name: str) -> Variable:
        return self.data_vars[name]

    @property
    def coords(self) -> dict[str, Array]:
        """The labels of all dimensions."""
        return {name: labels for one in self.data_vars.values() for name, labels in one.coords.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of all dimensions."""
        return {name: size for one in self.data_vars.values() for name, size in one.sizes.items()}

    @property
    def dims(self) -> Dims:
        """All dimensions."""
        return tuple(self.sizes)

    def to_xarray(self) -> Any:
        """As an xarray.Dataset."""
        import xarray

        values = {name: (one.dims, one.values) for name, one in self.data_vars.items()}
        return xarray.Dataset(values, coords=self.coords, attrs=dict(ATTRIBUTES))


@dataclass(frozen=True, slots=True)
class Tree:
    """Datasets by name: the groups of ArviZ' schema."""

    children: dict[str, Dataset] = field(default_factory=dict[str, Dataset])

    def __getitem__(self, name: str) -> Dataset:
        return self.children[name]

    def to_xarray(self) -> Any:
        """As an xarray.DataTree."""
        import xarray

        return xarray.DataTree.from_dict({f"/{name}": one.to_xarray() for name, one in self.children.items()})


def dataset(values: Mapping[str, Tensor], axes: Axes, lead: Dims = ("chain", "draw")) -> Dataset:
    """Of {name: (*lead, …)}.  A further axis is called as its set, the second one over it `Set_2`, with labels or
    numbers as coordinates; one without a set, or whose name is taken otherwise, `v_dim_0`, …"""
    found: dict[str, Variable] = {}
    known_as: dict[str, list[Any]] = {}
    taken = {*lead, "chain", "draw", *values}
    for written, value in values.items():
        name = written.replace("/", ".")  # a slash would be a group of the tree
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
        found[name] = Variable(tuple(coords), value.numpy(), {one: _labels(labels) for one, labels in coords.items()})
    return Dataset(found)


def _labels(elements: Any) -> Array:
    whole = all(isinstance(one, int) for one in elements)
    return np.array(elements, np.int64) if whole else np.array([str(one) for one in elements], dtype=object)


def _dimension(axis: Axis, before: Mapping[str, Any]) -> str | None:
    if axis.name is None or axis.name not in before:
        return axis.name
    return next(name for n in range(2, 100) if (name := f"{axis.name}_{n}") not in before)
