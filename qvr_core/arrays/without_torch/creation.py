"""Arrays made of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qvr_core.arrays.eager import array, shaped
from qvr_core.arrays.graph import Array
from qvr_core.arrays.without_torch.types import dtype as Kind

__all__ = [
    "arange", "as_tensor", "asarray", "empty", "empty_like", "eye", "from_numpy", "full", "linspace", "ones", "tensor",
    "tril_indices", "triu_indices", "unravel_index", "zeros",
]  # fmt: skip


def _numpy(kind: Kind | None) -> Any:
    return None if kind is None else np.dtype(kind.name)


def tensor(value: Any, dtype: Kind | None = None, device: Any = None, **keywords: Any) -> Any:
    """A new array of numbers."""
    if isinstance(value, Array):
        value = value.data
    return array(np.array(value, dtype=_numpy(dtype)))


def as_tensor(value: Any, dtype: Kind | None = None, device: Any = None) -> Any:
    """An array of numbers; what is one already stays as it is."""
    if isinstance(value, Array):
        return value if dtype is None or value.dtype == dtype else value.to(dtype)  # type: ignore[attr-defined]
    parts: Sequence[Any] = value
    numbers: Any = value
    if isinstance(value, list | tuple) and any(isinstance(one, Array) for one in parts):
        numbers = [one.data if isinstance(one, Array) else one for one in parts]
    return array(np.asarray(numbers, dtype=_numpy(dtype)))


asarray = as_tensor


def from_numpy(value: Any) -> Any:
    """The numbers of a numpy array."""
    return array(value)


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(int(n) for n in (size if not size or isinstance(size[0], int | np.integer) else size[0]))


def zeros(*size: Any, dtype: Kind | None = None, device: Any = None, **keywords: Any) -> Any:
    """Zeros."""
    return array(np.zeros(_sizes(size), _numpy(dtype) or np.float64))


empty = zeros


def ones(*size: Any, dtype: Kind | None = None, device: Any = None, **keywords: Any) -> Any:
    """Ones."""
    return array(np.ones(_sizes(size), _numpy(dtype) or np.float64))


def full(size: Any, value: Any, *, dtype: Kind | None = None, device: Any = None, **keywords: Any) -> Any:
    """One number everywhere."""
    own = value.data if isinstance(value, Array) else value
    return array(np.full(tuple(size), own, _numpy(dtype)))


def empty_like(x: Array, **keywords: Any) -> Any:
    """Room in the shape of another array."""
    return array(np.zeros(shaped(x), np.asarray(x.data).dtype))


def eye(n: int, m: int | None = None, *, dtype: Kind | None = None, device: Any = None) -> Any:
    """The identity."""
    return array(np.eye(n, m, dtype=_numpy(dtype) or np.float64))


def arange(*bounds: Any, dtype: Kind | None = None, device: Any = None) -> Any:
    """Numbers with the same distance."""
    return array(np.arange(*(b.data if isinstance(b, Array) else b for b in bounds), dtype=_numpy(dtype)))


def linspace(start: Any, end: Any, steps: int, *, dtype: Kind | None = None, device: Any = None) -> Any:
    """So many numbers between two."""
    return array(np.linspace(float(start), float(end), int(steps)))


def tril_indices(row: int, col: int, offset: int = 0, **keywords: Any) -> Any:
    """The places of a lower triangle, (2, n)."""
    return array(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0, **keywords: Any) -> Any:
    """The places of an upper triangle, (2, n)."""
    return array(np.stack(np.triu_indices(row, offset, col)))


def unravel_index(index: Any, shape: Any) -> tuple[Any, ...]:
    """The place in a shape that a number counts."""
    return tuple(map(array, np.unravel_index(np.asarray(as_tensor(index).data), tuple(shape))))
