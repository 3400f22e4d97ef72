"""Diagrams as DOT text for Graphviz.

Every node and edge has an `id` and a `class`, which Graphviz copies into its SVG: an editor finds the node under the
pointer by the one and paints it in its own colours by the other.
"""

from __future__ import annotations

from typing import Any

from qvr_core.diagrams.graph import Diagram, Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.legend import with_legend
from qvr_core.diagrams.mermaid import classes, holds

FONT = "Helvetica,Arial,sans-serif"
SHAPES = {
    "input": "box", "output": "box", "arrow": "box", "site": "ellipse", "let": "box", "score": "hexagon",
    "data": "box", "state": "circle", "operator": "box", "box": "box3d", "damaged": "box",
}  # fmt: skip
COLOURS = {
    "deterministic": ("#eef2f7", "#5b6b80", "#1b2430"),
    "sampled": ("#fff3dc", "#b7791f", "#3d2a05"),
    "tensor": ("#e6f4ea", "#2f7d4f", "#0f2e1c"),
    "latent": ("#ffffff", "#7a4fb5", "#2b1750"),
    "predicted": ("#ffffff", "#7a4fb5", "#2b1750"),
    "marginalized": ("#ffffff", "#7a4fb5", "#2b1750"),
    "observed": ("#d9d5e3", "#4d2d7d", "#22252a"),
    "imputed": ("#d9d5e3", "#4d2d7d", "#22252a"),
    "data": ("#d9d5e3", "#6b7280", "#22252a"),
    "plain": ("#f7f7f8", "#8a8f98", "#22252a"),
    "damaged": ("#fde7e7", "#c62828", "#7f1010"),
}
"""Class -> (fill, line, text).  What is given is shaded, as statisticians do."""
LINES = {"predicted": "dashed", "imputed": "dashed", "marginalized": "dotted"}
"""Class -> how the outline is drawn, where it is not a whole line."""
DIRECTIONS = {"right": "LR", "down": "TB"}
BAD = "#c62828"
PAGE = {
    "bgcolor": "transparent", "pad": "0.2", "nodesep": "0.35", "ranksep": "0.55", "compound": "true",
    "fontname": FONT,
}  # fmt: skip
NODES = {
    "fontname": FONT, "fontsize": "13", "style": "filled,rounded", "penwidth": "1.2", "height": "0.4",
    "margin": "0.14,0.07",
}  # fmt: skip
EDGES = {"fontname": FONT, "fontsize": "10", "color": "#5b6b80", "fontcolor": "#5b6b80", "arrowsize": "0.7"}
FRAMES = {
    "labeljust": "l", "style": "rounded", "color": "#8a8f98", "fontcolor": "#5b6b80", "fontsize": "11",
    "fontname": FONT, "margin": "12",
}  # fmt: skip


def to_dot(graph: Diagram, direction: str = "right", *, legend: bool = True) -> str:
    """The diagram as DOT text; no `dot` program is needed for that.  `direction` is 'right' or 'down'."""
    from graphviz import Digraph  # pyright: ignore[reportMissingTypeStubs]

    graph = with_legend(graph) if legend else graph
    page = sheet(graph)
    dot: Any = Digraph(
        literal(page.name), graph_attr={**PAGE, "rankdir": DIRECTIONS[direction]}, node_attr=NODES, edge_attr=EDGES
    )
    dot.attr(tooltip=literal(f"{page.name} : {page.type}"))
    fill(dot, graph, None)
    ordinal: dict[tuple[str, str], int] = {}
    for source, target, wire in wires(graph):
        ordinal[source, target] = ordinal.get((source, target), -1) + 1
        dot.edge(source, target, **edge(source, target, wire, ordinal[source, target]))
    return dot.source


def fill(dot: Any, graph: Diagram, box: str | None) -> None:
    """Add the nodes and frames directly in `box` to the graphviz.Digraph."""
    boxes = {known.id: known for known in sheet(graph).boxes}
    for node in nodes(graph):
        if drawn_box(node.box, boxes) == box:
            dot.node(node.id, **attributes(node))
    for inner in boxes.values():
        if inner.drawn and drawn_box(inner.parent, boxes) == box and holds(graph, inner.id, boxes):
            with dot.subgraph(name="cluster_" + inner.id) as frame:
                named = {"id": "box:" + inner.id, "class": "frame " + inner.kind}
                # a plate is a whole line, as in any textbook; what else is framed is dashed
                style = {**FRAMES, "style": "rounded" if inner.kind == "plate" else "rounded,dashed"}
                frame.attr(label=literal(inner.label), tooltip=literal(inner.label), **named, **style)
                fill(frame, graph, inner.id)


def attributes(node: Node) -> dict[str, str]:
    names = classes(node)
    filling, line, text = COLOURS[names[0]]
    found = {
        "id": literal(f"node:{node.id}"),
        "class": " ".join(dict.fromkeys([node.kind, *names])),
        "label": label(node),
        "tooltip": literal(node.detail or node.label),
        "shape": SHAPES[node.kind],
        "fillcolor": filling,
        "color": line,
        "fontcolor": text,
    }
    if node.kind in ("data", "state", "site", "score", "box"):
        found["style"] = ",".join(["filled", *(LINES[name] for name in names if name in LINES)])
    if node.shared:
        found["penwidth"] = "2.6"
    if node.returned:
        found["peripheries"] = "2"
    return found


def label(node: Node) -> str:
    if not node.note:
        return literal(node.label)
    return f'<{html(node.label)}<br/><font point-size="10">{html(node.note)}</font>>'


def edge(source: str, target: str, wire: Wire, ordinal: int) -> dict[str, str]:
    found = {
        "id": literal(f"wire:{source}:{target}:{ordinal}"),
        "class": " ".join(["wire", wire.kind, *(["mismatch"] if wire.mismatch else [])]),
        "label": aside(wire.label),
        "tooltip": literal(wire.mismatch or wire.label or wire.space),
    }
    if wire.kind != "value":
        found |= {"style": "dashed"} | ({"constraint": "false"} if wire.kind == "state" else {})
    if wire.mismatch:
        found |= {"color": BAD, "fontcolor": BAD, "penwidth": "2.4"}
    return found


def aside(label: str) -> str:
    """The label of a wire, with spaces that keep its letters off a wire that runs downwards.

    Graphviz reckons with Helvetica's widths; what draws the letters may have those of another font, a fifth wider.
    """
    lines = [line.strip() for line in label.replace("  ✗", "\n✗").split("\n")]
    room = " " * (1 + max(map(len, lines)) // 6)
    return "\\n".join(literal(f"{room}{line}{room}") for line in lines) if label else ""


def literal(text: str) -> str:
    """Text in which nothing is an escape or a tag."""
    from graphviz import escape  # pyright: ignore[reportMissingTypeStubs]

    return escape(text.replace("\n", " "))


def html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
