"""Diagrams as SVG for a page of HTML, in the colours of the page: laid out here, so that no program need be installed.

A page gives the classes their looks (`STYLE`); wires carry no types, which the program above or below the picture says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from qvr_core.diagrams.graph import Box, Diagram, Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.layered import FRAME, TITLE, Place, placed
from qvr_core.diagrams.routes import Edges, Point, ways

CENTIMETRE = 38.0
"""Pixels; letters are 12 high."""
MOST = 15.8
"""Centimetres across: a window of 650 pixels shows this without making letters smaller."""
LETTER, SMALL, LINE = 0.185, 0.16, 0.45
ROUND = ("site", "state", "score")
STYLE = """
.diagram .node { fill: var(--page); stroke: var(--mark); stroke-width: 1.3 } .diagram text { fill: var(--text) }
.diagram .observed { fill: var(--fill) } .diagram .predicted { stroke-dasharray: 5 3 }
.diagram .let { stroke: var(--soft) } .diagram .data { fill: var(--code); stroke: var(--soft) }
.diagram .wire { fill: none; stroke: var(--soft); stroke-width: 1.1 } .diagram .back { stroke-dasharray: 4 3 }
.diagram .plate { fill: none; stroke: var(--soft) } .diagram .small { fill: var(--soft); font-size: 11px }
.diagram .filled { fill: var(--text) }
.diagram .head { fill: var(--soft) }
"""
LEGEND = (
    "Ellipses are drawn from families, filled ones observed, dashed ones predicted after the fit; round boxes are "
    "computed, square ones data; a frame holds one of each for every element of its set; dashed lines read earlier "
    "elements."
)


def to_page_svg(graph: Diagram, label: str) -> str:
    """The diagram as one `<svg>` element; `label` says what it shows."""
    known = {node.id: node for node in nodes(graph)}
    places = placed(graph, lambda name: _size(known[name]), lambda wire: 0.5, down=True, most=MOST)
    # what a program returns is a value that stands in the picture already
    places = {name: place for name, place in places.items() if known[name].kind != "output"}
    frames = dict(_frames(graph, places))
    drawn = {name: _edges(one) for name, one in places.items()}
    titles = [_title(box, edges) for box, edges in frames.values()]
    flow = [(source, target, wire) for source, target, wire in wires(graph) if source in places and target in places]
    routes = ways([(source, target) for source, target, _ in flow], drawn, titles)
    turns = [(x, y, x, y) for route in routes for x, y in route]
    left, top, right, bottom = _around([*drawn.values(), *(one for _, one in frames.values()), *turns])
    width, height = (right - left) * CENTIMETRE + 8, (bottom - top) * CENTIMETRE + 8

    def at(x: float, y: float) -> str:
        return f"{(x - left) * CENTIMETRE + 4:.1f},{(y - top) * CENTIMETRE + 4:.1f}"

    body = [
        *(_frame(box, edges, at) for box, edges in frames.values()),
        *(_wire(route, wire, at) for route, (_, _, wire) in zip(routes, flow, strict=True)),
        *(_node(node, places[name], at) for name, node in known.items() if name in places),
    ]  # fmt: skip
    head = '<marker id="qvr-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<svg class="diagram" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(label, quote=True)}"><defs>{head}'
        f'<path class="head" d="M0,0L8,4L0,8Z"/></marker></defs>{"".join(body)}</svg>'
    )


At = Callable[[float, float], str]
"""Centimetres as pixels of the picture, `x,y`."""


def _edges(place: Place) -> Edges:
    return (
        place.x - place.width / 2, -place.y - place.height / 2, place.x + place.width / 2, -place.y + place.height / 2,
    )  # fmt: skip


def _around(all_edges: list[Edges]) -> Edges:
    columns = list(zip(*all_edges, strict=True)) or [(0.0,)] * 4
    return min(columns[0]), min(columns[1]), max(columns[2]), max(columns[3])


def _frames(graph: Diagram, places: dict[str, Place]) -> Iterator[tuple[str, tuple[Box, Edges]]]:
    """The frames that are drawn, the outer ones first, each around all that stands in it."""
    boxes = {box.id: box for box in sheet(graph).boxes}
    held: dict[str, list[Edges]] = {}
    depth: dict[str, int] = {}
    for node in (one for one in nodes(graph) if one.id in places):
        path, inside = list[str](), drawn_box(node.box, boxes)
        while inside is not None:
            path.append(inside)
            inside = drawn_box(boxes[inside].parent, boxes)
        for number, name in enumerate(path):
            left, top, right, bottom = _edges(places[node.id])
            room = FRAME * (number + 1) - 0.12 * number
            held.setdefault(name, []).append((left - room, top - room - TITLE * number, right + room, bottom + room))
            depth[name] = max(depth.get(name, 0), len(path) - number)
    for name in sorted(held, key=lambda one: depth[one]):
        left, top, right, bottom = _around(held[name])
        _, _, end, _ = _title(boxes[name], (left, top, right, bottom))
        yield name, (boxes[name], (left, top - TITLE, max(right, end), bottom))


def _size(node: Node) -> tuple[float, float]:
    """Width and height of a node in centimetres."""
    letters = max(len(node.label) * LETTER, len(node.note) * SMALL, 0.6)
    wider = 1.3 if node.kind in ROUND else 1.0
    return letters * wider + 0.5, LINE * (2 if node.note else 1) * wider + 0.35


def _classes(node: Node) -> str:
    return " ".join(filter(None, ("node", node.kind, node.role)))


def _node(node: Node, place: Place, at: At) -> str:
    x, y = at(place.x, -place.y).split(",")
    width, height = place.width * CENTIMETRE, place.height * CENTIMETRE
    if node.kind in ROUND:
        shape = f'<ellipse class="{_classes(node)}" cx="{x}" cy="{y}" rx="{width / 2:.1f}" ry="{height / 2:.1f}"/>'
    else:
        corner = 3 if node.kind in ("data", "arrow", "box") else 10
        left, top = float(x) - width / 2, float(y) - height / 2
        shape = (
            f'<rect class="{_classes(node)}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{corner}"/>'
        )
    middle = float(y) + 4 - (7 if node.note else 0)
    texts = f'<text x="{x}" y="{middle:.1f}" text-anchor="middle">{escape(node.label)}</text>'
    if node.note:
        filled = " filled" if node.role == "observed" else ""
        texts += (
            f'<text class="small{filled}" x="{x}" y="{middle + 15:.1f}" text-anchor="middle">{escape(node.note)}</text>'
        )
    return shape + texts


def _wire(route: list[Point], wire: Wire, at: At) -> str:
    """A curve through the points of a route: its start, then three for each part, as SVG has them."""
    kind = "wire back" if wire.kind == "state" else "wire"
    points = [at(x, y) for x, y in route]
    return f'<path class="{kind}" marker-end="url(#qvr-head)" d="M{points[0]} C{" ".join(points[1:])}"/>'


def _title(box: Box, edges: Edges) -> Edges:
    """Where the title of a frame stands."""
    left, top, _, _ = edges
    return left + 0.1, top, left + 0.3 + len(box.label) * 0.17, top + TITLE


def _frame(box: Box, edges: Edges, at: At) -> str:
    left, top, right, bottom = edges
    x, y = at(left, top).split(",")
    width, height = (right - left) * CENTIMETRE, (bottom - top) * CENTIMETRE
    return (
        f'<rect class="plate" x="{x}" y="{y}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
        f'<text class="small" x="{float(x) + 8:.1f}" y="{float(y) + 15:.1f}">{escape(box.label)}</text>'
    )
