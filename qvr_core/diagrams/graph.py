"""What a diagram is made of: nodes, the wires between them, and the boxes around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from qvr_core.semantics.types.diagnostics import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node.

    kind: 'input', 'output', 'arrow', 'site', 'let', 'score', 'data', 'state', 'operator', 'box' (a collapsed box) or
    'damaged'.  `note` is a second line in small print, `detail` what a hover shows.  `origin` is where a click goes;
    `also` are the other places that the node stands for (uses, the site that it draws).  `declared` is the declared
    arrow whose weights it holds; `shared` says that other nodes hold them too.  `sort` is '=>', '->' or '-o' for
    arrows and ''; `role` is 'latent', 'observed', 'imputed' (observed, with gaps that are
    latent), 'predicted' or 'marginalized' for sites and ''.
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
    """A frame around nodes.  kind: 'scan', 'stack', 'repeat', 'plate', 'marginalize', 'program', 'fan', 'legend', or
    'let': a let is a box only to be collapsed, never drawn."""

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


@dataclass(slots=True)
class Diagram:
    """A directed graph in which several wires may run between two nodes: from where a value is made to where it is
    used.  Nodes are kept in the order of their making, and wires by the node that they leave."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    leaving: dict[str, dict[str, list[Wire]]] = field(default_factory=dict[str, dict[str, list[Wire]]])
    sheet: Sheet = Sheet("", "", "")

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: str) -> bool:
        return node in self.nodes

    def between(self, source: str, target: str) -> list[Wire]:
        """The wires from `source` to `target`."""
        return self.leaving.get(source, {}).get(target, [])


def sheet(graph: Diagram) -> Sheet:
    return graph.sheet


def nodes(graph: Diagram) -> Iterator[Node]:
    """Every node, in the order of its making."""
    yield from graph.nodes.values()


def wires(graph: Diagram) -> Iterator[tuple[str, str, Wire]]:
    """Every wire as (source, target, wire)."""
    for source in graph.nodes:
        for target, found in graph.leaving.get(source, {}).items():
            for wire in found:
                yield source, target, wire


def put(graph: Diagram, node: Node) -> Node:
    """Add a node, or replace the one of the same id."""
    graph.nodes[node.id] = node
    return node


def connect(graph: Diagram, source: str, target: str, wire: Wire) -> None:
    graph.leaving.setdefault(source, {}).setdefault(target, []).append(wire)


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
