"""Numbers picked, and put, by indices."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Graph, Unsupported, is_known
from qvr_core.arrays.listing import arrays, graph_of, in_graph, listed
from qvr_core.arrays.numbers import where
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.shapes import broadcast
from qvr_core.arrays.views import unsqueeze


@listed("getitem")
def getitem(x: Any, key: Any) -> Array:
    """x[key]: whole numbers, slices, None, an ellipsis, constant indices and masks."""
    keys: list[Any] = [*key] if isinstance(key, tuple) else [key]
    graph = graph_of(x, *keys)
    x = in_graph(x, graph)
    keys = [_index(k, graph) for k in keys]
    given = sum(1 if not isinstance(k, _Mask) else k.rank for k in keys if k is not None and k is not Ellipsis)
    if Ellipsis in [k for k in keys if k is None or k is Ellipsis]:
        at = next(n for n, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (x.rank - given)
    else:
        keys += [slice(None)] * (x.rank - given)
    axis = 0
    picked: list[tuple[int, Array]] = []
    for k in keys:
        if k is None:
            x = unsqueeze(x, axis)
            axis += 1
        elif isinstance(k, slice):
            start, stop, step = k.indices(x.shape[axis])
            x = g.cut(x, axis, start, builtins.max(stop, start), step)
            axis += 1
        elif isinstance(k, int):
            if picked and picked[-1][0] == axis - 1:
                picked.append((axis, graph.constant(k)))
                axis += 1
            else:
                x = g.select(x, axis, k)
        elif isinstance(k, _Mask):
            for index in k.places:
                picked.append((axis, index))
                axis += 1
        else:
            picked.append((axis, k))
            axis += 1
    if not picked:
        return x
    axes = [at for at, _ in picked]
    if any(right - left != 1 for left, right in pairwise(axes)):
        # numpy puts what indices with gaps give in front
        order = [*axes, *(at for at in range(x.rank) if at not in axes)]
        x = g.permute(x, order)
        return g.index(x, 0, [index for _, index in picked])
    return g.index(x, axes[0], [index for _, index in picked])


class _Mask:
    """The places where a constant mask holds, an index for each of its axes."""

    def __init__(self, mask: Array) -> None:
        self.rank = mask.rank
        places: Iterable[Any] = mask.data.nonzero()
        self.places = [mask.graph.constant(place) for place in places]


def _index(key: Any, graph: Graph) -> Any:
    kept: Any = key
    if key is None or key is Ellipsis or isinstance(key, slice):
        return kept
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    array = in_graph(key, graph)
    if is_known(array) and array.kind == "whole" and not array.constant:
        return array
    if not array.constant:
        raise Unsupported("an index that depends on a latent")
    if array.kind == "truth":
        return _Mask(array)
    return int(array.data) if array.rank == 0 else array


@listed("index_select")
def index_select(x: Any, dim: int, index: Any) -> Array:
    """The elements at an index along an axis."""
    x, own = arrays(x, index)
    return g.index(x, dim % x.rank, [own])


@listed("gather")
def gather(x: Any, dim: int, index: Any) -> Array:
    """x[…] at index[…] along an axis."""
    x, own = arrays(x, index)
    return g.take_along(x, dim, own)


@listed("take_along_dim")
def take_along_dim(x: Any, index: Any, dim: int) -> Array:
    """As `gather`, the other axes broadcast."""
    base, own = arrays(x, index)
    at = dim % base.rank
    lead = broadcast([(*shape[:at], 1, *shape[at + 1 :]) for shape in (base.shape, own.shape)])
    base = g.expand(base, (*lead[:at], base.shape[at], *lead[at + 1 :]))
    return g.take_along(base, at, g.expand(own, (*lead[:at], own.shape[at], *lead[at + 1 :])))


@listed("scatter_add")
def scatter_add(base: Any, dim: int, index: Any, source: Any) -> Array:
    """base with source added at index[…] along an axis."""
    base, own, source = arrays(base, index, source)
    return g.add_along(p("real", base), dim, own, p("real", source))


@listed("index_add")
def index_add(base: Any, dim: int, index: Any, source: Any) -> Array:
    """base with the elements of source added at an index along an axis."""
    base, own, source = arrays(base, index, source)
    return g.index_add(p("real", base), p("real", source), dim % base.rank, [own])


@listed("index_copy")
def index_copy(base: Any, dim: int, index: Any, source: Any) -> Array:
    """base with the elements of source put at an index along an axis."""
    base, own, source = arrays(base, index, source)
    return _put(base, dim % base.rank, [own], source)


@listed("index_put")
def index_put(base: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Array:
    """base with values put, or added, at indices of its leading axes."""
    graph = graph_of(base, values, *indices)
    base, values = in_graph(base, graph), p("real", in_graph(values, graph))
    kept = [index for index in indices if index is not None]
    first = next(n for n, index in enumerate(indices) if index is not None)
    own = [in_graph(index, graph) for index in kept]
    if len(own) == 1 and own[0].kind == "truth":
        own = _Mask(own[0]).places
    if accumulate:
        return g.index_add(p("real", base), values, first, own)
    return _put(base, first, own, values)


def _put(base: Array, first: int, indices: Sequence[Array], values: Array) -> Array:
    graph = base.graph
    rest = base.shape[first + len(indices) :]
    lead = broadcast([index.shape for index in indices])
    ones = graph.constant(1.0)
    there = g.index_add(g.zeros(graph, base.shape), ones, first, indices)
    if graph.evaluate("bounds", [there.data], (), ())[1] > 1.0:
        raise Unsupported("an index that puts twice into one place")
    cleared = where(p("gt", there, graph.constant(0.0)), graph.constant(0.0), p("real", base))
    return g.index_add(cleared, g.expand(values, (*base.shape[:first], *lead, *rest)), first, indices)
