"""A recorded graph whose operations are called as torch's own functions.

An overload of `torch.ops` looks for its schema at each call; `torch.mul` and its like are bound for Python: 0.9 µs
against 1.4 for a few numbers.  The gradient of a vector that was cut is padded with zeros and added up, piece by piece:
it is laid together at once instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.node import map_arg

_SAME_NAME = frozenset((
    "abs", "add", "addmm", "bmm", "cat", "clamp", "cumsum", "digamma", "div", "dot", "eq", "erf", "exp", "expand",
    "expm1", "ge", "gather", "gt", "index_select", "le", "lgamma", "log", "log1p", "logsumexp", "lt", "maximum",
    "mean", "minimum", "mm", "mul", "mv", "ne", "neg", "permute", "pow", "reciprocal", "rsub", "select",
    "sigmoid", "sign", "sqrt", "square", "squeeze", "sub", "sum", "t", "tanh", "transpose", "unsqueeze", "view",
    "where",
))  # fmt: skip
"""Operations whose arguments stand in the same order in `torch` or in `torch.Tensor`."""


def call_directly(module: fx.GraphModule, values: dict[fx.Node, Any]) -> None:
    """Exchange calls that give the very same tensor; `values` are what the nodes gave at some position."""
    _lay_together(module.graph, values)
    for node in module.graph.nodes:
        if node.op == "call_function" and isinstance(values.get(node), Tensor):
            _exchange(node, values)
    module.graph.eliminate_dead_code()
    module.recompile()
    for node in module.graph.find_nodes(op="get_attr"):
        # a module's own way to its tensors costs as much as an operation
        vars(module)[node.target] = values[node]


def _exchange(node: fx.Node, values: dict[fx.Node, Any]) -> None:
    name = str(getattr(node.target, "__name__", node.target)).split(".")[0]
    if name == "pow" and node.args[1] == 2 and _gives(torch.square, node.args[:1], {}, values, values[node]):
        node.target, node.args = torch.square, node.args[:1]
        return
    if name == "slice" and len(node.args) == 4 and isinstance(node.args[2], int) and node.args[2] >= 0:
        source, dim, start, _ = node.args
        args = (source, dim, start, values[node].shape[dim])  # pyright: ignore[reportArgumentType]
        if _gives(torch.narrow, args, {}, values, values[node]):
            node.target, node.args = torch.narrow, args
        return
    if name not in _SAME_NAME:
        return
    for target in (getattr(torch, name, None), getattr(Tensor, name, None)):
        if target is not None and _gives(target, node.args, node.kwargs, values, values[node]):
            node.target = target
            return


def _gives(target: Callable[..., Any], args: Any, kwargs: Any, values: dict[fx.Node, Any], wanted: Tensor) -> bool:
    """True where a call gives the wanted tensor, number by number."""
    try:
        with torch.no_grad():
            found = target(*map_arg(args, values.__getitem__), **map_arg(kwargs, values.__getitem__))
    except (KeyError, TypeError, RuntimeError, IndexError):
        return False
    same = isinstance(found, Tensor) and found.dtype == wanted.dtype and found.shape == wanted.shape
    return same and found.stride() == wanted.stride() and torch.equal(found.nan_to_num(), wanted.nan_to_num())


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A sum of padded pieces along one axis: (start, stop, what stands there)."""

    shape: tuple[int, ...]
    axis: int
    parts: tuple[tuple[int, int, fx.Node], ...]

    def plus(self, other: _Pieces) -> _Pieces | None:
        """The sum, where no two pieces overlap."""
        parts = tuple(sorted((*self.parts, *other.parts), key=lambda part: part[:2]))
        apart = all(left[1] <= right[0] for left, right in pairwise(parts))
        same = self.shape == other.shape and self.axis == other.axis
        return _Pieces(self.shape, self.axis, parts) if apart and same else None

    def whole(self) -> bool:
        """True where the pieces leave no gap."""
        stops = [0, *(stop for _, stop, _ in self.parts)]
        return stops[-1] == self.shape[self.axis] and all(
            start == stop for (start, _, _), stop in zip(self.parts, stops, strict=False)
        )


def _lay_together(graph: fx.Graph, values: dict[fx.Node, Any]) -> None:
    pieces: dict[fx.Node, _Pieces] = {}
    for node in list(graph.nodes):
        found: _Pieces | None = None
        if node.target is torch.ops.aten.slice_backward.default:
            source, shape, axis, start, stop, step = node.args
            if step == 1 and start >= 0:
                found = _Pieces(tuple(shape), axis % len(shape), ((start, min(stop, shape[axis]), source),))
        elif node.target is torch.ops.aten.add.Tensor and not node.kwargs:
            left, right = (pieces.get(argument) for argument in node.args)
            found = left.plus(right) if left is not None and right is not None else None
        if found is None:
            continue
        pieces[node] = found
        if len(found.parts) > 1 and found.whole():
            with graph.inserting_before(node):
                joined = graph.call_function(torch.cat, ([source for _, _, source in found.parts], found.axis))
            values[joined] = values[node]
            node.replace_all_uses_with(joined)
