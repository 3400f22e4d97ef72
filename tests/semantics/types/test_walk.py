"""The walk over the typed model leaves no arrow, no arithmetic and no step out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from qvr_core.semantics.types.model.arrows import ArrowBase, Instance
from qvr_core.semantics.types.model.expressions import ExprBase
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    Chain,
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
)
from qvr_core.semantics.types.walk import children, walk
from tests.standalone import standalone

ROOT = Path(__file__).resolve().parents[3]
TEXTS = sorted((ROOT / "examples").glob("?*.qvr")) + sorted((ROOT / "tests" / "spec").rglob("*.md"))
NODES = (
    ArrowBase,
    ExprBase,
    Program,
    SampleModel,
    ObserveModel,
    PredictModel,
    MarginalizeModel,
    LetModel,
    ParamModel,
    ScoreModel,
)
INSIDE = (Site, ArrowDraw, FamilyDraw, Chain, IndexedValue)
OWN = {(Instance, "arguments"), (Program, "lengths"), (Program, "own")}
"""What an instance is given, or makes, stands in its program; `lengths` is no step."""


def below(value: Any) -> Iterator[Any]:
    for field in fields(value):
        if (type(value), field.name) not in OWN:
            yield from nodes(getattr(value, field.name))


def nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, NODES):
        yield value
    elif isinstance(value, INSIDE):
        yield from below(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from nodes(item)


def models(path: Path) -> Iterator[Model]:
    text = path.read_text(encoding="utf-8")
    blocks = [block.split("\n", 1)[1] for block in text.split("```")[1::2]] if path.suffix == ".md" else [text]
    return (standalone(block).model for block in blocks)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
@pytest.mark.sampled(4)
def test_children_are_all_nodes(path: Path) -> None:
    for model in models(path):
        lets = [let.arrow for let in model.lets.values()]
        for root in (*model.arrows.values(), *lets, *model.programs.values()):
            for node in walk(root, children):
                assert set(map(id, children(node))) == set(map(id, below(node))), type(node).__name__
