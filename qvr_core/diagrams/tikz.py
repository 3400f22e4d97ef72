"""Diagrams as TikZ text for papers: a `tikzpicture` of plain ASCII, with its places worked out here."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from qvr_core.diagrams.dot import BAD, COLOURS, LINES
from qvr_core.diagrams.graph import Box, Diagram, Node, Wire, drawn_box, nodes, sheet, wires
from qvr_core.diagrams.layered import Place, placed
from qvr_core.diagrams.legend import with_legend
from qvr_core.diagrams.mermaid import classes, holds

LIBRARIES = ("arrows.meta", "backgrounds", "fit", "shapes.geometric", "shapes.misc")
SHAPES = {
    "input": "rounded rectangle", "output": "rounded rectangle", "arrow": "rectangle", "site": "ellipse",
    "let": "rectangle, rounded corners", "score": "chamfered rectangle", "data": "rectangle", "state": "ellipse",
    "operator": "rectangle, rounded corners", "box": "rectangle, double", "damaged": "rectangle, dashed",
}  # fmt: skip
LETTER, LINE = 0.19, 0.5
"""Width of a letter and height of a line in centimetres: a little more than what TeX takes."""
SMALL = 0.14
"""Width of a letter of a wire's label."""

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\ensuremath{\sim}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"{''}", "`": r"\textasciigrave{}", "'": r"{'}", "-": "{-}", ",": "{,}",
    "[": "{[}", "]": "{]}",
}  # fmt: skip
"""What TeX would read as its own, or join with what follows."""
SIGNS = {
    "·": r"\ensuremath{\cdot}", "×": r"\ensuremath{\times}", "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}", "…": r"\dots{}", "Σ": r"\ensuremath{\Sigma}", "✗": r"\ensuremath{\times}",
    "⊗": r"\ensuremath{\otimes}", "∞": r"\ensuremath{\infty}", "ß": r"{\ss}", "ø": r"{\o}", "Ø": r"{\O}",
    "æ": r"{\ae}", "Æ": r"{\AE}", "\u2265": r"\ensuremath{\geq}", "\u2264": r"\ensuremath{\leq}",
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030a": "r", "\u030c": "v",
    "\u0327": "c", "\u0304": "=", "\u0306": "u", "\u0307": ".", "\u030b": "H",
}  # fmt: skip


def to_tikz(graph: Diagram, direction: str = "right") -> str:
    """The diagram as a `tikzpicture`.  A comment above it says what the document needs; `direction` is 'right' or
    'down'."""
    graph = with_legend(graph)
    page = sheet(graph)
    known = {node.id: node for node in nodes(graph)}
    places = placed(graph, lambda name: size(known[name]), room, down=direction == "down")
    ids = {name: f"n{number}" for number, name in enumerate(known, 1)}
    used = dict.fromkeys(style for node in known.values() for style in classes(node) if style in COLOURS)
    needed = ",".join(LIBRARIES)
    return "\n".join(
        [
            f"% {comment(page.name)} : {comment(page.type)}",
            rf"% \usepackage{{tikz}} \usetikzlibrary{{{needed}}}",
            *colours(list(used)),
            r"\begin{tikzpicture}[",
            r"  font=\small, >={Stealth[length=2mm]},",
            r"  every node/.style={align=center, inner sep=3pt},",
            r"  qvr wire/.style={->, draw=qvrwire}, qvr returning/.style={qvr wire, dashed},",
            r"  qvr wrong/.style={draw=qvrbad, line width=1.2pt},",
            r"  qvr label/.style={font=\scriptsize, text=qvrwire, fill=white, inner sep=1pt, sloped},",
            r"  qvr frame/.style={draw=gray, dashed, rounded corners, inner sep=8pt},",
            *(
                rf"  qvr {style}/.style={{draw=qvr{style}line, fill=qvr{style}, text=qvr{style}text}},"
                for style in used
            ),
            "]",
            *(drawn(node, ids[node.id], places[node.id]) for node in known.values()),
            *frames(graph, ids),
            *(wired(source, target, wire, ids) for source, target, wire in wires(graph)),
            r"\end{tikzpicture}",
            "",
        ]
    )


def colours(styles: list[str]) -> Iterator[str]:
    for style in styles:
        for part, colour in zip(("", "line", "text"), COLOURS[style], strict=True):
            yield rf"\definecolor{{qvr{style}{part}}}{{HTML}}{{{colour[1:].upper()}}}"
    yield rf"\definecolor{{qvrwire}}{{HTML}}{{5B6B80}}\definecolor{{qvrbad}}{{HTML}}{{{BAD[1:].upper()}}}"


def size(node: Node) -> tuple[float, float]:
    """Width and height that a node takes at most, in centimetres."""
    letters = max(len(node.label) * LETTER, len(node.note) * SMALL, 0.6)
    round_ = 1.4 if node.kind in ("site", "state", "score") else 1.0
    return round(letters * round_ + 0.5, 2), round(LINE * (2 if node.note else 1) * round_ + 0.3, 2)


def room(wire: Wire) -> float:
    return round(len(wire.label) * SMALL + 0.6, 2)


def drawn(node: Node, name: str, place: Place) -> str:
    style = [SHAPES[node.kind], *(f"qvr {one}" for one in classes(node) if one in COLOURS)]
    style += [LINES[one] for one in classes(node) if one in LINES]
    if node.shared:
        style.append("line width=1.2pt")
    if node.returned:
        style.append("double")
    text = escaped(node.label)
    if node.note:
        text += rf"\\{{\scriptsize {escaped(node.note)}}}"
    return rf"  \node[{', '.join(dict.fromkeys(style))}] ({name}) at ({place.x:.2f}, {place.y:.2f}) {{{text}}};"


def frames(graph: Diagram, ids: dict[str, str]) -> Iterator[str]:
    """A frame around all that stands in it, the inner ones first."""
    boxes = {box.id: box for box in sheet(graph).boxes}
    shown = [box for box in boxes.values() if box.drawn and holds(graph, box.id, boxes)]
    names = {box.id: f"b{number}" for number, box in enumerate(shown, 1)}
    for box in sorted(shown, key=lambda box: -depth(box, boxes)):
        held = [ids[node.id] for node in nodes(graph) if drawn_box(node.box, boxes) == box.id]
        held += [names[inner.id] for inner in shown if drawn_box(inner.parent, boxes) == box.id]
        fitted = "".join(f"({name})" for name in held)
        title = rf"label={{[font=\scriptsize, text=gray, anchor=south west]north west:{{{escaped(box.label)}}}}}"
        yield (
            r"  \begin{scope}[on background layer]"
            rf"\node[qvr frame, fit={fitted}, {title}] ({names[box.id]}) {{}};\end{{scope}}"
        )


def depth(box: Box, boxes: dict[str, Box]) -> int:
    count = 0
    while box.parent is not None:
        box = boxes[box.parent]
        count += 1
    return count


def wired(source: str, target: str, wire: Wire, ids: dict[str, str]) -> str:
    style = ["qvr wire" if wire.kind == "value" else "qvr returning"]
    if wire.mismatch:
        style.append("qvr wrong")
    if source == target:
        style.append("loop above")
    elif wire.kind == "state":
        style.append("bend right=40")
    label = f" node[qvr label] {{{escaped(wire.label)}}}" if wire.label else ""
    return rf"  \draw[{', '.join(style)}] ({ids[source]}) to{label} ({ids[target]});"


def escaped(text: str) -> str:
    """Text of plain ASCII in which TeX reads nothing as its own; what it has no letter for is shown by its number."""
    return "".join(map(_sign, text))


def _sign(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if character in SIGNS:
        return SIGNS[character]
    if character.isspace():
        return " "
    if " " < character < "\x7f":
        return character
    base, *marks = unicodedata.normalize("NFD", character)
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return rf"\{ACCENTS[marks[0]]}{{{base}}}"
    return f"U+{ord(character):04X}"


def comment(text: str) -> str:
    """Text for a comment of one line."""
    return "".join(sign if " " <= sign < "\x7f" else "?" for sign in text)
