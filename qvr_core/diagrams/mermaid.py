"""Diagrams as Mermaid text: a `flowchart`, frames as subgraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qvr_core.diagrams.graph import Box, Diagram, Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.legend import with_legend

RESERVED = frozenset(
    {"end", "graph", "flowchart", "subgraph", "style", "class", "classDef", "click", "default", "linkStyle"}
    | {"direction", "call", "href", "interpolate"}
)
SHAPES = {
    "input": ("([", "])"),
    "output": ("([", "])"),
    "arrow": ("[", "]"),
    "site": ("((", "))"),
    "let": ("(", ")"),
    "score": ("{{", "}}"),
    "data": ("[", "]"),
    "state": ("((", "))"),
    "operator": ("(", ")"),
    "box": ("[[", "]]"),
    "damaged": ("{", "}"),
}
STYLES = {
    "deterministic": "fill:#eef2f7,stroke:#5b6b80,color:#1b2430",
    "sampled": "fill:#fff3dc,stroke:#b7791f,color:#3d2a05",
    "tensor": "fill:#e6f4ea,stroke:#2f7d4f,color:#0f2e1c",
    "latent": "fill:#ffffff,stroke:#7a4fb5,color:#2b1750",
    "predicted": "fill:#ffffff,stroke:#7a4fb5,color:#2b1750,stroke-dasharray:5 3",
    "marginalized": "fill:#ffffff,stroke:#7a4fb5,color:#2b1750,stroke-dasharray:1 3",
    "observed": "fill:#d9d5e3,stroke:#4d2d7d,color:#22252a",
    "imputed": "fill:#d9d5e3,stroke:#4d2d7d,color:#22252a,stroke-dasharray:5 3",
    "data": "fill:#d9d5e3,stroke:#6b7280,color:#22252a",
    "plain": "fill:#f7f7f8,stroke:#8a8f98,color:#22252a",
    "shared": "stroke-width:3px",
    "returned": "stroke-width:3px",
    "damaged": "fill:#fde7e7,stroke:#c62828,color:#7f1010",
}


def to_mermaid(graph: Diagram, direction: str = "right") -> str:
    """The diagram as a Mermaid flowchart, ready for a Markdown fence.  `direction` is 'right' or 'down'."""
    graph = with_legend(graph)
    ids = {node.id: mermaid_id(node.id) for node in nodes(graph)}
    lines = [f"flowchart {'LR' if direction == 'right' else 'TB'}"]
    lines += frame(graph, None, ids, "    ")
    bad: list[int] = []
    for count, (source, target, wire) in enumerate(wires(graph)):
        lines.append(f"    {ids[source]} {arrow(wire)} {ids[target]}")
        if wire.mismatch:
            bad.append(count)
    used = dict.fromkeys(style for node in nodes(graph) for style in classes(node))
    lines += [f"    classDef {style} {STYLES[style]}" for style in used]
    for style in used:
        lines.append(f"    class {','.join(ids[n.id] for n in nodes(graph) if style in classes(n))} {style}")
    if bad:
        lines.append(f"    linkStyle {','.join(map(str, bad))} stroke:#c62828,stroke-width:3px,color:#c62828")
    return "\n".join(lines) + "\n"


def frame(graph: Diagram, box: str | None, ids: dict[str, str], indent: str) -> Iterator[str]:
    """The nodes and frames directly in `box`."""
    boxes = {known.id: known for known in sheet(graph).boxes}
    for node in nodes(graph):
        if drawn_box(node.box, boxes) == box:
            opening, closing = SHAPES[node.kind]
            yield f'{indent}{ids[node.id]}{opening}"{node_text(node)}"{closing}'
    for inner in boxes.values():
        if inner.drawn and drawn_box(inner.parent, boxes) == box and holds(graph, inner.id, boxes):
            yield f'{indent}subgraph {mermaid_id("box_" + inner.id)}["{quoted(inner.label)}"]'
            yield from frame(graph, inner.id, ids, indent + "    ")
            yield f"{indent}end"


def holds(graph: Diagram, box: str, boxes: dict[str, Box]) -> bool:
    """Whether any node stands in `box` or in a frame inside it."""
    for node in nodes(graph):
        at = node.box
        while at is not None:
            if at == box:
                return True
            at = boxes[at].parent
    return False


def node_text(node: Node) -> str:
    note = f"<br/><small>{quoted(node.note)}</small>" if node.note else ""
    return f"{quoted(node.label)}{note}"


def arrow(wire: Wire) -> str:
    line = "-->" if wire.kind == "value" else "-.->"
    return f'{line}|"{quoted(wire.label)}"|' if wire.label else line


def classes(node: Node) -> list[str]:
    return [*kinds(node), *(["returned"] if node.returned else [])]


def kinds(node: Node) -> list[str]:
    match node.kind:
        case "arrow":
            style = {"->": "sampled", "-o": "tensor"}.get(node.sort, "deterministic")
            return [style, "shared"] if node.shared else [style]
        case "site":
            return [node.role or "latent"]
        case "damaged" | "data" as style:
            return [style]
        case _:
            return ["plain"]


def mermaid_id(name: str) -> str:
    """Letters, digits and `_`; never a word that Mermaid reads as its own."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain in RESERVED or plain.lower() == "end" else plain if plain[0].isalpha() else f"n{plain}"


def quoted(text: str) -> str:
    """Text inside `"…"`: the signs that Mermaid or HTML would read."""
    for sign, entity in (("#", "#35;"), ("&", "#38;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(sign, entity)
    return text.replace("#35;38;", "#38;")
