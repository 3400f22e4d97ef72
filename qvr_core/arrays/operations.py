"""The operations of a graph, each with the shape and the kind of numbers that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qvr_core.arrays.graph import (
    CASTS,
    COMPARISONS,
    LOGICAL,
    Array,
    Graph,
    Kind,
    Unsupported,
    is_known,
    known,
)
from qvr_core.arrays.shapes import Shape, broadcast, contracted, reshaped
from qvr_core.operations.table import NODES, nodes_that_are

# ---------------------------------------------------------------- operations on numbers one by one


def pointwise(op: str, *args: Array) -> Array:
    """An operation on numbers one by one; shapes are broadcast."""
    graph = args[0].graph
    shape = broadcast([arg.shape for arg in args])
    kept = _unchanged(op, args, shape)
    if kept is not None:
        return kept
    kind = _kind(op, args)
    if kind == "real" and op != "real":
        args = tuple(arg if arg.kind != "whole" else pointwise("real", arg) for arg in args)
    return graph.make(op, args, (), shape, kind)


def _kind(op: str, args: Sequence[Array]) -> Kind:
    if op in COMPARISONS or op in LOGICAL:
        return "truth"
    if op in CASTS:
        return CASTS[op]
    if op == "where":
        args = args[1:]
    if op in _KEEPS_KIND:
        kinds = {arg.kind for arg in args}
        return "real" if "real" in kinds else "whole" if kinds != {"truth"} or op != "where" else "truth"
    return "real"


_KEEPS_KIND = nodes_that_are("kind")
_NEUTRAL = {name: node.neutral for name, node in NODES.items() if node.neutral != (None, None)}


def _unchanged(op: str, args: Sequence[Array], shape: Shape) -> Array | None:
    """What an operation gives without being done."""
    if op in CASTS and args[0].kind == CASTS[op]:
        return args[0]
    if op == "neg" and args[0].op == "neg":
        return args[0].args[0]
    if op == "log":
        # of a scale that is the exponential of what a chain moves
        source = args[0].args[0] if args[0].op == "reshape" else args[0]
        if source.op == "exp":
            return reshape(source.args[0], args[0].shape)
    if op in _NEUTRAL and not all(arg.op == "constant" for arg in args):
        left, right = args
        before, after = _NEUTRAL[op]
        if right.op == "constant" and left.shape == shape and left.kind == "real" and known(right) == after:
            return left
        plain = before is not None and left.op == "constant" and right.shape == shape and right.kind == "real"
        if plain and known(left) == before:
            return right
    return None


# ---------------------------------------------------------------- views


def reshape(x: Array, shape: Iterable[int]) -> Array:
    """The same numbers, row by row, in another shape; one size may be −1."""
    shape = reshaped(x.shape, tuple(shape))
    if x.op == "reshape":
        x = x.args[0]
    return x if x.shape == shape else x.graph.make("reshape", (x,), (shape,), shape, x.kind)


def zeros(graph: Graph, shape: Shape) -> Array:
    """Zeros as a constant that takes no room."""
    return expand(graph.constant(0.0), shape)


def permute(x: Array, axes: Iterable[int]) -> Array:
    """The axes in another order."""
    order = tuple(axis % x.rank for axis in axes)
    if order == tuple(range(x.rank)):
        return x
    return x.graph.make("permute", (x,), (order,), tuple(x.shape[axis] for axis in order), x.kind)


def expand(x: Array, shape: Sequence[int]) -> Array:
    """Axes of one element repeated, and new ones in front; −1 keeps a size."""
    lead = len(shape) - x.rank
    whole = tuple(x.shape[at - lead] if size == -1 else size for at, size in enumerate(shape))
    if whole == x.shape:
        return x
    for own, size in zip(x.shape, whole[lead:], strict=True):
        if own not in (1, size):
            raise ValueError(f"an array of shape {x.shape} cannot be expanded to {tuple(shape)}")
    return x.graph.make("expand", (x,), (whole,), whole, x.kind)


def cut(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    """x[…, start:stop:step, …] along an axis, with start and stop inside it and step ≥ 1."""
    axis %= x.rank
    count = max(0, -((start - stop) // step))
    if count == x.shape[axis] and start == 0 and step == 1:
        return x
    if x.op == "cat" and x.params[0] == axis and step == 1 and (part := _part_at(x, start, stop)) is not None:
        return part
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return x.graph.make("slice", (x,), (axis, start, step, count), shape, x.kind)


def _part_at(x: Array, start: int, stop: int) -> Array | None:
    """The part of a `cat` that lies from start to stop."""
    first = 0
    axis: int = x.params[0]
    for part in x.args:
        if first == start and first + part.shape[axis] == stop and part.kind == x.kind:
            return part
        first += part.shape[axis]
    return None


def place(x: Array, axis: int, start: int, step: int, size: int) -> Array:
    """Zeros of `size` along an axis, with x at start, start + step, …: the transpose of `cut`."""
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if shape == x.shape:
        return x
    return x.graph.make("place", (x,), (axis, start, step, size), shape, "real")


def flip(x: Array, axes: Iterable[int]) -> Array:
    """The other way round along axes."""
    order = tuple(sorted(axis % x.rank for axis in axes if x.shape[axis] != 1))
    return x.graph.make("flip", (x,), (order,), x.shape, x.kind) if order else x


def select(x: Array, axis: int, at: int) -> Array:
    """x[…, at, …]: one element along an axis, which is gone."""
    axis %= x.rank
    size = x.shape[axis]
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range for an axis of {size}")
    part = cut(x, axis, at % size, at % size + 1)
    return reshape(part, x.shape[:axis] + x.shape[axis + 1 :])


def index(x: Array, first: int, indices: Sequence[Array]) -> Array:
    """x[…, i, j, …]: axes from `first` on picked by constant whole numbers that are broadcast with each other."""
    graph = x.graph
    if not all(is_known(i) for i in indices):
        raise Unsupported("an index that depends on a latent")
    lead = broadcast([i.shape for i in indices])
    laid = tuple(expand(_counted(i, x.shape[first + n]), lead) for n, i in enumerate(indices))
    shape = (*x.shape[:first], *lead, *x.shape[first + len(indices) :])
    return graph.make("index", (x, *laid), (first,), shape, x.kind)


def _counted(i: Array, size: int) -> Array:
    """Whole numbers counted from the front; raises `IndexError` where one lies outside."""
    if i.size:
        low, high = i.graph.evaluate("bounds", [i.data], (size,), ())
        if low < -size or high >= size:
            raise IndexError(f"index {low if low < -size else high} is out of range for an axis of {size}")
        if low < 0:
            negative = pointwise("lt", i, i.graph.constant(0))
            return pointwise("where", negative, pointwise("add", i, i.graph.constant(size)), i)
    return i


def index_add(base: Array, x: Array, first: int, indices: Sequence[Array]) -> Array:
    """base with x added at […, i, j, …], as often as a place stands there."""
    laid = tuple(_counted(i, base.shape[first + n]) for n, i in enumerate(indices))
    lead = broadcast([i.shape for i in laid])
    laid = tuple(expand(i, lead) for i in laid)
    shape = (*base.shape[:first], *lead, *base.shape[first + len(indices) :])
    return base.graph.make("index_add", (base, expand(x, shape), *laid), (first,), base.shape, "real")


def take_along(x: Array, axis: int, i: Array) -> Array:
    """x at i[…] along an axis, at the own place along the others."""
    if not is_known(i):
        raise Unsupported("an index that depends on a latent")
    axis %= x.rank
    return x.graph.make("take_along", (x, _counted(i, x.shape[axis])), (axis,), i.shape, x.kind)


def add_along(base: Array, axis: int, i: Array, x: Array) -> Array:
    """base with x added at i[…] along an axis."""
    if not is_known(i):
        raise Unsupported("an index that depends on a latent")
    axis %= base.rank
    return base.graph.make("add_along", (base, x, _counted(i, base.shape[axis])), (axis,), base.shape, "real")


def cat(parts: Sequence[Array], axis: int) -> Array:
    """Arrays one behind the other along an axis."""
    axis %= parts[0].rank
    kinds = {part.kind for part in parts}
    kind: Kind = "real" if "real" in kinds else "whole" if "whole" in kinds else "truth"
    kept = [pointwise(kind, part) for part in parts if part.shape[axis] or part.rank > 1]
    if len(kept) == 1:
        return kept[0]
    length = sum(part.shape[axis] for part in kept)
    shape = (*kept[0].shape[:axis], length, *kept[0].shape[axis + 1 :])
    for part in kept:
        if part.shape[:axis] + part.shape[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            raise ValueError(f"shapes {kept[0].shape} and {part.shape} cannot be put together along axis {axis}")
    return kept[0].graph.make("cat", tuple(kept), (axis,), shape, kind)


def diagonal(x: Array) -> Array:
    """The main diagonal of the last two axes, which are of one size."""
    return x.graph.make("diagonal", (x,), (), (*x.shape[:-2], min(x.shape[-2:])), x.kind)


def diagonal_embed(x: Array) -> Array:
    """Matrices with x on the main diagonal, zeros elsewhere."""
    return x.graph.make("diagonal_embed", (x,), (), (*x.shape, x.shape[-1]), "real")


# ---------------------------------------------------------------- reductions and products


def axes_of(x: Array, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Axes counted from the front, ascending; all of them by default."""
    if axes is None or (not isinstance(axes, int) and len(axes) == 0):
        return tuple(range(x.rank))
    given = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted({axis % x.rank for axis in given})) if x.rank else ()


def reduce(op: str, x: Array, axes: int | Sequence[int] | None = None, *, keep: bool = False) -> Array:
    """A reduction of `REDUCTIONS` along axes; `keep` leaves them as ones."""
    over = axes_of(x, axes)
    if op in ("sum", "prod") and x.kind == "truth":
        x = pointwise("whole", x)
    shape = tuple(size for axis, size in enumerate(x.shape) if axis not in over)
    # a sum over ones is the same numbers
    alone = all(x.shape[axis] == 1 for axis in over)
    found = reshape(x, shape) if alone else x.graph.make(op, (x,), (over,), shape, x.kind)
    return reshape(found, [1 if axis in over else size for axis, size in enumerate(x.shape)]) if keep else found


def running(op: str, x: Array, axis: int) -> Array:
    """`cumsum` or `cumprod` along an axis."""
    return x.graph.make(op, (x,), (axis % x.rank,), x.shape, x.kind)


def log_softmax(x: Array, axis: int) -> Array:
    """x less its logsumexp along an axis."""
    return x.graph.make("log_softmax", (x,), (axis % max(x.rank, 1),), x.shape, "real")


def matmul(left: Array, right: Array) -> Array:
    """Matrix products (…, n, k) @ (…, k, m) with axes in front broadcast; vectors as in numpy."""
    if left.rank == 1 and right.rank == 1:
        return reduce("sum", pointwise("mul", left, right), 0)
    if left.rank == 1:
        return reshape_last(matmul(reshape(left, (1, *left.shape)), right), -2)
    if right.rank == 1:
        return reshape_last(matmul(left, reshape(right, (*right.shape, 1))), -1)
    lead, shape = contracted(left.shape, right.shape)
    left, right = expand(left, (*lead, *left.shape[-2:])), expand(right, (*lead, *right.shape[-2:]))
    return left.graph.make("matmul", (left, right), (), shape, "real")


def reshape_last(x: Array, axis: int) -> Array:
    """Without an axis of one element."""
    axis %= x.rank
    return reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


def transposed(x: Array) -> Array:
    """The last two axes exchanged."""
    return permute(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def triangle(x: Array, *, upper: bool = False, strict: bool = False) -> Array:
    """The lower or upper triangle of the last two axes, zeros elsewhere; `strict` without the diagonal."""
    graph = x.graph
    rows, columns = (graph.constant(range(size)) for size in x.shape[-2:])
    name = {(False, False): "ge", (False, True): "gt", (True, False): "le", (True, True): "lt"}[upper, strict]
    there = pointwise(name, reshape(rows, (x.shape[-2], 1)), columns)
    return pointwise("where", there, x, graph.constant(0.0))


# ---------------------------------------------------------------- matrices


def cholesky(x: Array) -> tuple[Array, Array]:
    """The lower factor of (…, n, n), and 0 or which minor is not positive, (…)."""
    factor = x.graph.make("cholesky", (x,), (), x.shape, "real")
    return factor, x.graph.make("cholesky_failed", (x,), (), x.shape[:-2], "real")


def cholesky_pulled(factor: Array, d: Array) -> Array:
    """The derivative (…, n, n) by a symmetric matrix, from that by its lower factor."""
    return factor.graph.make("cholesky_pulled", (factor, d), (), factor.shape, "real")


def solve_triangular(factor: Array, right: Array, *, upper: bool, left: bool = True, unit: bool = False) -> Array:
    """X of A X = B, or of X A = B, with A triangular; axes in front are broadcast."""
    lead = broadcast([factor.shape[:-2], right.shape[:-2]])
    factor, right = expand(factor, (*lead, *factor.shape[-2:])), expand(right, (*lead, *right.shape[-2:]))
    return factor.graph.make("solve_triangular", (factor, right), (upper, left, unit), right.shape, "real")


def inverse(x: Array) -> tuple[Array, Array]:
    """The inverse of (…, n, n), NaN or infinite where there is none, and whether it failed: never told apart here."""
    size = x.shape[-1]
    identity = x.graph.constant([[float(row == column) for column in range(size)] for row in range(size)])
    return x.graph.make("inverse", (x, identity), (), x.shape, "real"), zeros(x.graph, x.shape[:-2])


def determinant(x: Array) -> Array:
    """That of (…, n, n)."""
    return x.graph.make("det", (x,), (), x.shape[:-2], "real")


def log_determinant(x: Array) -> Array:
    """log |det| of (…, n, n)."""
    return x.graph.make("slogdet", (x,), (), x.shape[:-2], "real")
