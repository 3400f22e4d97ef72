"""Diagrams as lines of text, for a terminal: a row for each node, below all that lead to it, and a column for each
value from the row that makes it to the last that reads it.

Nothing has to fit beside anything else, so a diagram of any size can be read by scrolling, and in any font of one
width.  Where a row's line meets a column there is a knot; where it only passes, the column goes on over it.  A node
right below another one reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qvr_core.diagrams.graph import Box, Diagram, Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.labels import short

MARKS = {"site": "○", "data": "■", "input": "▷", "output": "◁", "score": "◇", "damaged": "✗"}
ROLES = {"observed": "●", "imputed": "◐", "predicted": "◌", "marginalized": "Σ"}
OTHER = "□"
IN_WORDS = {
    "○": "latent", "●": "observed", "◐": "observed with gaps", "◌": "predicted", "Σ": "summed out", "■": "data",
    "□": "computed", "◇": "score", "✗": "with an error",
}  # fmt: skip
MOST_COLUMNS = 24
"""Values that are on their way at once; of more, the oldest are named where they are read."""
LONGEST = 60


@dataclass(slots=True)
class _Lane:
    """A column: the node whose value it carries, and how many rows still read it."""

    node: str
    readers: int


def to_text(graph: Diagram, width: int = 80) -> str:
    """The diagram, a line for each node, in at most so many columns where names allow it."""
    known = {node.id: node for node in nodes(graph) if node.kind != "legend"}
    flow = [item for item in wires(graph) if item[0] in known and item[1] in known and item[0] != item[1]]
    order = _in_order(known, [(source, target) for source, target, wire in flow if wire.kind != "state"])
    place = {name: row for row, name in enumerate(order)}
    ahead = [item for item in flow if place[item[0]] < place[item[1]]]
    reads: dict[str, dict[str, Wire]] = {name: {} for name in order}
    for source, target, wire in ahead:
        reads[target][source] = wire
    boxes = {box.id: box for box in sheet(graph).boxes}
    rows = list(_rows(order, reads))
    across = max((len(drawn) for _, drawn, _ in rows), default=0)
    lines = [f"{sheet(graph).name} : {sheet(graph).type}".rstrip(" :")]
    for name, drawn, named in rows:
        node = known[name]
        back = [known[source].label for source, target, _ in flow if target == name and place[source] >= place[name]]
        words = _words(
            node,
            reads[name],
            boxes,
            (*(f"from {known[one].label}" for one in named), *(f"from {one}, earlier" for one in back)),
        )
        lines.append(short(f"{drawn.replace('*', _mark(node)):{across}}  {words}", max(width, across + LONGEST)))
    used = dict.fromkeys(_mark(known[name]) for name in order)
    lines.append("   ".join(f"{mark} {IN_WORDS[mark]}" for mark in used if mark in IN_WORDS))
    return "\n".join(lines)


def _mark(node: Node) -> str:
    if node.kind == "site" and node.role in ROLES:
        return ROLES[node.role]
    return MARKS.get(node.kind, OTHER)


def _words(node: Node, reads: Mapping[str, Wire], boxes: dict[str, Box], more: tuple[str, ...]) -> str:
    frames: list[str] = []
    at = drawn_box(node.box, boxes)
    while at is not None:
        frames.append(boxes[at].label)
        at = drawn_box(boxes[at].parent, boxes)
    types = ", ".join(dict.fromkeys(wire.label for wire in reads.values() if wire.label))
    inside = f"[{', '.join(reversed(frames))}]" if frames else ""
    mismatch = " ".join(f"✗ {wire.mismatch}" for wire in reads.values() if wire.mismatch and "✗" not in wire.label)
    takes = f"← {types}" if types else ""
    return "  ".join(part for part in (node.label, node.note, inside, takes, mismatch, *more) if part)


def _in_order(known: Mapping[str, Node], edges: list[tuple[str, str]]) -> list[str]:
    """Each node behind those that lead to it, else in the order of the program; a circle is cut where it is entered."""
    before: dict[str, list[str]] = {name: [] for name in known}
    for source, target in edges:
        before[target].append(source)
    order: dict[str, None] = {}
    entered: set[str] = set()
    for name in known:
        pending = [(name, False)]
        while pending:
            each, done = pending.pop()
            if done:
                order[each] = None
            elif each not in entered:
                entered.add(each)
                pending.append((each, True))
                pending += ((one, False) for one in reversed(before[each]))
    return list(order)


def _rows(order: list[str], reads: Mapping[str, Mapping[str, Wire]]) -> Iterator[tuple[str, str, list[str]]]:
    """Each node with its row of columns, `*` where it stands, and the values that it reads without a column."""
    readers = dict.fromkeys(order, 0)
    for sources in reads.values():
        for source in sources:
            readers[source] += 1
    lanes: list[_Lane | None] = []
    shut = -1  # where a node stood that nothing reads: what is not read may not stand right below
    for name in order:
        taken = [at for at, lane in enumerate(lanes) if lane is not None and lane.node in reads[name]]
        named = [one for one in reads[name] if all(lane is None or lane.node != one for lane in lanes)]
        ending: list[int] = []
        for at in taken:
            lane = lanes[at]
            assert lane is not None
            lane.readers -= 1
            if lane.readers == 0:
                ending.append(at)
        own = _column(lanes, taken, ending, shut)
        yield name, _row(lanes, taken, ending, own), named
        for at in ending:
            lanes[at] = None
        shut = -1 if readers[name] else own
        if readers[name]:
            lanes += [None] * (own + 1 - len(lanes))
            lanes[own] = _Lane(name, readers[name])
        while lanes and lanes[-1] is None:
            lanes.pop()


def _column(lanes: list[_Lane | None], taken: list[int], ending: list[int], shut: int) -> int:
    """Where a node stands: in the last column that ends with it, else in a free one, right of all that it reads where
    there is room."""
    if ending:
        return ending[-1]
    free = [at for at in range(len(lanes) + 2) if at != shut and (at >= len(lanes) or lanes[at] is None)]
    return min(free[0], MOST_COLUMNS)


def _row(lanes: list[_Lane | None], taken: list[int], ending: list[int], own: int) -> str:
    joined = [*taken, own]
    first, last = min(joined), max(joined)
    drawn: list[str] = []
    for at in range(max(len(lanes), own + 1)):
        lane = lanes[at] if at < len(lanes) else None
        inside = first < at < last
        if at == own:
            sign = "*"
        elif at in taken:
            ends = at in ending
            left, right = at > first, at < last
            sign = {
                (True, True): "┴" if ends else "┼",
                (True, False): "╯" if ends else "┤",
                (False, True): "╰" if ends else "├",
            }[left, right]
        elif lane is not None:
            sign = "│"
        else:
            sign = "─" if inside else " "
        drawn.append(sign + ("─" if first <= at < last else " "))
    return "".join(drawn).rstrip()
