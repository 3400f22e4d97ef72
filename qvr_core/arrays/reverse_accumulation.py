"""Reverse accumulation: derivatives are carried back through nodes, by a rule for each operation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import CASTS, POINTWISE, Array, Unsupported
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.shapes import Shape
from qvr_core.operations.table import nodes_that_are

Rule = Callable[[Array, Array], Sequence[Array | None]]
"""From a node and the derivative with respect to it to those of its arguments; None is zero."""
RULES: dict[str, Rule] = {}
FLAT = nodes_that_are("flat") | frozenset(CASTS)
"""Constant between their jumps."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operations of these names."""

    def register(found: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, found))
        return found

    return register


def carry_back(slopes: dict[int, Array], nodes: Iterable[Array], depends: Collection[int]) -> None:
    """Carry the derivatives of nodes, last one first, to those of their arguments that are in `depends`."""
    for node in nodes:
        slope = slopes.get(node.number)
        if slope is None or node.op in FLAT:
            continue
        derived = RULES.get(node.op)
        if derived is None:
            if not node.args:
                continue
            raise Unsupported(f"the derivative of {node.op}")
        for arg, part in zip(node.args, derived(node, slope), strict=True):
            if part is None or arg.number not in depends:
                continue
            part = unbroadcast(part, arg.shape) if node.op in POINTWISE else part
            add_slope(slopes, arg, part)


def add_slope(slopes: dict[int, Array], node: Array, part: Array) -> None:
    """One more term of the derivative with respect to a node."""
    own = slopes.get(node.number)
    slopes[node.number] = part if own is None else p("add", own, part)


def unbroadcast(x: Array, shape: Shape) -> Array:
    """Summed over the axes along which an array of `shape` was repeated."""
    if x.shape == shape:
        return x
    lead = x.rank - len(shape)
    over = [*range(lead), *(lead + at for at, size in enumerate(shape) if size == 1 and x.shape[lead + at] != 1)]
    return g.reshape(g.reduce("sum", x, over), shape)
