"""Arrays whose dimensions have names and labels: what a fit stores, without xarray.

Names and attributes are those of xarray that readers here use (`data_vars`, `coords`, `sizes`, `children`,
`to_numpy()`), so an open `xarray.DataTree` serves as well; importing xarray costs 0.4 s and 100 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from qvr_core import __version__

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


def arrays_of(group: Dataset) -> dict[str, Array]:
    """The arrays by name, of xarray's, too."""
    return {str(name): value.to_numpy() for name, value in group.data_vars.items()}


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
