"""Arrays as a flat list of numbers with a shape, under numpy's names and with its rules.

For a page, whose Python has no numpy: what is computed once, from a program and its data, on a thousand numbers or so.
An array shares its numbers with none.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qvr_core.arrays.shapes import Shape, broadcast
from qvr_core.arrays.without_numpy.kinds import KINDS, NAMES, ORDER, contiguous, dtype, kind_of, places, size_of


class _Scalar:
    """A number that has what arrays have."""

    shape, ndim, size = (), 0, 1

    def item(self) -> Any:
        number: Any = self
        return KINDS[kind_of(type(self))](number)

    tolist = item

    @property
    def dtype(self) -> dtype:
        return dtype(type(self))

    def astype(self, of: Any, **keywords: Any) -> Any:
        return SCALARS[kind_of(of)](self)

    def reshape(self, *shape: Any) -> ndarray:
        return asarray(self).reshape(*shape)


class float64(_Scalar, float):
    """A real number of an array."""


class int64(_Scalar, int):
    """A whole number of an array."""


class bool_(int):
    """The kind of truths; one of them is Python's."""

    def __new__(cls, value: Any = False) -> Any:
        return bool(value)


SCALARS: dict[str, Callable[[Any], Any]] = {
    "b": lambda value: ndarray([value], (), "b"),
    "i": int64,
    "f": float64,
    "O": lambda value: value,
}


class ndarray:
    """Numbers row by row."""

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1.0

    def __init__(self, data: list[Any], shape: Shape, kind: str) -> None:
        self.data, self.shape, self.kind = data, tuple(shape), kind

    @classmethod
    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    @property
    def dtype(self) -> dtype:
        return dtype(self.kind if self.kind == "O" else NAMES[self.kind])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def T(self) -> ndarray:
        return self.transpose()

    @property
    def flat(self) -> list[Any]:
        return self.data

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(8 * step for step in contiguous(self.shape))

    @property
    def nbytes(self) -> int:
        return 8 * self.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"array({self.tolist()})"

    def item(self) -> Any:
        (value,) = self.data
        return value

    def tolist(self) -> Any:
        if not self.shape:
            return self.data[0]
        found = self.data
        for size in reversed(self.shape[1:]):
            if not size:
                return [] if not self.size else found
            found = [found[at : at + size] for at in range(0, len(found), size)]
        return list(found)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __contains__(self, value: Any) -> bool:
        return value in self.data

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how else repr(self)

    def copy(self) -> ndarray:
        return ndarray(list(self.data), self.shape, self.kind)

    def astype(self, of: Any, copy: bool = True, **keywords: Any) -> ndarray:
        kind = kind_of(of)
        if kind == self.kind:
            return self.copy() if copy else self
        return ndarray(list(map(KINDS[kind], self.data)), self.shape, kind)

    def reshape(self, *shape: Any, **keywords: Any) -> ndarray:
        wanted = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if -1 in wanted:
            rest = -size_of(wanted)
            wanted[wanted.index(-1)] = self.size // rest if rest else 0
        if size_of(wanted) != self.size:
            raise ValueError(f"cannot reshape {self.size} numbers into {tuple(wanted)}")
        return ndarray(list(self.data), tuple(int(size) for size in wanted), self.kind)

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    flatten = ravel

    def nonzero(self) -> tuple[ndarray, ...]:
        return nonzero(self)

    def transpose(self, *axes: Any) -> ndarray:
        order = list(axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)
        order = [at % self.ndim for at in order] if order else list(reversed(range(self.ndim)))
        steps = contiguous(self.shape)
        return self.walked(tuple(self.shape[at] for at in order), [steps[at] for at in order])

    def walked(self, shape: Shape, steps: Sequence[int], start: int = 0) -> ndarray:
        """The numbers at a place and so many steps further an axis."""
        data = self.data
        return ndarray([data[at] for at in places(shape, steps, start)], shape, self.kind)

    def squeeze(self, axis: int | None = None) -> ndarray:
        kept = [n for at, n in enumerate(self.shape) if (n != 1 if axis is None else at != axis % self.ndim)]
        return self.reshape(kept)

    # places

    def __getitem__(self, index: Any) -> Any:
        where, shape = found_at(self.shape, index)
        if shape is None:
            return SCALARS[self.kind](self.data[where[0]])
        data = self.data
        return ndarray([data[at] for at in where], shape, self.kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        where, shape = found_at(self.shape, index)
        given = spread(array(value), shape or ()).data
        convert = KINDS[self.kind]
        for at, one in zip(where, given, strict=True):
            self.data[at] = convert(one)

    # sums

    def reduced(self, of: Callable[[list[Any]], Any], axis: Any, keepdims: bool, kind: str | None = None) -> Any:
        """`of` the numbers along some axes; all of them where `axis` is None."""
        kind = kind or self.kind
        axes = range(self.ndim) if axis is None else ((axis,) if isinstance(axis, int) else axis)
        over = sorted({at % self.ndim for at in axes})
        kept = [at for at in range(self.ndim) if at not in over]
        steps = contiguous(self.shape)
        inner = list(places([self.shape[at] for at in over], [steps[at] for at in over], 0))
        outer = places([self.shape[at] for at in kept], [steps[at] for at in kept], 0)
        data = self.data
        made = [of([data[start + at] for at in inner]) for start in outer]
        shape = tuple(1 if at in over else n for at, n in enumerate(self.shape)) if keepdims else tuple(
            self.shape[at] for at in kept
        )  # fmt: skip
        return ndarray(made, shape, kind)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(sum, axis, keepdims, "i" if self.kind == "b" else self.kind).real_sum()

    def real_sum(self) -> ndarray:
        """With the sums of no numbers as real as the others."""
        return ndarray(list(map(KINDS[self.kind], self.data)), self.shape, self.kind)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(math.prod, axis, keepdims, "i" if self.kind == "b" else self.kind).real_sum()

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(largest, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(smallest, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(lambda held: sum(held) / len(held), axis, keepdims, "f")

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(all, axis, keepdims, "b")

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.reduced(any, axis, keepdims, "b")

    def argmax(self, axis: Any = None) -> Any:
        return self.reduced(lambda held: held.index(largest(held)), axis, False, "i")

    def argmin(self, axis: Any = None) -> Any:
        return self.reduced(lambda held: held.index(smallest(held)), axis, False, "i")

    def __matmul__(self, other: Any) -> ndarray:
        one, two = self, array(other)
        left, right = one.ndim == 1, two.ndim == 1
        one, two = (one[None, :] if left else one), (two[:, None] if right else two)
        batch = broadcast([one.shape[:-2], two.shape[:-2]])
        rows, inner, columns = one.shape[-2], one.shape[-1], two.shape[-1]
        one, two = spread(one, (*batch, rows, inner)), spread(two, (*batch, inner, columns))
        made: list[Any] = []
        for number in range(size_of(batch)):
            a, b = number * rows * inner, number * inner * columns
            across = [two.data[b + at : b + inner * columns : columns] for at in range(columns)]
            for row in range(rows):
                held = one.data[a + row * inner : a + (row + 1) * inner]
                made += [sum(map(operator.mul, held, column)) for column in across]
        shape = (*batch, *([] if left else [rows]), *([] if right else [columns]))
        return ndarray(list(map(float, made)), shape, "f")


def _undefined(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def largest(held: list[Any]) -> Any:
    """The largest number, or NaN."""
    return next((one for one in held if _undefined(one)), None) or max(held)


def smallest(held: list[Any]) -> Any:
    """The smallest number, or NaN."""
    return next((one for one in held if _undefined(one)), None) or min(held)


def found_at(shape: Shape, index: Any) -> tuple[list[int], Shape | None]:
    """Where what an index means lies, and its shape; None of a single number."""
    given: list[Any] = [*index] if isinstance(index, tuple) else [index]
    parts: list[Any] = []
    for one in given:
        if isinstance(one, list):
            one = array(one)
        if isinstance(one, ndarray) and one.kind == "b":
            parts += nonzero(one)
        else:
            parts.append(one)
    missing = len(shape) - sum(part is not None and part is not Ellipsis for part in parts)
    at = next((number for number, part in enumerate(parts) if part is Ellipsis), None)
    if at is None:
        parts += [slice(None)] * missing
    else:
        parts[at : at + 1] = [slice(None)] * missing
    steps = contiguous(shape)
    start, axis = 0, 0
    extents: list[int] = []
    strides: list[int] = []
    chosen: list[tuple[ndarray, int, int]] = []
    first: int | None = None
    apart = False
    last = -1
    whole = True
    for number, part in enumerate(parts):
        if part is None:
            extents.append(1)
            strides.append(0)
            continue
        size, step = shape[axis], steps[axis]
        axis += 1
        if isinstance(part, slice):
            begin, end, by = part.indices(size)
            extents.append(len(range(begin, end, by)))
            strides.append(by * step)
            start += begin * step
            continue
        if isinstance(part, ndarray) and part.shape:
            whole = False
            if first is None:
                first = len(extents)
            elif number != last + 1:
                apart = True
            last = number
            chosen.append((part, size, step))
        else:
            place = operator.index(part)
            if not -size <= place < size:
                raise IndexError(f"index {place} is out of bounds for an axis of {size}")
            start += place % size * step
    if not chosen:
        found = places(extents, strides, start)
        return list(found), None if whole and not extents and all(not isinstance(p, slice) for p in parts) else tuple(
            extents
        )
    shared: Shape = ()
    for part, _, _ in chosen:
        shared = broadcast([shared, part.shape])
    moved = [0] * size_of(shared)
    for part, size, step in chosen:
        for number, place in enumerate(spread(part, shared).data):
            if not -size <= place < size:
                raise IndexError(f"index {place} is out of bounds for an axis of {size}")
            moved[number] += place % size * step
    before = 0 if apart or first is None else first
    head = places(extents[:before], strides[:before], start)
    tail = list(places(extents[before:], strides[before:], 0))
    where = [a + b + c for a in head for b in moved for c in tail]
    return where, (*extents[:before], *shared, *extents[before:])


def nonzero(x: ndarray) -> tuple[ndarray, ...]:
    """The places of what is not 0, an array an axis."""
    found = [at for at, one in enumerate(x.data) if one]
    steps = contiguous(x.shape)
    return tuple(
        ndarray([at // step % size for at in found], (len(found),), "i")
        for step, size in zip(steps, x.shape, strict=True)
    )


def spread(x: ndarray, shape: Shape) -> ndarray:
    """An array in a larger shape."""
    if x.shape == tuple(shape):
        return x
    own = (*[1] * (len(shape) - x.ndim), *x.shape)
    if len(own) != len(shape) or any(n not in (1, m) for n, m in zip(own, shape, strict=True)):
        raise ValueError(f"numbers of shape {x.shape} do not fit {tuple(shape)}")
    if x.size == 1:
        return ndarray(x.data * size_of(shape), tuple(shape), x.kind)
    steps = [0 if n == 1 else step for n, step in zip(own, contiguous(own), strict=True)]
    return x.walked(tuple(shape), steps)


def array(value: Any, dtype: Any = None, copy: bool = True, **keywords: Any) -> ndarray:
    """An array of what is given: numbers, lists of lists, arrays."""
    made = _read(value)
    if made is value:
        made = made.copy()
    return made if dtype is None else made.astype(dtype, copy=False)


def asarray(value: Any, dtype: Any = None, **keywords: Any) -> ndarray:
    """The same, without a copy of what is one."""
    made = _read(value)
    return made if dtype is None else made.astype(dtype, copy=False)


def _read(value: Any) -> ndarray:
    if isinstance(value, ndarray):
        return value
    if hasattr(value, "__array__"):
        return value.__array__()
    given: Sequence[Any] = value
    if isinstance(value, range | list | tuple):
        if all(isinstance(one, int | float) for one in given):
            kind = ORDER[max((_kind(one) for one in given), default=2)]
            return ndarray(list(map(KINDS[kind], given)), (len(given),), kind)
        parts = [_read(one) for one in given]
        if len({part.shape for part in parts}) > 1:
            raise ValueError("lists of different lengths are no array")
        kind = ORDER[max(ORDER.index(part.kind) for part in parts)]
        data = list(itertools.chain.from_iterable(part.data for part in parts))
        return ndarray(list(map(KINDS[kind], data)), (len(parts), *parts[0].shape), kind)
    kind = ORDER[_kind(value)]
    return ndarray([KINDS[kind](value)], (), kind)


def _kind(value: Any) -> int:
    return 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2 if isinstance(value, float) else 3
