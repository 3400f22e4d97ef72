"""Data that `data` steps declare: what is given is checked, and means the same as data that are not declared."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from qvr_core import dsl
from qvr_core.runtime.values.errors import InputProblem, MissingData

RADON = """
object County : FinSet 3
object House : FinSet 5
object Feature : {{basement, garden}}
program radon : House -> House
{data}    sample sigma <- HalfNormal(1.0)
    sample beta : Feature <- Normal(0.0, 1.0)
    sample mu : County <- Normal(u, 1.0)
    let eta = mu[county] + floor / n + matmul(x, beta) + w[0]
    observe y : House <- Normal(eta, sigma)
    return sigma
"""
DECLARED = RADON.format(
    data="""    data county : House -> County
    data floor, y : House
    data u : County
    data x : House * Feature
    data n : Nat
    data w : Simplex 2
"""
)
GIVEN: dict[str, Any] = {
    "county": torch.tensor([0, 1, 2, 0, 1]),
    "floor": torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0]),
    "y": torch.tensor([0.2, 1.3, -0.4, 0.7, 0.1]),
    "u": torch.tensor([0.3, -0.2, 0.1]),
    "x": torch.arange(10.0).reshape(5, 2) / 10,
    "n": 2,
    "w": torch.tensor([0.25, 0.75]),
}
LATENTS = {"sigma": torch.tensor([0.7]), "beta": torch.tensor([[0.4, -0.3]]), "mu": torch.tensor([[0.1, 0.5, -0.2]])}


def test_the_density_is_that_of_undeclared_data() -> None:
    declared, plain = dsl.loads(DECLARED).morphism, dsl.loads(RADON.format(data="")).morphism
    values = {**LATENTS, "y": GIVEN["y"]}
    given = {name: value for name, value in GIVEN.items() if name != "y"}
    densities = [
        dsl.loads(text, data=given).morphism.log_joint(None, values) for text in (DECLARED, RADON.format(data=""))
    ]
    torch.testing.assert_close(densities[0], densities[1])
    assert declared.program.data[0].declared and not plain.program.data[0].declared


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("county", torch.tensor([0, 1, 3, 0, 1]), "0 … 2 of shape (5,) (`House -> County`), found 3 at [2]"),
        ("county", torch.tensor([0.0, 0.5, 1, 0, 1]), "found 0.5 at [1]"),
        ("floor", torch.ones(4), "numbers of shape (5,) (`House`), found shape (4,)"),
        ("u", torch.tensor([1.0, float("nan"), 2.0]), "found missing at [1]"),
        ("x", torch.ones(2, 5), "numbers of shape (5, 2) (`House * Feature`), found shape (2, 5)"),
        ("n", 2.5, "one whole number from 0 (`Nat`), found 2.5"),
        ("n", -1, "found -1"),
        ("n", "two", "found text"),
        ("w", torch.tensor([0.25, 0.5]), "shape (2,) (`Simplex 2`), found probabilities that add up to 0.75"),
        ("y", torch.ones(6), "numbers of shape (5,) (`House`), found shape (6,)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(name: str, value: Any, said: str) -> None:
    model = dsl.loads(DECLARED).morphism
    with pytest.raises(InputProblem) as problem:
        model.rsample(observations={**GIVEN, name: value})
    assert str(problem.value).startswith(f"`radon`, data `{name}`: expected ")
    assert said in str(problem.value)
    assert problem.value.site == name


def test_whole_numbers_come_as_floats_too_and_truth_values_as_they_are() -> None:
    text = """
object R : FinSet 3
object S : FinSet 2
program p : R -> R
    data s : R -> S
    data b : R -> Bool
    sample a : S <- Normal(0.0, 1.0)
    let m = a[s] * b
    return m
"""
    model = dsl.loads(text).morphism
    given = {"s": [0.0, 1.0, 1.0], "b": torch.tensor([True, False, True])}
    drawn = model.rsample(observations=given)
    assert drawn.shape == (1, 3)
    assert drawn[0, 1] == 0


def test_missing_data_are_named() -> None:
    with pytest.raises(MissingData, match="needs data `floor`"):
        dsl.loads(DECLARED).morphism.rsample(observations={k: v for k, v in GIVEN.items() if k != "floor"})


def test_a_draw_without_axes_takes_those_of_the_data() -> None:
    text = """
object R : FinSet 4
program q : R -> R
    data y : R
    sample m <- Normal(0.0, 1.0)
    observe y <- Normal(m, 1.0)
    return y
"""
    drawn = dsl.loads(text).morphism.rsample()
    assert drawn.shape == (1, 4)
    assert drawn.unique().numel() == 4


def test_declared_data_may_be_returned() -> None:
    text = "object R : FinSet 2\nprogram q : R -> R\n    data y : R\n    return y\n"
    assert dsl.loads(text, data={"y": [1.0, 2.0]}).morphism.rsample().tolist() == [[1.0, 2.0]]
