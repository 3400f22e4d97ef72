"""A diagram on a page of HTML: laid out without a program, in the colours of the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from qvr_core import diagrams
from qvr_core.analysis import Analyzer
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
