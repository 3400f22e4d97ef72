"""Arrays made, joined, ordered and laid out anew."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qvr_core.arrays.shapes import Shape
from qvr_core.arrays.shapes import broadcast as joint
from qvr_core.arrays.without_numpy.array import array, asarray, ndarray, spread
from qvr_core.arrays.without_numpy.kinds import KINDS, contiguous, size_of


def _shape(shape: Any) -> Shape:
    sizes: Sequence[Any] = shape
    return tuple(map(int, sizes)) if isinstance(shape, Sequence) else (int(shape),)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    own = asarray(value, dtype)
    return spread(own, _shape(shape)).copy()


def zeros(shape: Any, dtype: Any = None) -> ndarray:
    return full(shape, 0.0, dtype)


def ones(shape: Any, dtype: Any = None) -> ndarray:
    return full(shape, 1.0, dtype)


empty = zeros


def zeros_like(x: Any, dtype: Any = None) -> ndarray:
    own = asarray(x)
    return full(own.shape, 0, dtype or own.dtype)


def ones_like(x: Any, dtype: Any = None) -> ndarray:
    own = asarray(x)
    return full(own.shape, 1, dtype or own.dtype)


empty_like = zeros_like


def full_like(x: Any, value: Any, dtype: Any = None) -> ndarray:
    own = asarray(x)
    return full(own.shape, value, dtype or own.dtype)


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = None) -> ndarray:
    width = rows if columns is None else columns
    made = ndarray([float(j - i == k) for i in range(rows) for j in range(width)], (rows, width), "f")
    return made if dtype is None else made.astype(dtype)


def arange(*bounds: Any, dtype: Any = None) -> ndarray:
    values = [b.item() if isinstance(b, ndarray) else b for b in bounds]
    if all(isinstance(value, int) for value in values):
        return array(range(*values), dtype or int)
    start, stop, step = (0.0, values[0], 1.0) if len(values) == 1 else (*values, 1.0)[:3]
    return array([start + step * at for at in range(max(0, math.ceil((stop - start) / step)))], dtype or float)


def linspace(start: float, stop: float, count: int = 50) -> ndarray:
    return array([start + (stop - start) * at / max(count - 1, 1) for at in range(count)], float)


def shape(x: Any) -> Shape:
    return asarray(x).shape


def ndim(x: Any) -> int:
    return asarray(x).ndim


def broadcast_to(x: Any, shape: Any) -> ndarray:
    return spread(asarray(x), _shape(shape))


def broadcast_shapes(*shapes: Any) -> Shape:
    return joint([_shape(one) for one in shapes])


def broadcast_arrays(*given: Any) -> list[ndarray]:
    own = [asarray(one) for one in given]
    shape = joint([one.shape for one in own])
    return [spread(one, shape) for one in own]


def reshape(x: Any, shape: Any) -> ndarray:
    return asarray(x).reshape(shape)


def transpose(x: Any, axes: Any = None) -> ndarray:
    return asarray(x).transpose(*(() if axes is None else (axes,)))


def swapaxes(x: Any, one: int, other: int) -> ndarray:
    own = asarray(x)
    order = list(range(own.ndim))
    order[one], order[other] = order[other], order[one]
    return own.transpose(order)


def moveaxis(x: Any, source: int, target: int) -> ndarray:
    own = asarray(x)
    order = [at for at in range(own.ndim) if at != source % own.ndim]
    order.insert(target % own.ndim, source % own.ndim)
    return own.transpose(order)


def expand_dims(x: Any, axis: int) -> ndarray:
    own = asarray(x)
    at = axis % (own.ndim + 1)
    return own.reshape((*own.shape[:at], 1, *own.shape[at:]))


def squeeze(x: Any, axis: Any = None) -> ndarray:
    return asarray(x).squeeze(axis)


def ascontiguousarray(x: Any, dtype: Any = None) -> ndarray:
    return asarray(x, dtype)


def atleast_1d(x: Any) -> ndarray:
    own = asarray(x)
    return own if own.ndim else own.reshape(1)


def flip(x: Any, axis: Any = None) -> ndarray:
    own = asarray(x)
    axes = range(own.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    turned = {at % own.ndim for at in axes}
    return own[tuple(slice(None, None, -1) if at in turned else slice(None) for at in range(own.ndim))]


def concatenate(parts: Sequence[Any], axis: int = 0) -> ndarray:
    own = [asarray(part) for part in parts]
    at = axis % own[0].ndim
    kind = max((part.kind for part in own), key="bifO".index)
    held: list[Any] = []
    for number in range(size_of(own[0].shape[:at])):
        for part in own:
            size = size_of(part.shape[at:])
            held += part.data[number * size : (number + 1) * size]
    shape = (*own[0].shape[:at], sum(part.shape[at] for part in own), *own[0].shape[at + 1 :])
    return ndarray(list(map(KINDS[kind], held)), shape, kind)


def stack(parts: Sequence[Any], axis: int = 0) -> ndarray:
    return concatenate([expand_dims(part, axis) for part in parts], axis)


def _triangle(x: Any, k: int, lower: bool) -> ndarray:
    own = asarray(x)
    rows, columns = own.shape[-2:]
    keep = [(j - i <= k) if lower else (j - i >= k) for i in range(rows) for j in range(columns)]
    zero = KINDS[own.kind](0)
    return ndarray([v if keep[n % len(keep)] else zero for n, v in enumerate(own.data)], own.shape, own.kind)


def tril(x: Any, k: int = 0) -> ndarray:
    return _triangle(x, k, True)


def triu(x: Any, k: int = 0) -> ndarray:
    return _triangle(x, k, False)


def tril_indices(rows: int, k: int = 0, columns: int | None = None) -> tuple[ndarray, ndarray]:
    pairs = [(i, j) for i in range(rows) for j in range(columns or rows) if j - i <= k]
    return array([i for i, _ in pairs], int), array([j for _, j in pairs], int)


def triu_indices(rows: int, k: int = 0, columns: int | None = None) -> tuple[ndarray, ndarray]:
    pairs = [(i, j) for i in range(rows) for j in range(columns or rows) if j - i >= k]
    return array([i for i, _ in pairs], int), array([j for _, j in pairs], int)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    own = moveaxis(moveaxis(asarray(x), axis1, -1), axis2 - (axis2 > axis1) if axis2 >= 0 else axis2, -1)
    rows, columns = own.shape[-2:]
    own = own if axis2 % len(own.shape) > axis1 % len(own.shape) else swapaxes(own, -1, -2)
    places = [i for i in range(rows) if 0 <= i + offset < columns]
    return own[..., array(places, int), array([i + offset for i in places], int)]


def indices(shape: Any) -> ndarray:
    sizes = _shape(shape)
    steps = contiguous(sizes)
    total = size_of(sizes)
    data = [at // step % size for step, size in zip(steps, sizes, strict=True) for at in range(total)]
    return ndarray(data, (len(sizes), *sizes), "i")


def unravel_index(index: Any, shape: Any) -> tuple[ndarray, ...]:
    own, sizes = asarray(index), _shape(shape)
    pairs = zip(contiguous(sizes), sizes, strict=True)
    return tuple(ndarray([at // step % size for at in own.data], own.shape, "i") for step, size in pairs)


def _along(x: ndarray, index: ndarray, axis: int) -> tuple[Any, ...]:
    places: list[Any] = list(indices(index.shape))
    for at, part in enumerate(places):
        if x.shape[at] == 1:
            places[at] = zeros_like(part)
    places[axis % x.ndim] = index
    return tuple(places)


def take_along_axis(x: Any, index: Any, axis: int) -> ndarray:
    own = asarray(x)
    return own[_along(own, asarray(index), axis)]


def put_along_axis(x: ndarray, index: Any, values: Any, axis: int) -> None:
    x[_along(x, asarray(index), axis)] = values


def take(x: Any, index: Any, axis: int | None = None) -> Any:
    own = asarray(x)
    if axis is None:
        return own.ravel()[index]
    return own[(*[slice(None)] * (axis % own.ndim), asarray(index) if isinstance(index, list) else index)]


def repeat(x: Any, counts: Any) -> ndarray:
    own = asarray(x).ravel()
    each = spread(asarray(counts), own.shape).data
    return ndarray([v for v, n in zip(own.data, each, strict=True) for _ in range(n)], (sum(each),), own.kind)


def _rows(x: ndarray, axis: int, of: Callable[[list[Any]], Iterable[Any]], kind: str | None = None) -> ndarray:
    """`of` each row of numbers along an axis, which gives as many."""
    moved = moveaxis(x, axis, -1)
    size = moved.shape[-1]
    held = [one for at in range(0, moved.size, max(size, 1)) for one in of(moved.data[at : at + size])]
    made = ndarray(held, (*moved.shape[:-1], len(held) // max(moved.size // max(size, 1), 1)), kind or x.kind)
    return moveaxis(made, -1, axis)


def _running(values: list[Any], of: Callable[[Any, Any], Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.append(of(found[-1], value) if found else value)
    return found


def cumsum(x: Any, axis: int | None = None) -> ndarray:
    own = asarray(x).ravel() if axis is None else asarray(x)
    return _rows(own, axis or 0, lambda row: _running(row, lambda a, b: a + b), "i" if own.kind == "b" else None)


def cumprod(x: Any, axis: int | None = None) -> ndarray:
    own = asarray(x).ravel() if axis is None else asarray(x)
    return _rows(own, axis or 0, lambda row: _running(row, lambda a, b: a * b))


def diff(x: Any, axis: int = -1) -> ndarray:
    return _rows(asarray(x), axis, lambda row: [b - a for a, b in itertools.pairwise(row)])


def sort(x: Any, axis: int = -1) -> ndarray:
    return _rows(asarray(x), axis, lambda row: sorted(row, key=_last_nan))


def argsort(x: Any, axis: int = -1, kind: Any = None) -> ndarray:
    return _rows(asarray(x), axis, lambda row: sorted(range(len(row)), key=lambda at: _last_nan(row[at])), "i")


def _last_nan(value: Any) -> Any:
    undefined = isinstance(value, float) and math.isnan(value)
    return (undefined, 0 if undefined else value)


def unique(x: Any, return_inverse: bool = False, return_counts: bool = False) -> Any:
    own = asarray(x)
    values = sorted(set(own.data))
    number = {value: at for at, value in enumerate(values)}
    found: list[Any] = [ndarray(values, (len(values),), own.kind)]
    if return_inverse:
        found.append(ndarray([number[value] for value in own.data], own.shape, "i"))
    if return_counts:
        counts = [0] * len(values)
        for value in own.data:
            counts[number[value]] += 1
        found.append(array(counts, int))
    return found[0] if len(found) == 1 else tuple(found)


def searchsorted(x: Any, values: Any, side: str = "left") -> Any:
    import bisect

    where = bisect.bisect_right if side == "right" else bisect.bisect_left
    row, own = asarray(x).data, asarray(values)
    return ndarray([where(row, value) for value in own.data], own.shape, "i")


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    own = asarray(x).data
    each = [1] * len(own) if weights is None else asarray(weights).data
    found: list[Any] = [0 if weights is None else 0.0] * max(minlength, max(own, default=-1) + 1)
    for place, value in zip(own, each, strict=True):
        found[place] += value
    return array(found, int if weights is None else float)


def quantile(x: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Any:
    own, at = asarray(x, float), asarray(q, float)

    def of(share: float) -> ndarray:
        def found(row: list[float]) -> float:
            ordered = sorted(row)
            place = share * (len(ordered) - 1)
            low = min(int(place), len(ordered) - 1)
            high = min(low + 1, len(ordered) - 1)
            return ordered[low] + (place - low) * (ordered[high] - ordered[low])

        return own.reduced(found, axis, keepdims, "f")

    return of(at.item()) if not at.shape else stack([of(share) for share in at.data])


def array_equal(x: Any, y: Any, equal_nan: bool = False) -> bool:
    one, other = asarray(x), asarray(y)
    alike = zip(one.data, other.data, strict=False)
    return one.shape == other.shape and all(u == v or (equal_nan and u != u and v != v) for u, v in alike)  # noqa: PLR0124


def argmax(x: Any, axis: int | None = None) -> Any:
    return asarray(x).argmax(axis)


def argmin(x: Any, axis: int | None = None) -> Any:
    return asarray(x).argmin(axis)
