"""Diagrams as plain JSON values, for editors (`qvr/diagram`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.diagrams.dot import to_dot
from qvr_core.diagrams.graph import Box, Diagram, Node, nodes, sheet, wires
from qvr_core.diagrams.legend import meanings
from qvr_core.diagrams.mermaid import to_mermaid
from qvr_core.semantics.types.diagnostics import Origin

Locate = Callable[[Origin], Any]
"""Turns a place into what the receiver understands (an LSP range), or None where it is gone."""


def nowhere(origin: Origin) -> None:
    """Where nothing comes from other files."""


def to_json(graph: Diagram, locate: Locate, elsewhere: Locate = nowhere) -> dict[str, Any]:
    """`{name, kind, type, nodes, wires, boxes, collapsed, legend, dot, saved, mermaid}`, by docs/protocol.md.

    `dot` is what an editor lays out; its `id` attributes are `node:<id>`, `box:<id>` and `wire:<source>:<target>:<n>`.
    A node's `range` is where a click goes; `ranges` are all places that it stands for, itself first.  What another file
    declares has its `home` there, which `elsewhere` finds: a click opens that file.
    """
    page = sheet(graph)
    return {
        "name": page.name,
        "kind": page.kind,
        "type": page.type,
        "nodes": [node_json(node, locate, elsewhere) for node in nodes(graph)],
        "wires": [
            {
                "source": source,
                "target": target,
                "label": wire.label,
                "space": wire.space,
                "width": wire.width,
                "kind": wire.kind,
                "mismatch": wire.mismatch,
                "range": None if wire.origin is None else locate(wire.origin),
            }
            for source, target, wire in wires(graph)
        ],
        "boxes": [box_json(box, locate) for box in page.boxes if box.drawn],
        "collapsed": list(page.collapsed),
        "legend": [{"kind": kind, "role": role, "text": text} for kind, role, text in meanings(graph)],
        "dot": to_dot(graph, legend=False),
        "saved": to_dot(graph) if meanings(graph) else None,
        "mermaid": to_mermaid(graph),
    }


def node_json(node: Node, locate: Locate, elsewhere: Locate) -> dict[str, Any]:
    places = [origin for origin in (node.origin, *node.also) if origin is not None]
    found: list[Any] = []
    for place in map(locate, places):
        if place is not None and place not in found:
            found.append(place)
    return {
        "id": node.id,
        "kind": node.kind,
        "label": node.label,
        "note": node.note,
        "detail": node.detail,
        "box": node.box,
        "declared": node.declared,
        "shared": node.shared,
        "sort": node.sort,
        "role": node.role,
        "site": node.site,
        "returned": node.returned,
        "range": found[0] if found else None,
        "ranges": found,
        "home": None if node.origin is None else elsewhere(node.origin),
    }


def box_json(box: Box, locate: Locate) -> dict[str, Any]:
    return {
        "id": box.id,
        "kind": box.kind,
        "label": box.label,
        "parent": box.parent,
        "range": None if box.origin is None else locate(box.origin),
    }
