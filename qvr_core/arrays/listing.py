"""The closed list of functions and methods that arrays have, under torch's names and with torch's arguments.

What is not on it is an error when it is called.  The first argument of each is the array that a method belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.arrays.graph import Array, Graph, Unsupported

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}
"""By name, without the underscores around names of operators."""


def listed(*names: str) -> Callable[[Function], Function]:
    """Put a function on the list."""

    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names or (function.__name__.strip("_"),), function))
        return function

    return register


def graph_of(*values: Any) -> Graph:
    """The graph that is recorded where one of the values belongs to it, else that of numbers alone."""
    graphs = [value.graph for value in values if isinstance(value, Array)]
    for graph in graphs:
        if graph.kept:
            return graph
    if not graphs:
        raise Unsupported("an operation on numbers alone")
    return graphs[0]


def arrays(*values: Any) -> list[Array]:
    """Values as arrays of one graph."""
    graph = graph_of(*values)
    return [in_graph(value, graph) for value in values]


def in_graph(value: Any, graph: Graph) -> Array:
    """A value as an array of this graph."""
    return value if isinstance(value, Array) and value.graph is graph else graph.constant(value)
