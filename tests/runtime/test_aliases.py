"""A function under another name is typed, explained and computed as the function itself."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import plain
from qvr_core.runtime.programs.functions import function
from qvr_core.runtime.values.cells import Cell
from qvr_core.semantics.language.builtins import ALIASES, BUILTINS
from qvr_core.semantics.types.model.steps import LetModel
from tests.ide.cases import at

ARGUMENTS = {1: "x", 2: "x, x"}


def typed(name: str) -> LetModel:
    count = BUILTINS[name].least + (BUILTINS[name].most is None)
    text = f"""object R : Real 2
program p(x) : R -> R
    let y = {name}({ARGUMENTS[count]})
    sample z <- Normal(x, 1.0)
    return z
"""
    (step, *_) = loads(text).model.programs["p"].steps
    assert isinstance(step, LetModel)
    return step


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_the_function(alias: str) -> None:
    name = ALIASES[alias]
    assert typed(alias).value.type == typed(name).value.type
    values = [Cell(torch.tensor([[0.25, -3.0]]), True)] * (2 if BUILTINS[name].least == 2 or name == "concat" else 1)
    keywords = {"min": Cell(torch.tensor(0.0), False)} if name == "clamp" else {}
    ours, theirs = function(alias)(values, keywords), function(name)(values, keywords)
    assert torch.equal(ours.value, theirs.value)


@pytest.mark.parametrize("alias", ALIASES)
def test_the_hover_of_an_alias_says_what_it_computes(alias: str) -> None:
    marked = f"object R : Real 2\nprogram p(x) : R -> R\n    let y = {alias[0]}$0{alias[1:]}(x, x)\n    return y\n"
    found = hover(*at(marked))
    assert found is not None
    signature, meaning, *_ = plain(found.content).split("\n\n")
    assert signature.startswith(f"{alias}(")
    assert meaning.lower().startswith(BUILTINS[ALIASES[alias]].summary.lower())


def test_every_function_is_computed() -> None:
    """But for the two that take a deduction, which are steps of their own."""
    for name in BUILTINS.keys() - {"parse", "compose"}:
        assert callable(function(name)), name
