"""A log density as a graph: the program is run once on arrays that write down what is done to them."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

from numpy.typing import NDArray

from qvr_core.arrays.derivatives import gradient
from qvr_core.arrays.engine import new_graph
from qvr_core.arrays.evaluate import evaluated
from qvr_core.arrays.graph import Array, Unsupported, recording_into
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


class Executed(Protocol):
    """A density whose terms are those of an execution's sites."""

    width: int

    def run(self, q: Any) -> tuple[Any, Any]:
        """An execution at the position (1, width), and its log density."""
        ...


def site_slopes(potential: Executed, position: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The gradient (width,) at a position of each site's own log density, that of its bijector included; of those that
    can be traced."""
    graph = new_graph()
    q = graph.position(potential.width)
    slopes: dict[str, NDArray[Any]] = {}
    with recording_into(graph), contextlib.suppress(Unsupported, ValueError, IndexError, TypeError, RuntimeError):
        run, _ = potential.run(reshape(q, (1, potential.width)))
        for name, site in run.sites.items():
            terms = [one for one in (site.log_prob, site.log_jacobian) if isinstance(one, Array) and not one.constant]
            for term in terms:
                slope = evaluated(gradient(reduce("sum", term), q), position)
                slopes[name] = slopes.get(name, 0.0) + slope
    return slopes


def work_of(value: Array) -> int:
    """Numbers that one evaluation makes, those of matrix products counted as often as they are added up."""
    return sum(node.size * (node.args[0].shape[-1] if node.op == "matmul" else 1) for node in value.graph.nodes)
