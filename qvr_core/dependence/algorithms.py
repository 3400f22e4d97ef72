"""networkx's algorithms on directed graphs, with the types that its stubs leave open."""

from __future__ import annotations

from collections.abc import Hashable
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import networkx as nx

N = TypeVar("N", bound=Hashable)


def _networkx() -> Any:
    """Imported when it is wanted: it takes a while."""
    import networkx

    return networkx


def ancestors(graph: nx.DiGraph[N], node: N) -> set[N]:
    """All from which a way leads to a node."""
    return _networkx().ancestors(graph, node)


def descendants(graph: nx.DiGraph[N], node: N) -> set[N]:
    """All to which a way leads from a node."""
    return _networkx().descendants(graph, node)


def shortest_path(graph: nx.DiGraph[N], start: N, end: N) -> list[N]:
    """The nodes of a shortest way, both ends among them.  Raises `networkx.NetworkXNoPath`."""
    return _networkx().shortest_path(graph, start, end)


def cycle(graph: nx.DiGraph[N]) -> list[tuple[N, N]]:
    """The edges of a cycle.  Raises `networkx.NetworkXNoCycle`."""
    return _networkx().find_cycle(graph)


def minimal_separator(
    graph: nx.DiGraph[N], start: set[N], end: set[N], *, included: set[N], restricted: set[N]
) -> set[N] | None:
    """A smallest set with all of `included`, of nodes of `restricted`, that d-separates two sets; None where none
    does (van der Zander and Liśkiewicz 2020)."""
    return _networkx().find_minimal_d_separator(graph, start, end, included=included, restricted=restricted)


def node_link_data(graph: nx.DiGraph[N]) -> dict[str, Any]:
    """A graph as plain data: `nodes` and `edges`, each with its attributes."""
    return _networkx().node_link_data(graph, edges="edges")


def write_graphml(graph: nx.DiGraph[N], file: IO[bytes]) -> None:
    """A graph as GraphML; attributes are texts, numbers and truth values."""
    _networkx().write_graphml_xml(graph, file)
