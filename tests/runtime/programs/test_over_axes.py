"""Reductions by the name of an axis, tables by ascription, arrows on values with axes: against plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition

HEADER = """
object Row : FinSet 5
object School : FinSet 3
object Feature : FinSet 4
object Hidden : Real 2
object Input : Real 4
object Number : Real 1
morphism f : Input -> Hidden [role=linear]
morphism g : Number -> Number [role=linear]
morphism h : Input * Number -> Number [role=linear]
morphism e : School -> Input [role=embed]
program p : Row -> Real 1
    data x : School * Row * Feature
    data w : Row * School
    data s : Row -> School
    sample a : Row <- Normal(0.0, 1.0)
    sample b : School <- Normal(0.0, 1.0)
"""


def _value(expression: str, ascription: str = "") -> tuple[Tensor, dict[str, Tensor], dsl.Model]:
    source = f"{HEADER}    let found{ascription} = {expression}\n    return found\nexport p\n"
    model = dsl.loads(source)
    torch.manual_seed(0)
    data = {"x": torch.randn(3, 5, 4), "w": torch.randn(5, 3), "s": torch.tensor([0, 2, 1, 1, 0])}
    run = model.morphism.execute(None, condition(data))
    sites = {name: record.value[0] for name, record in run.sites.items()}
    return run.output[0], {**data, **sites}, model


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("sum(x, over=Row)", lambda v: v["x"].sum(1)),
        ("logsumexp(x, over=(Feature, School))", lambda v: v["x"].logsumexp((0, 2))),
        ("mean(x, over=(Row, Feature))", lambda v: v["x"].mean((1, 2))),
        ("softmax(x, over=School)", lambda v: v["x"].softmax(0)),
        ("softmax(x, over=Feature)", lambda v: v["x"].softmax(2)),
        ("cumsum(x, over=Row)", lambda v: v["x"].cumsum(1)),
        ("std(x, over=School)", lambda v: v["x"].std(0)),
        ("max(w * a, over=Row)", lambda v: (v["w"] * v["a"][:, None]).amax(0)),
        ("sum(x, over=Row) / size(Row)", lambda v: v["x"].mean(1)),
        ("a + arange(Row)", lambda v: v["a"] + torch.arange(5)),
        ("ones(School, Row) * a", lambda v: v["a"].expand(3, 5)),
        ("matmul(w, b) - matmul(eye(Row), a)", lambda v: v["w"] @ v["b"] - v["a"]),
    ],
)
def test_axes_by_name(expression: str, wanted: object) -> None:
    found, values, _ = _value(expression)
    assert callable(wanted)
    assert torch.allclose(found, wanted(values), atol=1e-5)


def test_a_table_is_laid_out_as_the_step_says() -> None:
    found, v, _ = _value("a * exp(b) + w", " : School * Row")
    assert torch.allclose(found, (v["a"] * v["b"].exp()[:, None]) + v["w"].T, atol=1e-6)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("f(x)", lambda v, m: m.f(v["x"].reshape(-1, 4)).reshape(3, 5, 2)),
        ("g(w)", lambda v, m: m.g(v["w"].reshape(-1, 1)).reshape(5, 3)),
        ("g(a) + a", lambda v, m: m.g(v["a"].reshape(-1, 1)).reshape(5) + v["a"]),
        ("h(x, w)", lambda v, m: m.h(torch.cat([v["x"].reshape(-1, 4), v["w"].T.reshape(-1, 1)], 1)).reshape(3, 5)),
        (
            "h(x, b)",
            lambda v, m: m.h(torch.cat([v["x"].reshape(-1, 4), v["b"].repeat_interleave(5)[:, None]], 1)).reshape(3, 5),
        ),
        ("f(e(s))", lambda v, m: m.f(m.e(v["s"]))),
        ("f(e(s)) * a", lambda v, m: m.f(m.e(v["s"])) * v["a"][:, None]),
    ],
)
def test_an_arrow_runs_along_the_axes(expression: str, wanted: object) -> None:
    found, values, model = _value(expression)
    assert callable(wanted)
    program = model.morphism
    assert torch.allclose(found, wanted(values, program), atol=1e-5)


def _beside(vectors: Tensor, numbers: Tensor) -> Tensor:
    return torch.cat([vectors.reshape(-1, 4), numbers.reshape(-1, 1)], 1)
