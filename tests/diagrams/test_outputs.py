"""Mermaid, DOT, SVG, PNG and JSON."""

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from qvr_core.diagrams import NoDot, build, to_dot, to_json, to_mermaid, to_png, to_svg
from qvr_core.diagrams.dot import aside
from tests.diagrams import models

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz' dot is not installed")


def test_mermaid_is_a_flowchart_with_the_widths_on_its_wires() -> None:
    text = to_mermaid(build(models.bidirectional(), "bidirectional_rnn_lm"))
    assert text.startswith("flowchart LR\n")
    assert 'tok_embed -->|"Embedded 64"| fwd_cell' in text
    assert 'combine -->|"h : Combined 128"| lm_head' in text
    assert text.count("tok_embed[") == 1
    assert 'subgraph box_scan["scan →"]' in text
    assert text.count("subgraph") == text.count("\n    end\n") == 2


def test_mermaid_marks_a_mismatch_in_red() -> None:
    text = to_mermaid(build(models.bidirectional(back=32), "bidirectional_rnn_lm"))
    assert "64 + 32 = 96 does not fit Combined" in text
    assert "linkStyle" in text


def test_mermaid_survives_names_it_reserves_and_signs_it_reads() -> None:
    hidden = models.real("Hidden", 8)
    end = models.kernel("end", hidden, hidden)
    model = models.model([end], [models.let("graph", models.ref(end))], [])
    text = to_mermaid(build(model, "graph"))
    assert 'end_["end' in text
    schools = to_mermaid(build(models.schools(), "eight_schools"))
    assert '"' not in schools.split('theta("')[1].split('")')[0]


def test_dot_gives_every_node_an_id_and_a_class_for_the_editor() -> None:
    text = to_dot(build(models.bidirectional(), "bidirectional_rnn_lm"))
    (combine,) = [line for line in text.splitlines() if line.strip().startswith("combine [")]
    assert 'id="node:combine"' in combine and 'class="arrow sampled"' in combine
    assert "subgraph cluster_scan" in text
    assert "peripheries=2" in text


@needs_dot
def test_svg_is_xml_whose_groups_carry_the_ids() -> None:
    root = ET.fromstring(to_svg(build(models.bidirectional(back=32), "bidirectional_rnn_lm")))
    ids = {element.get("id") for element in root.iter()}
    assert {"node:tok_embed", "node:masked_token", "box:scan", "wire:fwd_cell:combine:0"} <= ids
    assert any("mismatch" in (element.get("class") or "") for element in root.iter())


@needs_dot
def test_png_is_a_png() -> None:
    assert to_png(build(models.schools(), "eight_schools")).startswith(b"\x89PNG")


def test_without_dot_the_message_says_what_to_install_and_what_works_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoDot, match=r"Install Graphviz.*Mermaid or DOT"):
        to_svg(build(models.schools(), "eight_schools"))


def test_json_has_ranges_for_every_node_and_is_plain() -> None:
    import json

    page = to_json(build(models.bidirectional(), "bidirectional_rnn_lm"), lambda origin: {"unit": origin.unit})
    assert json.loads(json.dumps(page)) == page
    node = next(node for node in page["nodes"] if node["id"] == "combine")
    assert node["range"] == node["ranges"][0]
    assert len(node["ranges"]) >= 3
    assert {box["kind"] for box in page["boxes"]} == {"scan"}


def test_drawing_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from tests.diagrams import models; from qvr_core.diagrams import build, to_dot, to_mermaid\n"
        "graph = build(models.long_chain(200), 'deep'); to_dot(graph), to_mermaid(graph)\n"
        "sys.exit(' '.join({'torch', 'numpy'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_labels_of_wires_have_room_for_wider_fonts() -> None:
    """Graphviz reckons with Helvetica; letters a fifth wider, set in the middle, do not reach the wire beside them."""
    for line in ("Seq Token 256", "h : Combined 128"):
        padded = aside(line)
        assert padded.strip() == line
        assert len(padded) - len(line) >= 0.2 * len(line)
    assert [line.strip() for line in aside("A 64  ✗ 64 is not 32").split("\\n")] == ["A 64", "✗ 64 is not 32"]
    assert aside("") == ""
