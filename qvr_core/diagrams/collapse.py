"""Frames as single nodes, while a diagram is too large to read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from qvr_core.diagrams.graph import Box, Diagram, Node, connect, nodes, put, sheet, wires


def collapsed(graph: Diagram, limit: int, opened: Collection[str]) -> Diagram:
    """`graph` with its largest frames as one node each until at most `limit` nodes are left; `opened` stay as they are.

    A frame around an opened one stays open as well.  The graph itself is not changed.
    """
    boxes = {box.id: box for box in sheet(graph).boxes}
    kept = {above for name in opened for above in ancestors(name, boxes)}
    chosen: set[str] = set()
    count = len(graph)
    members = inside(graph, boxes)
    while count > limit:
        candidates = [name for name in boxes if name not in kept and not chosen.intersection(ancestors(name, boxes))]
        best = max(candidates, key=lambda name: len(members[name]), default=None)
        if best is None or len(members[best]) < 2:
            break
        chosen = {name for name in chosen if best not in ancestors(name, boxes)} | {best}
        count = len(graph) - sum(len(members[name]) - 1 for name in chosen)
    return merged(graph, chosen, boxes) if chosen else graph


def ancestors(name: str | None, boxes: dict[str, Box]) -> list[str]:
    """`name` and every frame around it."""
    chain: list[str] = []
    while name is not None and name in boxes:
        chain.append(name)
        name = boxes[name].parent
    return chain


def inside(graph: Diagram, boxes: dict[str, Box]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {name: [] for name in boxes}
    for node in nodes(graph):
        for name in ancestors(node.box, boxes):
            members[name].append(node.id)
    return members


def merged(graph: Diagram, chosen: set[str], boxes: dict[str, Box]) -> Diagram:
    small = Diagram()
    stands_for: dict[str, str] = {}
    count = {name: len(found) for name, found in inside(graph, boxes).items()}
    for node in nodes(graph):
        frame = next((name for name in ancestors(node.box, boxes) if name in chosen), None)
        stands_for[node.id] = frame or node.id
        if frame is None:
            put(small, node)
        elif frame not in small:
            box = boxes[frame]
            put(
                small,
                Node(
                    id=frame,
                    kind="box",
                    label=box.label,
                    detail=f"{count[frame]} nodes, click to open",
                    origin=box.origin,
                    box=box.parent,
                ),
            )
    for source, target, wire in wires(graph):
        ends = stands_for[source], stands_for[target]
        if ends[0] == ends[1] and ends[0] in chosen:
            continue
        if wire not in small.between(*ends):
            connect(small, *ends, wire)
    left = tuple(box for box in sheet(graph).boxes if not chosen.intersection(ancestors(box.id, boxes)))
    shut = (*sorted(chosen), *(name for name in sheet(graph).collapsed if name in small))
    small.sheet = replace(sheet(graph), boxes=left, collapsed=shut)
    return small
