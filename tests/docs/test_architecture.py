"""The architecture page and the rooms' READMEs speak of files and rooms that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_layers import LAYERS, ROOMS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for package in ("qvr_core", "qvr_lsp", "scripts", "tests", "benchmarks")
    for path in (ROOT / package).rglob("*")
    if path.suffix in (".py", ".json", ".lark", ".md", ".qvr")
]


LAYER_FOLDERS = [ROOT / "qvr_core" / name for row in LAYERS for name in row if (ROOT / "qvr_core" / name).is_dir()]
ROOM_FOLDERS = [
    *(ROOT / name for name in ("qvr", "qvr_lsp")),
    *LAYER_FOLDERS,
    *(ROOT / "qvr_core" / layer / room for layer, rooms in ROOMS.items() for room in rooms),
]
LONGEST = 7_000
"""Characters of a README: about a page."""


def absent(text: str) -> set[str]:
    """The files that a text names and that are not there."""
    named = set(re.findall(r"`([\w/.]+\.(?:py|json|lark))`", text))
    assert named
    return {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in SOURCES)}


def test_every_file_it_names_is_there() -> None:
    assert not absent(TEXT)


@pytest.mark.parametrize("folder", ROOM_FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_room_explains_itself(folder: Path) -> None:
    """On a page: why it is so, what crosses its border, where to start; and the files that it names are there."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    for said in ("**Why it is as it is.**", "**What crosses the border**", "Start reading at"):
        assert said in text
    assert len(text) < LONGEST
    assert not absent(text) - {"summary.json", "qvr.toml"}
    missing = {name for name in re.findall(r"^\| `([a-z_/]+)/` ", text, re.MULTILINE) if not (folder / name).is_dir()}
    assert not missing


def test_every_module_it_names_is_there() -> None:
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in SOURCES}
    named = set(re.findall(r"`(qvr_(?:core|lsp)(?:\.[a-z_]+)*)`", TEXT))
    assert named <= modules | {"qvr_core", "qvr_lsp"}


@pytest.mark.parametrize("layer", ROOMS)
def test_it_lists_the_rooms_of_a_layer_in_their_order(layer: str) -> None:
    (line,) = re.findall(rf"^- `{layer}`: (.*)$", TEXT, re.MULTILINE)
    known = [name for name in re.findall(r"`(\w+)`", line) if name in ROOMS[layer]]
    assert known == list(ROOMS[layer])
