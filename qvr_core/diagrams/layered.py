"""Places of nodes in layers from left to right, for formats whose programs place nothing themselves.

Each frame is laid out by itself and then stands as one block in the frame around it, so that frames never overlap and
hold nothing but what is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.diagrams.graph import Diagram, Wire, drawn_box, nodes, sheet, wires

GAP = 0.6
"""Between what stands above each other, in centimetres."""
FRAME = 0.5
"""Between a frame and what it holds; its title stands in the room above."""
TITLE = 0.5
LABEL = 0.6
"""The room of a wire's label where wires run downwards."""


@dataclass(frozen=True, slots=True)
class Place:
    """The centre of a node, with its width and height, in centimetres; y grows upwards."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Block:
    """Nodes at their places, counted from the upper left corner of the block, y downwards."""

    width: float
    height: float
    places: dict[str, Place]


def placed(
    graph: Diagram, size: Callable[[str], tuple[float, float]], room: Callable[[Wire], float], *, down: bool = False,
    most: float | None = None,
) -> dict[str, Place]:  # fmt: skip
    """Where each node stands, given the `size` of a node by its id and the `room` that a wire's label takes.

    From left to right, or `down`: then the same is worked out with height for width, and turned over.  A page is `most`
    centimetres wide: what nothing leads to stands right before what it leads to, and a row that is longer is several.
    """
    boxes = {box.id: box for box in sheet(graph).boxes}
    paths: dict[str, tuple[str, ...]] = {}
    for node in nodes(graph):
        path: list[str] = []
        at = drawn_box(node.box, boxes)
        while at is not None:
            path.append(at)
            at = drawn_box(boxes[at].parent, boxes)
        paths[node.id] = tuple(reversed(path))
    flow = [
        (source, target, room(wire))
        for source, target, wire in wires(graph)
        if source in paths and target in paths and wire.kind != "state"
    ]
    if down:
        flow = [(a, b, LABEL) for a, b, _ in flow]
        block = _laid_out((), list(paths), paths, flow, lambda name: _turned(size(name)), most)
        return {name: Place(at.y, -at.x, at.height, at.width) for name, at in block.places.items()}
    block = _laid_out((), list(paths), paths, flow, size)
    return {name: Place(at.x, -at.y, at.width, at.height) for name, at in block.places.items()}


def _turned(size: tuple[float, float]) -> tuple[float, float]:
    width, height = size
    return height, width


Flow = list[tuple[str, str, float]]


def _laid_out(
    frame: tuple[str, ...],
    members: list[str],
    paths: Mapping[str, tuple[str, ...]],
    flow: Flow,
    size: Callable[[str], tuple[float, float]],
    most: float | None = None,
) -> Block:
    """What stands in a frame: its nodes, and the frames inside as blocks."""
    depth = len(frame)
    unit = {name: f"box {paths[name][depth]}" if len(paths[name]) > depth else f"node {name}" for name in members}
    inside: dict[str, list[str]] = {}
    for name in members:
        inside.setdefault(unit[name], []).append(name)
    blocks: dict[str, Block] = {}
    for key, held in inside.items():
        if key.startswith("box "):
            kept = set(held)
            own = [item for item in flow if item[0] in kept and item[1] in kept]
            inner = _laid_out((*frame, paths[held[0]][depth]), held, paths, own, size, most and most - 2 * FRAME)
            # what is turned over later has its upper edge at the left
            before, above = (0.0, TITLE) if most is None else (TITLE, 0.0)
            shifted = _moved(inner.places, FRAME + before, FRAME + above)
            blocks[key] = Block(inner.width + 2 * FRAME + before, inner.height + 2 * FRAME + above, shifted)
        else:
            width, height = size(held[0])
            blocks[key] = Block(width, height, {held[0]: Place(width / 2, height / 2, width, height)})
    edges = [(unit[a], unit[b], wide) for a, b, wide in flow if a in unit and b in unit and unit[a] != unit[b]]
    layers = _layers(list(blocks), edges, late=most is not None)
    if most is not None:
        layers = [part for layer in layers for part in _parts(layer, blocks, most)]
    return _stacked(layers, blocks, edges)


def _parts(layer: list[str], blocks: Mapping[str, Block], most: float) -> list[list[str]]:
    """A layer, or as many as it takes for none to be longer than `most`, of about the same number each."""
    wanted = sum(blocks[key].height + GAP for key in layer) - GAP
    each = -(-len(layer) // max(1, -int(-wanted // most)))
    parts: list[list[str]] = [[]]
    length = -GAP
    for key in layer:
        length += GAP + blocks[key].height
        if parts[-1] and (length > most or len(parts[-1]) >= each):
            parts.append([])
            length = blocks[key].height
        parts[-1].append(key)
    return parts


def _layers(keys: list[str], edges: Flow, *, late: bool) -> list[list[str]]:
    """The blocks by layer: each right of all that lead to it.  An edge that would close a circle does not count.
    With `late`, what nothing leads to stands right before the first that it leads to."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(keys)
    graph.add_edges_from((source, target) for source, target, _ in edges)
    # what is entered first is left last: an edge to what is left later closes a circle
    left = {key: i for i, key in enumerate(nx.dfs_postorder_nodes(graph))}
    graph.remove_edges_from([(source, target) for source, target in graph.edges if left[target] >= left[source]])
    place = {key: i for i, key in enumerate(keys)}
    found = [sorted(layer, key=place.__getitem__) for layer in nx.topological_generations(graph)]
    if late:
        layer_of = {key: number for number, layer in enumerate(found) for key in layer}
        for key in found[0][:]:
            first = min((layer_of[target] for target in graph.successors(key)), default=1)
            found[0].remove(key)
            found[first - 1].append(key)
    _untangle(found, edges)
    return found


def _untangle(layers: list[list[str]], edges: Flow) -> None:
    """Order each layer by the middle of what leads to it, so that fewer wires cross."""
    before: dict[str, list[str]] = {}
    for source, target, _ in edges:
        before.setdefault(target, []).append(source)
    row: dict[str, float] = {}
    for layer in layers:
        middle = {
            key: sum(found) / len(found)
            for key in layer
            if (found := [row[source] for source in before.get(key, ()) if source in row])
        }
        old = {key: i for i, key in enumerate(layer)}
        layer.sort(key=lambda key: (middle.get(key, old[key]), old[key]))
        row |= {key: i - (len(layer) - 1) / 2 for i, key in enumerate(layer)}


def _stacked(layers: list[list[str]], blocks: Mapping[str, Block], edges: Flow) -> Block:
    """Layers beside each other, what is in one above each other, all around the same middle line."""
    heights = [sum(blocks[key].height for key in layer) + GAP * (len(layer) - 1) for layer in layers]
    tallest = max(heights, default=0.0)
    places: dict[str, Place] = {}
    x = 0.0
    for number, (layer, height) in enumerate(zip(layers, heights, strict=True)):
        here = set(layer)
        if number:
            x += GAP + max((wide for _, target, wide in edges if target in here), default=0.0)
        width = max(blocks[key].width for key in layer)
        y = (tallest - height) / 2
        for key in layer:
            block = blocks[key]
            places |= _moved(block.places, x + (width - block.width) / 2, y)
            y += block.height + GAP
        x += width
    return Block(x, tallest, places)


def _moved(places: Mapping[str, Place], x: float, y: float) -> dict[str, Place]:
    return {name: Place(at.x + x, at.y + y, at.width, at.height) for name, at in places.items()}
