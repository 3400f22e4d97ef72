"""A log density as a graph: the program is run once on arrays that write down what is done to them."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from qvr_core.arrays.derivatives import gradient
from qvr_core.arrays.engine import new_graph
from qvr_core.arrays.graph import Array, recording_into
from qvr_core.arrays.listing import FUNCTIONS
from qvr_core.arrays.operations import reduce, reshape


class Traceable(Protocol):
    """A log density of flat positions."""

    width: int

    def log_density_of(self, q: Array) -> Array:
        """Of the position (1, width) of one chain."""
        ...

    def log_densities(self, q: NDArray[Any]) -> NDArray[Any]:
        """Of positions (N, width), (N,), step by step on the arrays of this process; raises where it has none."""
        ...


def density_graph(potential: Traceable) -> tuple[Array, Array]:
    """The log density, a single number, and its gradient (width,).  Raises `Unsupported`."""
    graph = new_graph()
    q = graph.position(potential.width)
    with recording_into(graph):
        value = FUNCTIONS["double"](potential.log_density_of(reshape(q, (1, potential.width))))
        value = reduce("sum", value)
        return value, gradient(value, q)


def work_of(value: Array) -> int:
    """Numbers that one evaluation makes, those of matrix products counted as often as they are added up."""
    return sum(node.size * (node.args[0].shape[-1] if node.op == "matmul" else 1) for node in value.graph.nodes)
