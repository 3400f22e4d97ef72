"""Functions that look at values: for arrays that are numbers, and for constants of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.indices import getitem, scatter_add
from qvr_core.arrays.listing import arrays, listed
from qvr_core.arrays.reductions import Extremes
from qvr_core.arrays.special import ndtri as quantile_function


def _data(x: Any, name: str) -> Any:
    if isinstance(x, Array):
        if not x.constant:
            raise Unsupported(f"looking at the values of latents ({name})")
        return x.data
    return np.asarray(x.detach().numpy()) if hasattr(x, "detach") else np.asarray(x)


def _like(x: Array, data: Any) -> Any:
    return x.graph.constant(np.asarray(data))


@listed("item")
def item(x: Array) -> Any:
    """The one number as Python's."""
    return _data(x, "item").item()


@listed("tolist")
def tolist(x: Array) -> Any:
    """The numbers as lists."""
    return _data(x, "tolist").tolist()


@listed("numpy")
def numpy(x: Array, **keywords: Any) -> Any:
    """The numbers as a numpy array."""
    return _data(x, "numpy")


@listed("nonzero")
def nonzero(x: Array, *, as_tuple: bool = False) -> Any:
    """The places of what is not 0, (n, axes)."""
    places = np.nonzero(_data(x, "nonzero"))
    return tuple(_like(x, one) for one in places) if as_tuple else _like(x, np.stack(places, -1))


@listed("unique")
def unique(x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The different numbers, ascending."""
    found = np.unique(_data(x, "unique"), return_inverse=return_inverse, return_counts=return_counts)
    if not isinstance(found, tuple):
        return _like(x, found)
    shaped = [found[0], *found[1:]]
    if return_inverse:
        shaped[1] = shaped[1].reshape(tuple(x.shape))
    return tuple(_like(x, one) for one in shaped)


@listed("sort")
def sort(x: Array, dim: int = -1, descending: bool = False, **keywords: Any) -> Any:
    """In order along an axis, and the places where the numbers were."""
    data = _data(x, "sort")
    order = np.argsort(-data if descending else data, dim, kind="stable")
    return Ordered((_like(x, np.take_along_axis(data, order, dim)), _like(x, order)))


class Ordered(tuple[Any, ...]):
    """Numbers and their places."""

    @property
    def values(self) -> Any:
        """The numbers."""
        return self[0]

    @property
    def indices(self) -> Any:
        """Their places."""
        return self[1]


@listed("argsort")
def argsort(x: Array, dim: int = -1, descending: bool = False, **keywords: Any) -> Any:
    """The places in order along an axis."""
    return sort(x, dim, descending)[1]


def _extreme_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        found = function(_data(x, "argmax"), axis=dim)
        return _like(x, np.expand_dims(found, dim) if keepdim and dim is not None else found)

    return apply


listed("argmax")(_extreme_place(np.argmax))
listed("argmin")(_extreme_place(np.argmin))


@listed("median")
def median(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the two middle numbers, as torch has it."""
    data = _data(x, "median")
    own = np.sort(data.reshape(-1) if dim is None else data, axis=-1 if dim is None else dim)
    axis = 0 if dim is None else dim
    middle = np.take(own, (own.shape[axis] - 1) // 2, axis)
    if dim is None:
        return _like(x, middle)
    return Extremes((_like(x, np.expand_dims(middle, dim) if keepdim else middle), None))


@listed("quantile")
def quantile(x: Array, q: Any, dim: int | None = None, keepdim: bool = False, **keywords: Any) -> Any:
    """Quantiles along an axis."""
    return _like(x, np.quantile(_data(x, "quantile"), _data(q, "quantile"), axis=dim, keepdims=keepdim))


@listed("aminmax")
def aminmax(x: Array, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest number."""
    data = _data(x, "aminmax")
    return (
        _like(x, data.min(axis=dim, keepdims=keepdim)),
        _like(x, data.max(axis=dim, keepdims=keepdim)),
    )


@listed("round")
def rounded(x: Array, *, decimals: int = 0) -> Any:
    """The nearest whole number."""
    return _like(x, np.round(_data(x, "round"), decimals))


@listed("bincount")
def bincount(x: Array, weights: Any = None, minlength: int = 0) -> Any:
    """How often each whole number stands there."""
    own = None if weights is None else _data(weights, "bincount")
    return _like(x, np.bincount(_data(x, "bincount"), own, minlength))


@listed("searchsorted")
def searchsorted(x: Array, values: Any, *, right: bool = False, side: Any = None) -> Any:
    """Where numbers would stand among ascending ones."""
    where: Any = side or ("right" if right else "left")
    return _like(x, np.searchsorted(_data(x, "searchsorted"), _data(values, "searchsorted"), where))


@listed("linalg_eigh", "eigh")
def eigh(x: Array, UPLO: Any = "L") -> Any:
    """Eigenvalues, ascending, and eigenvectors."""
    values, vectors = np.linalg.eigh(_data(x, "eigh"), UPLO)
    return _like(x, values), _like(x, vectors)


@listed("special_ndtri", "ndtri")
def ndtri(x: Array) -> Any:
    """The standard normal's quantile function."""
    return _like(x, quantile_function(_data(x, "ndtri")))


@listed("erfinv")
def erfinv(x: Array) -> Any:
    """The inverse of erf."""
    return _like(x, quantile_function(0.5 * (_data(x, "erfinv") + 1.0)) * math.sqrt(0.5))


@listed("one_hot")
def one_hot(x: Array, num_classes: int = -1) -> Any:
    """1 at the place of each whole number, 0 elsewhere, along a new last axis."""
    data = _data(x, "one_hot")
    count = int(data.max()) + 1 if num_classes < 0 else num_classes
    return _like(x, (data[..., None] == np.arange(count)).astype(np.int64))


@listed("embedding")
def embedding(index: Any, table: Any, **keywords: Any) -> Any:
    """Rows of a table."""
    return getitem(table, index)


@listed("scatter")
def scatter(base: Any, dim: int, index: Any, source: Any) -> Any:
    """base with numbers put at index[…] along an axis."""
    base, own, source = arrays(base, index, source)
    data = np.array(_data(base, "scatter"))
    np.put_along_axis(data, _data(own, "scatter"), _data(source, "scatter"), dim)
    return _like(base, data)


_JOINED = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@listed("scatter_reduce")
def scatter_reduce(base: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """base with numbers joined at index[…] along an axis; of latents only those added up."""
    if reduce == "sum" and include_self:
        return scatter_add(base, dim, index, source)
    base, own, source = arrays(base, index, source)
    data, places = np.array(_data(base, "scatter_reduce")), list(np.indices(tuple(own.shape)))
    places[dim] = _data(own, "scatter_reduce")
    if not include_self:
        start = {"sum": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}[reduce]
        data[tuple(places)] = start
    _JOINED[reduce].at(data, tuple(places), _data(source, "scatter_reduce"))
    return _like(base, data)


@listed("index_fill")
def index_fill(x: Array, dim: int, index: Any, value: float) -> Any:
    """One number put at an index along an axis."""
    data = np.array(_data(x, "index_fill"))
    data[(*[slice(None)] * (dim % data.ndim), _data(index, "index_fill"))] = value
    return _like(x, data)


# ---------------------------------------------------------------- in place, for arrays that are numbers


@listed("setitem")
def setitem(x: Array, key: Any, value: Any) -> None:
    """Numbers put in place."""
    keys: list[Any] = [*key] if isinstance(key, tuple) else [key]
    own = tuple(_data(one, "setitem") if isinstance(one, Array) else one for one in keys)
    _data(x, "a change in place")[own] = _data(value, "setitem") if isinstance(value, Array) else value


def _in_place(name: str, function: Callable[..., Any]) -> None:
    def apply(x: Array, *args: Any, **keywords: Any) -> Array:
        data = _data(x, "a change in place")
        data[...] = function(data, *(a.data if isinstance(a, Array) else a for a in args), **keywords)
        return x

    listed(name)(apply)


def _clipped(data: Any, min: float | None = None, max: float | None = None) -> Any:
    return np.clip(data, min, max)


def _given(data: Any, value: Any) -> Any:
    return value


def _zero(data: Any) -> int:
    return 0


_in_place("fill_", _given)
_in_place("zero_", _zero)
_in_place("copy_", _given)
_in_place("clamp_", _clipped)
_in_place("add_", np.add)
_in_place("mul_", np.multiply)


@listed("data_ptr")
def data_ptr(x: Array) -> int:
    """Where the numbers lie in memory."""
    return int(_data(x, "its address").ctypes.data)


@listed("index_put_")
def index_put_(x: Array, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Array:
    """Numbers put, or added, at indices."""
    data = _data(x, "a change in place")
    places = tuple(_data(one, "index_put_") for one in indices)
    own = _data(values, "index_put_")
    if accumulate:
        np.add.at(data, places, own)
    else:
        data[places] = own
    return x
