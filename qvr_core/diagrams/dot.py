"""Diagrams as DOT text for Graphviz.

Every node and edge has an `id` and a `class`, which Graphviz copies into its SVG: an editor finds the node under the
pointer by the one and paints it in its own colours by the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qvr_core.diagrams.graph import Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.mermaid import classes, holds

if TYPE_CHECKING:
    from qvr_core.diagrams.graph import Diagram

FONT = "Helvetica,Arial,sans-serif"
SHAPES = {
    "input": "box", "output": "box", "arrow": "box", "site": "ellipse", "let": "box", "score": "hexagon",
    "data": "cylinder", "state": "circle", "operator": "box", "box": "box3d", "damaged": "box",
}  # fmt: skip
COLOURS = {
    "deterministic": ("#eef2f7", "#5b6b80", "#1b2430"),
    "sampled": ("#fff3dc", "#b7791f", "#3d2a05"),
    "tensor": ("#e6f4ea", "#2f7d4f", "#0f2e1c"),
    "latent": ("#ffffff", "#7a4fb5", "#2b1750"),
    "observed": ("#7a4fb5", "#4d2d7d", "#ffffff"),
    "plain": ("#f7f7f8", "#8a8f98", "#22252a"),
    "damaged": ("#fde7e7", "#c62828", "#7f1010"),
}
"""Class -> (fill, line, text)."""
BAD = "#c62828"


def to_dot(graph: Diagram) -> str:
    """The diagram as DOT text."""
    page = sheet(graph)
    lines = [
        f"digraph {quoted(page.name)} {{",
        f"  tooltip={quoted(f'{page.name} : {page.type}')}",
        f'  rankdir=LR bgcolor="transparent" pad=0.2 nodesep=0.35 ranksep=0.55 compound=true fontname="{FONT}"',
        f'  node [fontname="{FONT}" fontsize=13 style="filled,rounded" penwidth=1.2 height=0.4 margin="0.14,0.07"]',
        f'  edge [fontname="{FONT}" fontsize=10 color="#5b6b80" fontcolor="#5b6b80" arrowsize=0.7]',
        *frame(graph, None, "  "),
    ]
    ordinal: dict[tuple[str, str], int] = {}
    for source, target, wire in wires(graph):
        ordinal[source, target] = ordinal.get((source, target), -1) + 1
        lines.append(f"  {edge(source, target, wire, ordinal[source, target])}")
    return "\n".join([*lines, "}"]) + "\n"


def frame(graph: Diagram, box: str | None, indent: str) -> Iterator[str]:
    """The nodes and frames directly in `box`."""
    boxes = {known.id: known for known in sheet(graph).boxes}
    for node in nodes(graph):
        if drawn_box(node.box, boxes) == box:
            yield f"{indent}{statement(node)}"
    for inner in boxes.values():
        if inner.drawn and drawn_box(inner.parent, boxes) == box and holds(graph, inner.id, boxes):
            yield f"{indent}subgraph {quoted('cluster_' + inner.id)} {{"
            yield (
                f"{indent}  id={quoted('box:' + inner.id)} class={quoted('frame ' + inner.kind)} "
                f"label={quoted(inner.label)} tooltip={quoted(inner.label)} labeljust=l "
                f'style="rounded,dashed" color="#8a8f98" fontcolor="#5b6b80" fontsize=11 fontname="{FONT}" margin=12'
            )
            yield from frame(graph, inner.id, indent + "  ")
            yield f"{indent}}}"


def statement(node: Node) -> str:
    names = classes(node)
    fill, line, text = COLOURS[names[0]]
    attributes = {
        "id": quoted(f"node:{node.id}"),
        "class": quoted(" ".join([node.kind, *names])),
        "label": label(node),
        "tooltip": quoted(node.detail or node.label),
        "shape": SHAPES[node.kind],
        "fillcolor": quoted(fill),
        "color": quoted(line),
        "fontcolor": quoted(text),
    }
    if node.kind in ("input", "output", "data", "state"):
        attributes["style"] = '"filled,rounded"' if node.kind in ("input", "output") else "filled"
    if node.kind in ("site", "score", "box"):
        attributes["style"] = "filled"
    if node.shared:
        attributes["penwidth"] = "2.6"
    if node.returned:
        attributes["peripheries"] = "2"
    return f"{quoted(node.id)} [{' '.join(f'{key}={value}' for key, value in attributes.items())}]"


def label(node: Node) -> str:
    if not node.note:
        return quoted(node.label)
    return f'<{html(node.label)}<br/><font point-size="10">{html(node.note)}</font>>'


def edge(source: str, target: str, wire: Wire, ordinal: int) -> str:
    attributes = {
        "id": quoted(f"wire:{source}:{target}:{ordinal}"),
        "class": quoted(" ".join(["wire", wire.kind, *(["mismatch"] if wire.mismatch else [])])),
        # spaces keep the letters off the wire where it runs downwards
        "label": quoted(f" {wire.label} " if wire.label else "").replace("  ✗", " \\n✗"),
        "tooltip": quoted(wire.mismatch or wire.label),
    }
    if wire.kind != "value":
        attributes |= {"style": "dashed"} | ({"constraint": "false"} if wire.kind == "state" else {})
    if wire.mismatch:
        attributes |= {"color": quoted(BAD), "fontcolor": quoted(BAD), "penwidth": "2.4"}
    return f"{quoted(source)} -> {quoted(target)} [{' '.join(f'{key}={value}' for key, value in attributes.items())}]"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
