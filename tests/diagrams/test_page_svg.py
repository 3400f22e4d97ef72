"""A diagram on a page of HTML: laid out without a program, in the colours of the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from qvr_core import diagrams
from qvr_core.analysis import Analyzer
from qvr_core.diagrams import routes
from qvr_core.diagrams.page_svg import to_page_svg

PROGRAM = """\
object Row : FinSet _
object Group : FinSet 3

program p : Row -> Row
    data x : Row
    data g : Row -> Group
    data y : Row
    sample tau <- HalfNormal(1.0)
    sample level[j : Group] <- Normal(0.0, tau)
    let centre[i : Row] = level[g[i]] + x[i]
    observe y[i : Row] <- Normal(centre[i], 1.0)
    predict again[i : Row] <- Normal(centre[i], 1.0)
    return y

export p
"""


def drawn(text: str) -> ET.Element:
    return ET.fromstring(to_page_svg(diagrams.build(Analyzer(text).snapshot(), "p"), "p & co"))


def test_each_node_looks_as_what_it_is_and_stands_within_the_picture() -> None:
    root = drawn(PROGRAM)
    looks = {one.get("class") for one in root if (one.get("class") or "").startswith("node")}
    assert {"node site latent", "node site observed", "node site predicted", "node data", "node let"} <= looks
    texts = [one.text for one in root if one.tag == "text"]
    assert {"tau", "level", "centre", "y", "x"} <= set(texts) and root.get("aria-label") == "p & co"
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for one in root:
        if one.tag == "rect":
            left, top = float(one.get("x", "nan")), float(one.get("y", "nan"))
            assert left >= 0 and left + float(one.get("width", "nan")) <= width
            assert top >= 0 and top + float(one.get("height", "nan")) <= height
    assert not re.search("NaN|nan", ET.tostring(root, encoding="unicode"))


def test_a_frame_holds_what_is_drawn_for_each_element_and_nothing_else() -> None:
    root = drawn(PROGRAM)
    plates = [one for one in root if one.get("class") == "plate"]
    edges = [
        (x, y, x + float(one.get("width", "nan")), y + float(one.get("height", "nan")))
        for one in plates
        if (x := float(one.get("x", "nan"))) is not None and (y := float(one.get("y", "nan"))) is not None
    ]
    tau = next(one for one in root if one.tag == "text" and one.text == "tau")
    level = next(one for one in root if one.tag == "text" and one.text == "level")

    def inside(text: ET.Element) -> int:
        x, y = float(text.get("x", "nan")), float(text.get("y", "nan"))
        return sum(left < x < right and top < y < bottom for left, top, right, bottom in edges)

    assert plates and inside(tau) == 0 and inside(level) == 1


EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("statistics/?*.qvr"), *EXAMPLES.glob("analyses/?*.qvr")])
Edges = tuple[float, float, float, float]


def rectangle(one: ET.Element) -> Edges:
    x, y = float(one.get("x", "nan")), float(one.get("y", "nan"))
    return x, y, x + float(one.get("width", "nan")), y + float(one.get("height", "nan"))


def around(one: ET.Element) -> Edges:
    """The rectangle of a node, whatever its shape."""
    if one.tag == "rect":
        return rectangle(one)
    x, y, wide, tall = (float(one.get(name, "nan")) for name in ("cx", "cy", "rx", "ry"))
    return x - wide, y - tall, x + wide, y + tall


def points(path: str) -> list[tuple[float, float]]:
    """Places along a path of curves of Bézier, its start and its end among them."""
    given = [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", path)]
    found = [given[0]]
    for at in range(0, len(given) - 1, 3):
        corners = given[at : at + 4]
        for t in (step / 40 for step in range(1, 41)):
            parts = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x = sum(part * corner[0] for part, corner in zip(parts, corners, strict=True))
            y = sum(part * corner[1] for part, corner in zip(parts, corners, strict=True))
            found.append((x, y))
    return found


def inside(edges: Edges, point: tuple[float, float], room: float = 0.0) -> bool:
    left, top, right, bottom = edges
    return left - room < point[0] < right + room and top - room < point[1] < bottom + room


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_page_of_650_pixels_shows_letters_as_large_as_they_are_and_no_wire_on_them(path: Path) -> None:
    snapshot = Analyzer(path.read_text(encoding="utf-8")).snapshot()
    root = ET.fromstring(to_page_svg(diagrams.build(snapshot, path.stem), "a program"))
    assert float(root.get("width", "nan")) <= 650 - 2 * 13
    drawn = [around(one) for one in root if (one.get("class") or "").startswith("node")]
    titles = [
        (float(one.get("x", "nan")), y - 9, float(one.get("x", "nan")) + 6 * len(one.text or ""), y + 2)
        for one in root
        if one.tag == "text" and one.get("text-anchor") is None and (y := float(one.get("y", "nan")))
    ]
    for one in root:
        if one.get("class") != "wire":
            continue
        way = points(one.get("d", ""))
        others = [node for node in drawn if not inside(node, way[0], 4) and not inside(node, way[-1], 4)]
        assert [node for node in [*others, *titles] if any(inside(node, point) for point in way)] == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_frames_that_do_not_hold_each_other_do_not_meet(path: Path) -> None:
    snapshot = Analyzer(path.read_text(encoding="utf-8")).snapshot()
    root = ET.fromstring(to_page_svg(diagrams.build(snapshot, path.stem), "a program"))
    plates = [rectangle(one) for one in root if one.get("class") == "plate"]
    for number, one in enumerate(plates):
        for two in plates[:number]:
            apart = one[0] >= two[2] or two[0] >= one[2] or one[1] >= two[3] or two[1] >= one[3]
            within = all(inside(two, corner) for corner in ((one[0], one[1]), (one[2], one[3])))
            assert apart or within, (one, two)


def test_ways_through_a_crowd_are_looked_for_so_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each detour may meet something else, on both of its sides."""
    looked, through = 0, routes._through  # pyright: ignore[reportPrivateUsage]

    def counted(points: list[routes.Point]) -> list[routes.Point]:
        nonlocal looked
        looked += 1
        return through(points)

    monkeypatch.setattr(routes, "_through", counted)
    steps = [f"    sample x{at} <- Normal({' + '.join(f'x{at - by}' for by in (1, 5, 11) if by <= at) or '0.0'}, 1.0)\n"
             for at in range(140)]  # fmt: skip
    text = "object Row : FinSet 5\nprogram p : Row -> Row\n" + "".join(steps) + "    return x139\n"
    wires = len([one for one in drawn(text) if "wire" in (one.get("class") or "")])
    assert wires > 300 and looked <= routes.TRIED + 2 * wires
