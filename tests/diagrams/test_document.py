"""The JSON document of a diagram, and its schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from qvr_core.analysis import analyse
from qvr_core.cli.diagram import document
from qvr_core.diagrams import build, drawable, nodes
from qvr_core.diagrams.json_document import SCHEMA, VERSION, schema

ROOT = Path(__file__).resolve().parents[2]


def written(text: str) -> dict[str, Any]:
    snapshot = analyse(text)
    return json.loads(document(snapshot, build(snapshot)))


def test_the_schema_is_fresh() -> None:
    """`python -m qvr_core.diagrams.json_document` writes it."""
    assert SCHEMA.read_text(encoding="utf-8") == schema()


def test_the_schema_is_one_and_refuses_what_it_does_not_name() -> None:
    found = json.loads(schema())
    jsonschema.Draft202012Validator.check_schema(found)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 2}, found)


@pytest.mark.parametrize(
    "name",
    [
        "bidirectional_rnn_lm",
        "seq2seq",
        "eight_schools",
        "lstm_lm",
        "broken/widths_do_not_add_up",
        "broken/cyclic_lets",
    ],
)
def test_examples_are_written_as_the_schema_says(name: str) -> None:
    page = written((ROOT / "examples" / f"{name}.qvr").read_text(encoding="utf-8"))
    jsonschema.validate(page, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert page["version"] == VERSION
    ids = [node["id"] for node in page["nodes"]]
    boxes = {box["id"] for box in page["boxes"]}
    assert len(set(ids)) == len(ids)
    assert {end for wire in page["wires"] for end in (wire["source"], wire["target"])} <= set(ids)
    assert {node["box"] for node in page["nodes"]} <= boxes | {None}
    assert {box["parent"] for box in page["boxes"]} <= boxes | {None}


def test_a_node_has_the_range_of_its_declaration() -> None:
    page = written("object A : Real 3\nobject B : Real 2\nmorphism f : A -> B [role=linear]\nlet g = f\nexport g\n")
    (node,) = [node for node in page["nodes"] if node["label"] == "f"]
    assert node["range"] == {"start": {"line": 2, "character": 9}, "end": {"line": 2, "character": 10}}


def test_a_file_whose_imports_are_gone_is_drawn_all_the_same() -> None:
    """Nobody knows then which part of a value is whose."""
    snapshot = analyse((ROOT / "examples" / "mogrifier_rlstm_lm.qvr").read_text(encoding="utf-8"))
    assert "import-missing" in {found.code.name for found in snapshot.diagnostics()}
    for name in drawable(snapshot.model):
        assert nodes(build(snapshot, name))
