"""The same numbers in other shapes, at other places, and put together."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.listing import arrays, listed
from qvr_core.arrays.operations import transposed, triangle
from qvr_core.arrays.shapes import broadcast


def _sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    if len(given) == 1 and not isinstance(given[0], int):
        return tuple(int(size) for size in given[0])
    return tuple(int(size) for size in given)


@listed("reshape", "view")
def reshape(x: Array, *shape: Any, **keywords: Any) -> Array:
    """The same numbers in another shape."""
    return g.reshape(x, _sizes(shape or (keywords["shape"],)))


@listed("view_as", "reshape_as")
def view_as(x: Array, other: Any) -> Array:
    """In the shape of another."""
    return g.reshape(x, tuple(other.shape))


@listed("expand", "broadcast_to")
def expand(x: Array, *shape: Any) -> Array:
    """Axes of one element repeated."""
    return g.expand(x, _sizes(shape))


@listed("expand_as")
def expand_as(x: Any, other: Any) -> Array:
    """Repeated to the shape of another."""
    return g.expand(arrays(x, other)[0], tuple(other.shape))


@listed("unsqueeze")
def unsqueeze(x: Array, dim: int) -> Array:
    """A new axis of one element."""
    at = dim % (x.rank + 1)
    return g.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


@listed("squeeze")
def squeeze(x: Array, dim: int | Sequence[int] | None = None) -> Array:
    """Without axes of one element."""
    over = g.axes_of(x, dim)
    return g.reshape(x, tuple(n for axis, n in enumerate(x.shape) if axis not in over or n != 1))


@listed("flatten")
def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Axes from one to another as one."""
    if x.rank == 0:
        return g.reshape(x, (1,))
    first, last = start_dim % x.rank, end_dim % x.rank
    return g.reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@listed("unflatten")
def unflatten(x: Array, dim: int, sizes: Sequence[int]) -> Array:
    """An axis as several."""
    at = dim % x.rank
    if -1 in sizes:
        rest = math.prod(n for n in sizes if n != -1)
        sizes = [x.shape[at] // rest if n == -1 else n for n in sizes]
    return g.reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1 :]))


@listed("permute")
def permute(x: Array, *dims: Any) -> Array:
    """Axes in another order."""
    return g.permute(x, _sizes(dims))


@listed("transpose", "swapaxes", "swapdims")
def transpose(x: Array, dim0: int, dim1: int) -> Array:
    """Two axes exchanged."""
    order = list(range(x.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.permute(x, order)


@listed("t", "adjoint")
def t(x: Array) -> Array:
    """The last two axes exchanged."""
    return x if x.rank < 2 else transposed(x)


@listed("movedim", "moveaxis")
def movedim(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Axes moved to other places; the others keep their order."""
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    places = {to % x.rank: axis % x.rank for axis, to in zip(sources, targets, strict=True)}
    rest = iter(axis for axis in range(x.rank) if axis not in places.values())
    return g.permute(x, [places[at] if at in places else next(rest) for at in range(x.rank)])


@listed("select")
def select(x: Array, dim: int, index: int) -> Array:
    """One element along an axis."""
    return g.select(x, dim, int(index))


@listed("narrow")
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    """`length` elements along an axis."""
    first = int(start) % x.shape[dim] if int(start) < 0 else int(start)
    if first + length > x.shape[dim]:
        raise IndexError(f"{length} elements from {first} of an axis of {x.shape[dim]}")
    return g.cut(x, dim, first, first + int(length))


@listed("split")
def split(x: Array, sizes: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Pieces of these sizes along an axis."""
    length = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [builtins.min(sizes, length - start) for start in range(0, length, sizes)]
    ends = [0]
    for one in sizes:
        ends.append(ends[-1] + one)
    return tuple(g.cut(x, dim, start, stop) for start, stop in pairwise(ends))


@listed("chunk")
def chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """So many pieces of one size along an axis."""
    return split(x, -(-x.shape[dim] // chunks), dim)


@listed("unbind")
def unbind(x: Array, dim: int = 0) -> tuple[Array, ...]:
    """The elements along an axis."""
    return tuple(g.select(x, dim, at) for at in range(x.shape[dim]))


@listed("flip")
def flip(x: Array, *dims: Any) -> Array:
    """The other way round."""
    return g.flip(x, _sizes(dims))


@listed("roll")
def roll(x: Array, shifts: int, dims: int | None = None) -> Array:
    """Moved on along an axis, what falls off put in front."""
    if dims is None:
        return g.reshape(roll(flatten(x), shifts, 0), x.shape)
    at = -shifts % builtins.max(x.shape[dims], 1)
    return g.cat([g.cut(x, dims, at, x.shape[dims]), g.cut(x, dims, 0, at)], dims) if at else x


@listed("repeat")
def repeat(x: Array, *times: Any) -> Array:
    """The whole array so many times along each axis."""
    counts = _sizes(times)
    own = (1,) * (len(counts) - x.rank) + x.shape
    between = g.reshape(x, tuple(n for size in own for n in (1, size)))
    wide = g.expand(between, tuple(n for count, size in zip(counts, own, strict=True) for n in (count, size)))
    return g.reshape(wide, tuple(count * size for count, size in zip(counts, own, strict=True)))


@listed("repeat_interleave")
def repeat_interleave(x: Array, repeats: Any, dim: int | None = None) -> Array:
    """Every element so many times in a row."""
    if not isinstance(repeats, int):
        raise Unsupported("numbers of repetitions that differ")
    x, at = (flatten(x), 0) if dim is None else (x, dim % x.rank)
    wide = g.expand(
        g.reshape(x, (*x.shape[: at + 1], 1, *x.shape[at + 1 :])),
        (*x.shape[: at + 1], repeats, *x.shape[at + 1 :]),
    )
    return g.reshape(wide, (*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]))


@listed("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Array:
    """One behind the other along an axis."""
    return g.cat(arrays(*tensors), dim)


@listed("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> Array:
    """Side by side along a new axis."""
    parts = arrays(*tensors)
    return g.cat([unsqueeze(part, dim % (part.rank + 1)) for part in parts], dim % (parts[0].rank + 1))


@listed("pad")
def pad(x: Array, widths: Sequence[int], mode: str = "constant", value: float | None = 0.0) -> Array:
    """Numbers put before and behind the last axes, last axis first; fewer than none takes away."""
    if mode != "constant":
        raise Unsupported(f"padding by {mode}")
    for number in range(len(widths) // 2):
        axis = x.rank - 1 - number
        before, after = widths[2 * number : 2 * number + 2]
        x = g.cut(x, axis, builtins.max(-before, 0), x.shape[axis] - builtins.max(-after, 0))
        fill = x.graph.constant(float(value or 0.0))
        ends = [g.expand(fill, (*x.shape[:axis], n, *x.shape[axis + 1 :])) if n > 0 else None for n in (before, after)]
        parts = [part for part in (ends[0], x, ends[1]) if part is not None]
        x = g.cat(parts, axis) if len(parts) > 1 else x
    return x


@listed("diag_embed")
def diag_embed(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Matrices with x on the main diagonal."""
    if offset or (dim1 % (x.rank + 1), dim2 % (x.rank + 1)) != (x.rank - 1, x.rank):
        raise Unsupported("a diagonal that is not the main one")
    return g.diagonal_embed(x)


@listed("diagonal")
def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """The main diagonal of two axes."""
    if offset:
        raise Unsupported("a diagonal that is not the main one")
    one, two = dim1 % x.rank, dim2 % x.rank
    return g.diagonal(g.permute(x, [*(axis for axis in range(x.rank) if axis not in (one, two)), one, two]))


@listed("tril")
def tril(x: Array, diagonal: int = 0) -> Array:
    """The lower triangle."""
    if diagonal not in (0, -1):
        raise Unsupported("a triangle off the diagonal")
    return triangle(x, strict=diagonal == -1)


@listed("triu")
def triu(x: Array, diagonal: int = 0) -> Array:
    """The upper triangle."""
    if diagonal not in (0, 1):
        raise Unsupported("a triangle off the diagonal")
    return triangle(x, upper=True, strict=diagonal == 1)


@listed("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Array, ...]:
    """All in the shape that they have together."""
    parts = arrays(*(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors))
    shape = broadcast([part.shape for part in parts])
    return tuple(g.expand(part, shape) for part in parts)


@listed("atleast_1d")
def atleast_1d(x: Array) -> Array:
    """With one axis at least."""
    return x if x.rank else g.reshape(x, (1,))
