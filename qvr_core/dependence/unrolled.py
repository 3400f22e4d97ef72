"""Chains element by element: the acyclic graph that questions are asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.dependence.algorithms import cycle
from qvr_core.dependence.graph import FIRST, LATER, NoAnswer

if TYPE_CHECKING:
    import networkx as nx

    from qvr_core.dependence.graph import Graph

Node = tuple[str, int]
"""A name, and which of its two elements: always 0 where the name reads no earlier elements of its own."""


def unrolled(graph: Graph) -> nx.DiGraph[Node]:
    """The graph with two steps of every name that reads earlier elements of itself, directly or through others: all
    that a chain can say of names as wholes shows in two.  Its nodes have the `kind` of their name.  Raises
    `NoAnswer` where an element depends on itself."""
    import networkx as nx

    circle: dict[str, int] = {}
    for number, part in enumerate(nx.strongly_connected_components(graph)):
        if graph.subgraph(part).size():
            circle |= dict.fromkeys(part, number)
    found: nx.DiGraph[Node] = nx.DiGraph()
    for name, kind in graph.nodes(data="kind"):
        found.add_nodes_from((node for node in copies(name, name in circle)), kind=kind)
    chosen: list[tuple[Node, Node]] = []
    for source, target, reading in graph.edges(data=True):
        if source in circle and circle.get(target) == circle[source]:
            steps = [(int(lag < 0), int(lag > 0)) for lag in reading["lags"] if lag]
            same = [(step, step) for step in _steps(reading["elements"])] if 0 in reading["lags"] else []
            if reading["gathered"]:
                steps.append((0, 1))
                chosen += [((source, one), (target, other)) for one, other in same]
                same = []
            found.add_edges_from(((source, one), (target, other)) for one, other in (*steps, *same))
        else:
            after = [(target, step) for step in _steps(reading["elements"])] if target in circle else [(target, 0)]
            found.add_edges_from((one, other) for one in copies(source, source in circle) for other in after)
    # what an expression chooses may be the same element, unless that one depends on the reader
    found.add_edges_from([edge for edge in chosen if not nx.has_path(found, edge[1], edge[0])])
    _break(found)
    if not nx.is_directed_acyclic_graph(found):
        turn = cycle(found)
        names = dict.fromkeys(name for edge in turn for name, _ in edge[:2])
        raise NoAnswer(f"{' and '.join(f'`{name}`' for name in names)} depend on each other at the same element")
    return found


def copies(name: str, twice: bool) -> tuple[Node, ...]:
    return ((name, 0), (name, 1)) if twice else ((name, 0),)


def _steps(elements: str) -> tuple[int, ...]:
    return {FIRST: (0,), LATER: (1,)}.get(elements, (0, 1))


def _break(graph: nx.DiGraph[Node]) -> None:
    """A step above an `observe` may read all of what is observed there, as the constant that it is."""
    import networkx as nx

    for part in [part for part in nx.strongly_connected_components(graph) if len(part) > 1]:
        inside = [node for node in part if graph.nodes[node]["kind"] == "observed"]
        graph.remove_edges_from([edge for edge in graph.out_edges(inside) if edge[1] in part])
