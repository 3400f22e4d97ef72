"""A diagram as a JSON document of its own, with a schema: what `qvr diagram --format json` writes.

`python -m qvr_core.diagrams.json_document` writes the schema, docs/diagram.schema.json; a test keeps it fresh.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from qvr_core.diagrams.editor_json import Locate, to_json
from qvr_core.diagrams.graph import Diagram, drawn_box, sheet

VERSION = 1
"""Counts up when a field goes or changes its meaning; fields may be added without."""
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "diagram.schema.json"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Position(Part):
    line: int = Field(ge=0, description="Counted from 0.")
    character: int = Field(ge=0, description="In UTF-16 units from the start of the line, as in LSP.")


class Range(Part):
    start: Position
    end: Position = Field(description="Behind the last character.")


class Node(Part):
    id: str = Field(description="Unique in the diagram.")
    kind: Literal["input", "output", "arrow", "site", "let", "score", "data", "state", "operator", "box", "damaged"] = (
        Field(description="`box` is a frame that stands as one node, `damaged` what has an error.")
    )
    label: str
    note: str = Field(description="A second line, empty where there is none.")
    detail: str = Field(description="What an editor shows beside the pointer.")
    box: str | None = Field(description="The id of the frame that it stands in.")
    declared: str | None = Field(description="The morphism whose weights it holds.")
    shared: bool = Field(description="Whether another node holds the same weights.")
    sort: Literal["=>", "->", "-o", ""] = Field(description="Of an arrow: deterministic, sampled, tensor.")
    role: Literal["latent", "observed", "imputed", "predicted", "marginalized", ""] = Field(
        description="Of a site; `imputed` is observed, but for gaps that are latent."
    )
    site: str | None = Field(description="The name that a step gives to it.")
    returned: bool
    range: Range | None = Field(description="Where it is declared or drawn; null for what another file declares.")
    ranges: list[Range] = Field(description="All places that it stands for.")


class Wire(Part):
    source: str = Field(description="The id of the node that makes the value.")
    target: str = Field(description="The id of the node that takes it.")
    label: str
    space: str = Field(description="As the text has it, empty where it has none.")
    width: int | None = Field(description="In numbers; null where it is not known.")
    kind: Literal["value", "state", "index"] = Field(description="`state` goes from one time step to the next.")
    mismatch: str | None = Field(description="What does not fit.")
    range: Range | None


class Box(Part):
    id: str
    kind: Literal["scan", "stack", "repeat", "plate", "marginalize", "program", "fan"]
    label: str
    parent: str | None = Field(description="The id of the frame around it.")
    range: Range | None


class Document(Part):
    """A diagram of one let, program or morphism."""

    version: Literal[1] = VERSION
    name: str
    kind: Literal["let", "program", "morphism"]
    type: str
    nodes: list[Node]
    wires: list[Wire]
    boxes: list[Box]
    collapsed: list[str] = Field(description="Ids of nodes that stand for a frame, which would take too many.")


def to_document(graph: Diagram, locate: Locate) -> str:
    """The diagram as JSON text.  `locate` gives the range of a place, or None."""
    page = to_json(graph, locate)
    del page["dot"], page["saved"], page["mermaid"], page["legend"]
    boxes = {box.id: box for box in sheet(graph).boxes}
    for node in page["nodes"]:
        del node["home"]
        node["box"] = drawn_box(node["box"], boxes)
    for box in page["boxes"]:
        box["parent"] = drawn_box(box["parent"], boxes)
    return Document.model_validate(page).model_dump_json(indent=2) + "\n"


def schema() -> str:
    """The JSON Schema of a document."""
    made: dict[str, Any] = Document.model_json_schema(mode="serialization")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema(), encoding="utf-8")
