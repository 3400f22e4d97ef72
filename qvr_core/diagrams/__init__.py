"""Diagrams: typed model -> graph -> lines of text | Mermaid | DOT | TikZ | SVG | PNG | JSON.

graph = build(snapshot, "backbone")
to_text(graph)                            # for a terminal
to_mermaid(graph), to_dot(graph), to_tikz(graph)    # text, no other program
to_svg(graph), to_png(graph)              # through `dot`; NoDot says what to do where it is missing
to_json(graph, locate)                    # for editors
"""

from qvr_core.diagrams.build import build
from qvr_core.diagrams.chosen import NoDiagram, drawable, main_name
from qvr_core.diagrams.dot import to_dot
from qvr_core.diagrams.editor_json import to_json
from qvr_core.diagrams.graph import Box, Diagram, Node, Sheet, Wire, nodes, sheet, wires
from qvr_core.diagrams.image import NoDot, to_png, to_svg
from qvr_core.diagrams.mermaid import to_mermaid
from qvr_core.diagrams.terminal import to_text
from qvr_core.diagrams.tikz import to_tikz

__all__ = [
    "Box",
    "Diagram",
    "NoDiagram",
    "NoDot",
    "Node",
    "Sheet",
    "Wire",
    "build",
    "drawable",
    "main_name",
    "nodes",
    "sheet",
    "to_dot",
    "to_json",
    "to_mermaid",
    "to_png",
    "to_svg",
    "to_text",
    "to_tikz",
    "wires",
]
