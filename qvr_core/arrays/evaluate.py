"""The operations of a graph on numpy arrays: constants that are folded, and a whole graph at a position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays import special
from qvr_core.arrays.graph import Array, Kind
from qvr_core.arrays.recurrences import Body
from qvr_core.arrays.shapes import Shape
from qvr_core.arrays.while_loops import Turn
from qvr_core.operations.table import NODES

Numbers = NDArray[Any]
DTYPES: dict[Kind, Any] = {"real": np.float64, "whole": np.int64, "truth": np.bool_}


def read(value: Any) -> tuple[Numbers, Shape, Kind]:
    """Numbers, ranges, and what numpy reads, as numpy arrays of the three kinds."""
    data = np.asarray(value)
    kind: Kind = "truth" if data.dtype.kind == "b" else "whole" if data.dtype.kind in "iu" else "real"
    return np.asarray(data, DTYPES[kind]), data.shape, kind


def evaluated(value: Array, position: Numbers) -> Numbers:
    """The numbers of a node at a position."""
    return evaluation(value)(position)


def evaluation(value: Array) -> Callable[[Numbers], Numbers]:
    """The numbers of a node by position, for many positions."""
    needed: set[int] = set()
    left = [value]
    while left:
        node = left.pop()
        if node.number not in needed:
            needed.add(node.number)
            left.extend(node.args)
    slots = {number: slot for slot, number in enumerate(sorted(needed))}
    first: list[Any] = [None] * len(slots)
    places: list[int] = []
    work: list[tuple[int, Callable[..., Numbers] | None, list[int], Array]] = []
    for number, slot in slots.items():
        node = value.graph.nodes[number]
        if node.op == "constant":
            first[slot] = node.data
        elif node.op == "position":
            places.append(slot)
        else:
            work.append((slot, _direct(node), [slots[arg.number] for arg in node.args], node))

    def at(position: Numbers) -> Numbers:
        found = [*first]
        for slot in places:
            found[slot] = position
        with np.errstate(all="ignore"):
            for slot, function, args, node in work:
                if function is None:
                    found[slot] = _OPERATIONS[node.op]([found[arg] for arg in args], node.params, node.shape)
                elif len(args) == 2:
                    found[slot] = function(found[args[0]], found[args[1]])
                else:
                    found[slot] = function(*[found[arg] for arg in args])
        return found[-1]

    return at


def _direct(node: Array) -> Callable[..., Numbers] | None:
    """The function of numpy that a node is, where nothing has to be seen to before it is called."""
    if node.op in _SUMS:
        return None if any(arg.kind == "truth" for arg in node.args) else _SUMS[node.op]
    return _FUNCTIONS.get(node.op)


def evaluate(op: str, args: Sequence[Any], params: tuple[Any, ...], shape: Shape) -> Any:
    """One operation on numpy arrays; infinite and undefined results are no error."""
    with np.errstate(all="ignore"):
        return _OPERATIONS[op](args, params, shape)


def _pow(x: Numbers, y: Numbers) -> Numbers:
    return np.power(x.astype(np.float64) if y.dtype.kind == "i" and x.dtype.kind == "i" else x, y)


Evaluated = Callable[[Sequence[Any], tuple[Any, ...], Shape], Any]


def _function(name: str) -> Callable[..., Numbers]:
    """A function of `special`, or of numpy, by the name that a record gives."""
    own = name.removeprefix("special.")
    return getattr(np if own == name else special, own)


def _pointwise(function: Callable[..., Numbers]) -> Evaluated:
    return lambda args, params, shape: function(*args)


_FUNCTIONS = {name: _function(node.numpy) for name, node in NODES.items() if node.numpy}
_SUMS: dict[str, Callable[..., Numbers]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def _number(x: Numbers) -> Numbers:
    return x.astype(np.int64) if x.dtype.kind == "b" else x


FEW = 8
"""Up to so many numbers are added one after the other, so that sums of slices are the same to the last bit."""


def _reduced(step: Callable[[Numbers, Numbers], Numbers], x: Numbers, axis: int) -> Numbers:
    """A sum, a maximum over an axis, which keeps one element: by whole slices where there are few, since numpy goes
    over each handful of neighbouring numbers for itself: 5 to 10 times slower for three states."""
    before = (slice(None),) * (axis % x.ndim)
    return reduce(step, (x[(*before, slice(at, at + 1))] for at in range(x.shape[axis])))


def _largest(x: Numbers, over: tuple[int, ...]) -> Numbers:
    few = len(over) == 1 and 0 < x.shape[over[0]] < FEW
    return _reduced(np.maximum, x, over[0]) if few else x.max(axis=over, keepdims=True)


def _total(x: Numbers, over: tuple[int, ...]) -> Numbers:
    few = len(over) == 1 and 0 < x.shape[over[0]] < FEW and x.dtype.kind != "b"
    return _reduced(np.add, x, over[0]) if few else x.sum(axis=over, keepdims=True)


def _logsumexp(x: Numbers, over: tuple[int, ...]) -> Numbers:
    largest = _largest(x, over)
    largest = np.where(np.isinf(largest), 0.0, largest)
    found = np.log(_total(np.exp(x - largest), over)) + largest
    return found.reshape([size for axis, size in enumerate(x.shape) if axis not in over])


def _chosen(test: Numbers, one: Numbers, other: Numbers) -> Numbers:
    return np.where(test, one, other)


def _running_product(x: Numbers, axis: int) -> Numbers:
    return np.cumprod(x, axis)


def _log_softmax(x: Numbers, axis: int) -> Numbers:
    if x.ndim == 0:
        return x - x
    shifted = x - _largest(x, (axis,))
    return shifted - np.log(_total(np.exp(shifted), (axis,)))


def _place(x: Numbers, axis: int, start: int, step: int, size: int) -> Numbers:
    found = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]))
    found[(*[slice(None)] * axis, slice(start, start + (x.shape[axis] - 1) * step + 1, step))] = x
    return found


def _index_add(args: Sequence[Numbers], first: int) -> Numbers:
    base, x, *indices = args
    found = base.copy()
    where: Any = (*[slice(None)] * first, *indices)
    np.add.at(found, where, x)
    return found


def _add_along(base: Numbers, x: Numbers, i: Numbers, axis: int) -> Numbers:
    found = base.copy()
    places: list[Any] = list(np.indices(i.shape))
    places[axis] = i
    np.add.at(found, tuple(places), x[tuple(slice(0, size) for size in i.shape)])
    return found


def _matrices(x: Numbers, function: Callable[[Numbers], Numbers], shape: Shape) -> Numbers:
    flat = x.reshape(-1, *x.shape[-2:])
    return np.array([function(each) for each in flat], dtype=np.float64).reshape(shape)


def _cholesky(x: Numbers) -> Numbers:
    lower = np.tril(x)
    try:
        return np.linalg.cholesky(lower + np.tril(x, -1).T)
    except np.linalg.LinAlgError:
        return np.full(x.shape, np.nan)


def _cholesky_pulled(factor: Numbers, d: Numbers) -> Numbers:
    """L⁻ᵀ S L⁻¹, S half of the lower triangle of Lᵀ d and of its mirror image (Murray 2016, Differentiation of the
    Cholesky decomposition, equation 10)."""
    inner = np.tril(factor.swapaxes(-1, -2) @ np.tril(d))
    half = 0.5 * (inner + np.tril(inner, -1).swapaxes(-1, -2))
    left = _solve((factor.swapaxes(-1, -2), half), (True, True, False))
    return _solve((factor, left), (False, False, False))


def _failed(x: Numbers) -> Numbers:
    return np.array(0.0 if np.isfinite(_cholesky(x)).all() else 1.0)


def _solve(args: Sequence[Numbers], params: tuple[Any, ...]) -> Numbers:
    factor, right = args
    upper, left, unit = params
    factor = np.triu(factor) if upper else np.tril(factor)
    if unit:
        size = factor.shape[-1]
        factor = factor * (1.0 - np.eye(size)) + np.eye(size)
    if left:
        return np.linalg.solve(factor, right)
    return np.swapaxes(np.linalg.solve(np.swapaxes(factor, -1, -2), np.swapaxes(right, -1, -2)), -1, -2)


def _inverse(x: Numbers) -> Numbers:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        # of a stack only those that have none
        return np.stack([_inverse(each) for each in x]) if x.ndim > 2 else np.full(x.shape, np.nan)


def _loop(args: Sequence[Numbers], body: Body) -> Numbers:
    given = iter(args)
    series = [[next(given) for _ in state.back] for state in body.states]
    rows = [(item.number, next(given)) for item in body.items]
    outside = {each.number: next(given) for each in body.captured}
    emitted: list[list[Numbers]] = [[] for _ in range(body.count)]
    sums: list[Numbers] = [np.zeros(each.shape) for each in body.summed]
    for turn in reversed(range(body.count)) if body.reverse else range(body.count):
        found = {number: own[turn] for number, own in rows} | outside
        for state, made in zip(body.states, series, strict=True):
            found.update((one.number, made[-at]) for at, one in enumerate(state.back, 1))
        for node in body.nodes:
            found[node.number] = evaluate(node.op, [found[arg.number] for arg in node.args], node.params, node.shape)
        for state, made in zip(body.states, series, strict=True):
            made.append(found[state.made.number])
        emitted[turn] = [found[each.number] for each in (*body.emitted, *body.kept)]
        sums = [total + found[each.number] for total, each in zip(sums, body.summed, strict=True)]
    columns = [one for at in range(len(emitted[0])) for one in (row[at] for row in emitted)]
    whole = [*(one for made in series for one in made), *columns, *sums]
    return np.concatenate([np.asarray(one, np.float64).reshape(-1) for one in whole])


def _until(args: Sequence[Numbers], turn: Turn) -> Numbers:
    given = iter(args)
    states = {read.number: np.asarray(next(given), np.float64) for read, _ in turn.states}
    series = [(item.number, next(given)) for item in turn.items]
    outside = {each.number: next(given) for each in turn.captured}
    made = [np.full(shape, np.nan) for shape in turn.shapes]
    rows = np.arange(turn.place.shape[0])
    for _ in range(turn.most):
        at = states[turn.place.number].astype(np.int64)
        found = states | outside | {number: own[rows, at] for number, own in series}
        for node in turn.nodes:
            found[node.number] = evaluate(node.op, [found[arg.number] for arg in node.args], node.params, node.shape)
        for whole, each in zip(made, turn.put, strict=True):
            whole[rows, at] = found[each.number]
        states = {read.number: found[new.number] for read, new in turn.states}
        if not found[turn.going.number] > 0.0:
            break
    return np.concatenate([one.reshape(-1) for one in made])


def _known(data: Numbers) -> float | None:
    if data.size == 0:
        return None
    first = data.flat[0]
    return float(first) if bool((data == first).all()) else None


def _unrepeated(x: Numbers) -> Shape:
    """The shape without the axes along which a view repeats itself."""
    return tuple(1 if step == 0 else n for n, step in zip(x.shape, x.strides, strict=True))


def _slice(x: Numbers, params: tuple[Any, ...]) -> Numbers:
    axis, start, step, count = params
    return x[(*[slice(None)] * axis, slice(start, start + (count - 1) * step + 1 if count else start, step))]


_OPERATIONS: dict[str, Evaluated] = {
    **{name: _pointwise(function) for name, function in _FUNCTIONS.items()},
    "real": lambda a, p, s: a[0].astype(np.float64),
    "whole": lambda a, p, s: a[0].astype(np.int64),
    "truth": lambda a, p, s: a[0] != 0,
    "add": lambda a, p, s: np.add(*map(_number, a)),
    "sub": lambda a, p, s: np.subtract(*map(_number, a)),
    "mul": lambda a, p, s: np.multiply(*map(_number, a)),
    "pow": lambda a, p, s: _pow(*a),
    "where": lambda a, p, s: _chosen(*a),
    "reshape": lambda a, p, s: a[0].reshape(s),
    "permute": lambda a, p, s: a[0].transpose(p[0]),
    "expand": lambda a, p, s: np.broadcast_to(a[0], s),
    "slice": lambda a, p, s: _slice(a[0], p),
    "place": lambda a, p, s: _place(a[0], *p),
    "flip": lambda a, p, s: np.flip(a[0], p[0]),
    "index": lambda a, p, s: a[0][(*[slice(None)] * p[0], *a[1:])],
    "index_add": lambda a, p, s: _index_add(a, p[0]),
    "take_along": lambda a, p, s: np.take_along_axis(
        a[0][tuple(slice(0, n if at != p[0] else None) for at, n in enumerate(s))], a[1], p[0]
    ),
    "add_along": lambda a, p, s: _add_along(*a, *p),
    # of parts whose numbers stand in another order, numpy would keep that order, and each reader of rows make a copy
    "cat": lambda a, p, s: np.concatenate([np.ascontiguousarray(one) for one in a], p[0]),
    "diagonal": lambda a, p, s: np.diagonal(a[0], axis1=-2, axis2=-1),
    "diagonal_embed": lambda a, p, s: a[0][..., None] * np.eye(a[0].shape[-1]),
    "sum": lambda a, p, s: _total(a[0], p[0]).reshape(s),
    "prod": lambda a, p, s: a[0].prod(axis=p[0]),
    "amax": lambda a, p, s: _largest(a[0], p[0]).reshape(s),
    "amin": lambda a, p, s: a[0].min(axis=p[0]),
    "logsumexp": lambda a, p, s: _logsumexp(a[0], p[0]),
    "log_softmax": lambda a, p, s: _log_softmax(a[0], *p),
    "cumsum": lambda a, p, s: np.cumsum(a[0], p[0]),
    "cumprod": lambda a, p, s: _running_product(*a, *p),
    "matmul": lambda a, p, s: a[0] @ a[1],
    "cholesky": lambda a, p, s: _matrices(a[0], _cholesky, s),
    "cholesky_pulled": lambda a, p, s: _cholesky_pulled(*a),
    "cholesky_failed": lambda a, p, s: _matrices(a[0], _failed, s),
    "solve_triangular": lambda a, p, s: _solve(a, p),
    "inverse": lambda a, p, s: _inverse(a[0]),
    "det": lambda a, p, s: np.linalg.det(a[0]),
    "slogdet": lambda a, p, s: np.linalg.slogdet(a[0])[1],
    "loop": lambda a, p, s: _loop(a, p[0]),
    "until": lambda a, p, s: _until(a, p[0]),
    "tied": lambda a, p, s: a[0],
    "known": lambda a, p, s: _known(a[0]),
    "unrepeated": lambda a, p, s: _unrepeated(a[0]),
    "listed": lambda a, p, s: a[0][tuple(slice(0, n) for n in p)].reshape(-1).tolist(),
    "bounds": lambda a, p, s: (int(a[0].min()), int(a[0].max())),
}  # fmt: skip
