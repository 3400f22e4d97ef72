"""Joins that the checker says to start at their bound have no gradient, and with its fix they have one."""

from __future__ import annotations

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import loads

EXPRESSIONS = {
    "f >> g": ("A", "B", 4096),
    "f.marginalize(B)": ("A", "B * A", 4096),
    "f.trace(B)": ("A * B", "A * B", 256),
}


def text_of(composition: str, expression: str) -> str:
    domain, codomain, size = EXPRESSIONS[expression]
    return f"""composition {composition}
object A : FinSet 3
object B : FinSet {size}
morphism f : {domain} -> {codomain} [role=latent]
morphism g : B -> A [role=latent]
let h = {expression}
export h
"""


def fixed(text: str) -> str:
    """The text with the fix of its warning."""
    (found,) = [each for each in analyse(text).diagnostics() if each.code.name == "saturated-join"]
    lines = text.split("\n")
    for edit in sorted(found.fixes[0].edits, key=lambda each: each.range.start, reverse=True):
        line, (start, end) = lines[edit.range.start.line], (edit.range.start.column, edit.range.end.column)
        lines[edit.range.start.line] = line[:start] + edit.text + line[end:]
    return "\n".join(lines)


def start(text: str) -> tuple[torch.Tensor, float]:
    """The joins at the start, and the largest gradient that reaches a weight."""
    torch.manual_seed(0)
    module = loads(text).morphism
    matrix = module.matrix()
    matrix.sum().backward()
    return matrix.detach(), max(float(weight.grad.abs().max()) for weight in module.parameters())


@pytest.mark.parametrize("composition", ["product_fuzzy", "lukasiewicz"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_saturated_join_has_no_gradient_and_its_fix_one(composition: str, expression: str) -> None:
    text = text_of(composition, expression)
    joins, gradient = start(text)
    assert bool((joins == 1.0).all()) and gradient == 0.0
    better = fixed(text)
    assert not [each for each in analyse(better).diagnostics() if each.code.name == "saturated-join"]
    joins, gradient = start(better)
    assert float(joins.min()) > 0.4 and float(joins.max()) < 0.7 and gradient > 1e-4


NEAR = {"godel": 0.02, "counting": 3.0, "real": -1.5, "log_prob": -4.0}


@pytest.mark.parametrize("composition", NEAR)
def test_weights_start_near_the_number_of_init(composition: str) -> None:
    near = NEAR[composition]
    text = f"composition {composition}\nobject A : FinSet 20\nexport f\n"
    matrix, _ = start(text + f"morphism f : A -> A [role=latent, init={near}, scale=0.01]\n")
    assert torch.allclose(matrix, torch.full_like(matrix, near), rtol=0.05)
