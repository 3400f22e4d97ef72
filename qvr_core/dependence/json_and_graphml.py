"""Dependence graphs for other programs: JSON and GraphML."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from qvr_core.dependence.algorithms import node_link_data, write_graphml

if TYPE_CHECKING:
    from qvr_core.dependence.graph import Graph


def to_json(graph: Graph) -> str:
    """`nodes` with `id`, `kind`, `plates`, …, and `edges` with `source`, `target`, `lags`: what
    `networkx.node_link_graph(…, edges="edges")` reads."""
    return json.dumps(node_link_data(graph), indent=2, ensure_ascii=False) + "\n"


def to_graphml(graph: Graph) -> str:
    """GraphML, in which a list is a text with commas."""
    import networkx as nx

    plain: nx.DiGraph[str] = nx.DiGraph(name=graph.name)
    plain.add_nodes_from((name, _plain(found)) for name, found in graph.nodes(data=True))
    plain.add_edges_from((one, other, _plain(found)) for one, other, found in graph.edges(data=True))
    written = BytesIO()
    write_graphml(plain, written)
    return written.getvalue().decode() + "\n"


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    def text(value: Any) -> Any:
        return ", ".join(map(str, cast(tuple[Any, ...], value))) if isinstance(value, tuple) else value

    return {key: text(value) for key, value in attributes.items()}
