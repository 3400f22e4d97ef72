"""TikZ: text that TeX reads as it is meant, and places that do not overlap."""

import re
import unicodedata
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qvr_core.analysis import analyse
from qvr_core.diagrams import Box, Diagram, NoDiagram, build, drawable, nodes, to_tikz, wires
from qvr_core.diagrams.layered import Place, placed
from qvr_core.diagrams.legend import with_legend
from qvr_core.diagrams.tikz import ACCENTS, LIBRARIES, SIGNS, SPECIAL, escaped, room, size
from tests.diagrams import models

ROOT = Path(__file__).resolve().parents[2]
NODE = re.compile(r"^  \\node\[([^\]]*)\] \((n\d+)\) at \((-?[\d.]+), (-?[\d.]+)\) \{(.*)\};$", re.MULTILINE)
WIRE = re.compile(r"^  \\draw\[([^\]]*)\] \((n\d+)\) to(?: node\[qvr label\] \{(.*)\})? \((n\d+)\);$", re.MULTILINE)


EXAMPLES = (
    *("bidirectional_rnn_lm", "seq2seq", "transformer_lm", "bert_pretraining", "lstm_lm", "radon", "state_space"),
    *("variational_autoencoder", "hidden_markov", "broken/widths_do_not_add_up"),
)


@cache
def drawings(example: str) -> list[tuple[str, Diagram]]:
    """All that can be drawn of an example."""
    path = ROOT / "examples" / f"{example}.qvr"
    snapshot = analyse(path.read_text(encoding="utf-8"))
    found: list[tuple[str, Diagram]] = []
    for name in drawable(snapshot.model):
        with suppress(NoDiagram):
            found.append((name, build(snapshot, name)))
    assert found
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_node_and_wire_is_drawn_once(example: str) -> None:
    for _, graph in drawings(example):
        text = to_tikz(graph)
        assert text.isascii()
        assert len(NODE.findall(text)) == len(list(nodes(with_legend(graph))))
        assert len(WIRE.findall(text)) == len(list(wires(graph)))
        bare = re.sub(r"\\\\|\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        styles = set(re.findall(r"(qvr \w+)/\.style", text))
        assert set(re.findall(r"qvr \w+", ", ".join(options for options, *_ in NODE.findall(text)))) <= styles
        assert set(re.findall(r"qvr \w+", ", ".join(options for options, *_ in WIRE.findall(text)))) <= styles


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("down", [False, True])
def test_nothing_overlaps_and_frames_hold_only_what_is_theirs(example: str, down: bool) -> None:
    framed = 0
    for _, bare in drawings(example):
        graph = with_legend(bare)
        known = {node.id: node for node in nodes(graph)}
        places = placed(graph, lambda one, known=known: size(known[one]), room, down=down)
        assert places.keys() == known.keys()
        found = list(places.values())
        for i, one in enumerate(found):
            assert not any(overlap(one, other) for other in found[i + 1 :])
        boxes = {box.id: box for box in graph.sheet.boxes}
        for box in boxes.values():
            inside = {node.id for node in known.values() if box.id in above(node.box, boxes)}
            if not inside or not box.drawn:
                continue
            framed += 1
            frame = around([places[node] for node in inside])
            assert not [node for node in known if node not in inside and overlap(frame, places[node])], box.id
    assert framed or example == "variational_autoencoder"


def above(box: str | None, boxes: dict[str, Box]) -> list[str]:
    chain: list[str] = []
    while box is not None:
        chain.append(box)
        box = boxes[box].parent
    return chain


def around(places: list[Place]) -> Place:
    left, right = min(p.x - p.width / 2 for p in places), max(p.x + p.width / 2 for p in places)
    low, high = min(p.y - p.height / 2 for p in places), max(p.y + p.height / 2 for p in places)
    return Place((left + right) / 2, (low + high) / 2, right - left, high - low)


def overlap(one: Place, other: Place) -> bool:
    wide, high = (one.width + other.width) / 2, (one.height + other.height) / 2
    return abs(one.x - other.x) < wide - 1e-9 and abs(one.y - other.y) < high - 1e-9


def test_values_flow_down_where_that_is_asked() -> None:
    text = to_tikz(build(models.bidirectional(), "bidirectional_rnn_lm"), "down")
    at = {text: float(y) for _, _, _, y, text in NODE.findall(text)}
    first = next(y for label, y in at.items() if label.startswith(r"tok\_embed"))
    last = next(y for label, y in at.items() if label.startswith(r"lm\_head"))
    assert first > next(y for label, y in at.items() if label.startswith("combine")) > last


def test_values_flow_to_the_right() -> None:
    text = to_tikz(build(models.bidirectional(), "bidirectional_rnn_lm"))
    at = {text: float(x) for _, _, x, _, text in NODE.findall(text)}
    first = next(x for label, x in at.items() if label.startswith(r"tok\_embed"))
    last = next(x for label, x in at.items() if label.startswith(r"lm\_head"))
    assert first < next(x for label, x in at.items() if label.startswith("combine")) < last
    assert r"scan \ensuremath{\rightarrow}" in text
    assert f"usetikzlibrary{{{','.join(LIBRARIES)}}}" in text


def test_a_mismatch_is_red() -> None:
    text = to_tikz(build(models.bidirectional(back=32), "bidirectional_rnn_lm"))
    wrong = [label for options, _, label, _ in WIRE.findall(text) if "qvr wrong" in options]
    assert any("64 + 32 = 96 does not fit Combined" in label for label in wrong)


COMMANDS = {made: sign for sign, made in (SPECIAL | SIGNS).items() if sign != "✗"}
PIECE = re.compile(
    "|".join([*map(re.escape, sorted(COMMANDS, key=len, reverse=True)), r"\\[^{]\{[A-Za-z]\}", "."]), re.DOTALL
)


def read(text: str) -> str:
    """What TeX would set for a text of `escaped`, in characters."""
    marks = {command: mark for mark, command in ACCENTS.items()}
    found: list[str] = []
    for piece in PIECE.findall(text):
        if piece in COMMANDS:
            found.append(COMMANDS[piece])
        elif len(piece) > 1:
            found.append(unicodedata.normalize("NFC", piece[3] + marks[piece[1]]))
        else:
            assert piece not in "\\{}$&#%_^~", text
            found.append(piece)
    return "".join(found)


@given(st.text())
def test_any_text_is_set_as_it_is(text: str) -> None:
    made = escaped(text)
    assert made.isascii() and made.isprintable()
    expected = "".join(
        " " if sign.isspace() else "×" if sign == "✗" else sign if read(escaped(sign)) == sign else f"U+{ord(sign):04X}"
        for sign in text
    )
    assert read(made) == expected


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_ascii_is_never_shown_by_number(text: str) -> None:
    assert read(escaped(text)) == text


def test_letters_of_europe_keep_their_accents() -> None:
    assert escaped("Zürich, naïve ß") == r"Z\"{u}rich{,} na\"{i}ve {\ss}"


def test_a_circle_of_values_is_drawn_all_the_same() -> None:
    graph = build(models.bidirectional(), "bidirectional_rnn_lm")
    source, target, wire = next(iter(wires(graph)))
    graph.leaving.setdefault(target, {}).setdefault(source, []).append(wire)
    assert len(WIRE.findall(to_tikz(graph))) == len(list(wires(graph)))
