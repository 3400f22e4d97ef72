"""Long chains as their two ends with one node between them, so that the rest of a diagram stays readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from qvr_core.diagrams.graph import Diagram, Node, connect, nodes, put, sheet, wires

FEW = 30
"""A diagram of at most so many nodes is drawn as it is."""
LONG, END = 12, 3
"""Nodes of a chain that is folded, and those at each end of it that stay."""
MARK = "fold_"


def folded(graph: Diagram, opened: Collection[str]) -> Diagram:
    """`graph` with the middle of each long chain as one node, but for those whose ids are `opened`.

    A chain is nodes of one frame, each with one wire to the next that fits and no other, one arrow behind the other.
    The graph itself is not changed.
    """
    if len(graph) <= FEW:
        return graph
    stands_for: dict[str, str] = {}
    middles: dict[str, list[str]] = {}
    for chain in _chains(graph):
        middle = chain[END:-END]
        name = f"{MARK}{chain[0]}"
        if len(chain) >= LONG and name not in opened:
            middles[name] = middle
            stands_for |= dict.fromkeys(middle, name)
    return _merged(graph, stands_for, middles) if middles else graph


def _chains(graph: Diagram) -> Iterator[list[str]]:
    """Maximal ones, in the order of their first nodes."""
    following: dict[str, str] = {}
    leaving = Counter(source for source, _, _ in wires(graph))
    arriving = Counter(target for _, target, _ in wires(graph))
    kinds = {node.id: (node.box, node.kind) for node in nodes(graph)}
    for source, target, wire in wires(graph):
        alone = leaving[source] == arriving[target] == 1
        fits = wire.mismatch is None and wire.kind == "value"
        if alone and fits and kinds[source] == kinds[target]:
            following[source] = target
    behind = set(following.values())
    for first in [name for name in following if name not in behind]:
        chain = [first]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        yield chain


def _merged(graph: Diagram, stands_for: dict[str, str], middles: dict[str, list[str]]) -> Diagram:
    small = Diagram()
    known = {node.id: node for node in nodes(graph)}
    for node in known.values():
        name = stands_for.get(node.id)
        if name is None:
            put(small, node)
        elif name not in small:
            put(small, _middle(name, [known[one] for one in middles[name]]))
    for source, target, wire in wires(graph):
        ends = stands_for.get(source, source), stands_for.get(target, target)
        if ends[0] != ends[1]:
            connect(small, *ends, wire)
    page = sheet(graph)
    small.sheet = replace(page, collapsed=(*page.collapsed, *middles))
    return small


def _middle(name: str, members: list[Node]) -> Node:
    places = [place for node in members for place in (node.origin, *node.also) if place is not None]
    first, last = members[0].label, members[-1].label
    return Node(
        id=name,
        kind="box",
        label=f"{len(members)} stages",
        note=first if first == last else f"{first} … {last}",
        detail=f"{len(members)} nodes one behind the other, click to open",
        origin=places[0] if places else None,
        also=tuple(places[1:]),
        box=members[0].box,
    )
