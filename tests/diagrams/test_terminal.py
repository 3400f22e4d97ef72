"""Diagrams as lines of text: what can be read off the drawing is what the graph says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.cli.files import analysed_file
from qvr_core.diagrams import Diagram, build, drawable, nodes, to_text, wires
from qvr_core.diagrams.terminal import MOST_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.qvr")) + sorted((ROOT / "examples" / "statistics").glob("*.qvr"))
LINES, KNOTS, ENDS = "│├┤┼┴╰╯─ ", "├┤┼┴╰╯", "┴╰╯"


def read(text: str) -> Counter[tuple[str, str]]:
    """Which row reads which, by following the lines with a finger: a column goes on from a mark through `│` and knots,
    and ends in the last of them; a mark right below another one reads it."""
    rows = text.splitlines()[1:-1]
    across = max(len(re.match(r"[│├┤┼┴╰╯─ ]*[^│├┤┼┴╰╯─ ]", row)[0]) for row in rows)
    found: Counter[tuple[str, str]] = Counter()
    carried: dict[int, str] = {}
    for row in rows:
        drawn, label = row[:across].rstrip(), re.split(r"  ", row[across:].strip())[0]
        (own,) = [at for at, sign in enumerate(drawn) if sign not in LINES]
        above, carried = (
            carried,
            {at: name for at, name in carried.items() if drawn[at : at + 1] in ("│", "├", "┤", "┼")},
        )
        for at, sign in enumerate(drawn):
            if sign in KNOTS:
                found[above[at], label] += 1
        if own in above:
            found[above[own], label] += 1
        carried[own] = label
    return found


def told(graph: Diagram, *kinds: str) -> Counter[tuple[str, str]]:
    """The wires of these kinds, by the labels of their ends."""
    label = {node.id: node.label for node in nodes(graph)}
    return Counter((label[a], label[b]) for a, b in {(a, b) for a, b, wire in wires(graph) if wire.kind in kinds})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_lines_of_every_example_lead_where_its_wires_do(path: Path) -> None:
    snapshot = analysed_file(str(path))
    for name in drawable(snapshot.model):
        graph = build(snapshot, name, fold=True)
        text = to_text(graph)
        # a wire from an earlier element is a line where it leads downwards, else it is words
        assert told(graph, "value", "index") <= read(text) <= told(graph, "value", "index", "state"), text


def picture(text: str) -> str:
    return to_text(build(analyse(text)))


def test_a_program() -> None:
    assert (
        to_text(build(analysed_file(str(ROOT / "examples" / "eight_schools.qvr"))))
        == """\
eight_schools : School 8 -> Real 8
○      mu  Normal(0, 5)
│ ○    tau  HalfCauchy(5)
│ │ ○  z  Normal(0.0, 1.0)  [School (8)]
╰─┴─□  theta  mu + tau * z[s]  [School (8)]
■   │  standard_error  [School (8)]
╰───●  effect  Normal(theta[s], standard_error[s])  [School (8)]
○ latent   □ computed   ■ data   ● observed"""
    )


def test_what_nothing_reads_has_nothing_right_below_it() -> None:
    lines = picture(
        "program p : One -> One\n    sample a <- Normal(0.0, 1.0)\n    sample b <- Normal(0.0, 1.0)\n"
        "    sample c <- Normal(b, 1.0)\n    return c\n"
    ).splitlines()
    columns = {line.split("  ")[-2].strip(" │"): re.search("○", line).start() for line in lines[1:4]}
    assert len(columns) == 3
    assert [re.search("○", line).start() for line in lines[1:4]] == [0, 2, 2]


def test_what_comes_from_an_earlier_element_is_said() -> None:
    text = to_text(build(analysed_file(str(ROOT / "examples" / "gru_lm.qvr"))))
    (state,) = [line for line in text.splitlines() if "  state  " in line]
    assert state.endswith("from h2, earlier")


def test_more_values_than_columns_are_named_where_they_are_read() -> None:
    many = MOST_COLUMNS + 6
    steps = [f"    sample a{i} <- Normal(0.0, 1.0)" for i in range(many)]
    sums = " + ".join(f"a{i}" for i in range(many))
    text = picture(
        "\n".join(["program p : One -> One", *steps, f"    sample z <- Normal({sums}, 1.0)", "    return z", ""])
    )
    last = next(line for line in text.splitlines() if "  z  " in line)
    assert "from a" in last and max(len(line) for line in text.splitlines()) < 2 * MOST_COLUMNS + 300
