"""What a diagram is made of: nodes, wires and boxes on a networkx multigraph.

Every node of the graph carries its `Node` under the key `node`, every edge its `Wire` under `wire`; the graph itself
carries a `Sheet` under `sheet`.  A wire runs from where a value is made to where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from qvr_core.semantics.types.diagnostics import Origin

if TYPE_CHECKING:
    import networkx as nx

    Diagram = nx.MultiDiGraph[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node.

    kind: 'input', 'output', 'arrow', 'site', 'let', 'score', 'data', 'state', 'operator', 'box' (a collapsed box) or
    'damaged'.  `note` is a second line in small print, `detail` what a hover shows.  `origin` is where a click goes;
    `also` are the other places that the node stands for (uses, the site that it draws).  `declared` is the declared
    arrow whose weights it holds; `shared` says that other nodes hold them too.  `sort` is '=>', '->' or '-o' for
    arrows and ''; `role` is 'latent', 'observed', 'predicted' or 'marginalized' for sites and ''.
    """

    id: str
    kind: str
    label: str
    note: str = ""
    detail: str = ""
    origin: Origin | None = None
    also: tuple[Origin, ...] = ()
    box: str | None = None
    declared: str | None = None
    shared: bool = False
    sort: str = ""
    role: str = ""
    site: str | None = None
    returned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One wire.  `space` as the user wrote it, `width` in columns or elements (None while unsolved).

    kind: 'value', 'state' (from one time step to the next) or 'index'.  `mismatch` says what does not fit.
    """

    label: str
    space: str = ""
    width: int | None = None
    kind: str = "value"
    origin: Origin | None = None
    mismatch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A frame around nodes.  kind: 'scan', 'stack', 'repeat', 'plate', 'marginalize', 'program', 'fan', or 'let': a let
    is a box only to be collapsed, never drawn."""

    id: str
    kind: str
    label: str
    parent: str | None = None
    origin: Origin | None = None

    @property
    def drawn(self) -> bool:
        return self.kind != "let"


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the whole diagram shows.  `collapsed` are the boxes that stand as one node."""

    name: str
    kind: str
    type: str
    boxes: tuple[Box, ...] = ()
    collapsed: tuple[str, ...] = ()


def sheet(graph: Diagram) -> Sheet:
    return cast(Sheet, graph.graph["sheet"])


def nodes(graph: Diagram) -> Iterator[Node]:
    """Every node, in the order of its making."""
    for _, attributes in graph.nodes(data=True):
        yield cast(Node, attributes["node"])


def wires(graph: Diagram) -> Iterator[tuple[str, str, Wire]]:
    """Every wire as (source, target, wire)."""
    for source, target, attributes in graph.edges(data=True):
        yield source, target, cast(Wire, attributes["wire"])


def put(graph: Diagram, node: Node) -> Node:
    """Add a node, or replace the one of the same id."""
    graph.add_node(node.id, node=node)
    return node


def connect(graph: Diagram, source: str, target: str, wire: Wire) -> None:
    graph.add_edge(source, target, wire=wire)


def drawn_box(box: str | None, boxes: dict[str, Box]) -> str | None:
    """The innermost drawn box at or above `box`."""
    while box is not None and not boxes[box].drawn:
        box = boxes[box].parent
    return box


def mark_shared(graph: Diagram) -> None:
    """Mark the nodes that hold the same weights as another one."""
    count: dict[str, int] = {}
    for node in nodes(graph):
        if node.declared is not None:
            count[node.declared] = count.get(node.declared, 0) + 1
    for node in list(nodes(graph)):
        if node.declared is not None and count[node.declared] > 1:
            put(graph, replace(node, shared=True))
