"""The walk over the tree leaves no node out, and goes by the order of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from qvr_core.syntax.placing import units_of
from qvr_core.syntax.statements import Document
from qvr_core.syntax.walk import children, walk
from tests.syntax.samples import SAMPLES

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted((ROOT / "examples").glob("?*.qvr")) + sorted((ROOT / "tests" / "spec").rglob("*.md"))


def below(node: Any) -> Iterator[Any]:
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if is_dataclass(item):
                yield item


def trees(path: Path) -> Iterator[Any]:
    text = path.read_text(encoding="utf-8")
    blocks = [block.split("\n", 1)[1] for block in text.split("```")[1::2]] if path.suffix == ".md" else [text]
    for block in blocks:
        for statement in Document(block).statements:
            yield from (placed.unit.node for placed in units_of(statement) if placed.unit.node is not None)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_children_are_all_nodes_in_the_order_of_the_text(path: Path) -> None:
    for tree in trees(path):
        check(tree)


@pytest.mark.parametrize("name", SAMPLES)
def test_children_of_the_samples(name: str) -> None:
    for statement in Document(SAMPLES[name]).statements:
        for placed in units_of(statement):
            check(placed.unit.node)


def check(tree: Any) -> None:
    for node in walk(tree):
        found = children(node)
        assert sorted(map(id, found)) == sorted(map(id, below(node))), type(node).__name__
        starts = [child.span.start for child in found]
        assert starts == sorted(starts), type(node).__name__
