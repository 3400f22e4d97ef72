"""The architecture page speaks of files and rooms that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_layers import ROOMS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for package in ("qvr_core", "qvr_lsp", "scripts", "tests", "benchmarks")
    for path in (ROOT / package).rglob("*")
    if path.suffix in (".py", ".json", ".lark", ".md", ".qvr")
]


def test_every_file_it_names_is_there() -> None:
    named = set(re.findall(r"`([\w/.]+\.(?:py|json|lark))`", TEXT))
    assert named
    missing = {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in SOURCES)}
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
