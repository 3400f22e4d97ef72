"""`x[0, 1, 2]` of a space of several sizes: the number that torch has there, with values and slopes."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.runtime.values.errors import InputProblem

SOURCE = """
object Image : Real 3 4 5
object Slice : Real 4 5
object Row : FinSet 6
object Column : FinSet 5
morphism look : Image -> Real 2 4 5 [role=conv, padding=1]
morphism map : Slice -> Real 1 [role=linear]

program picture(x) : Image -> Real 1
    let h = relu(look(x))
    let m = x[0, 1, 2] + h[1, 3, -1] + map(x[1]) + sum(x[2, 0])
    observe y : Real 1 <- Normal(m, 1.0)
    return y

program pictures : One -> Real 1
    data image : Row -> Real 3 4 5
    data column : Row -> Column
    observe y[r : Row] <- Normal(image[r, 1, 2, column[r]] + mean(image[r, 0]) + map(image[r, 2]), 1.0)
    return y
export picture
"""


def test_rows_are_indexed_by_their_sizes() -> None:
    model = dsl.loads(SOURCE).programs["picture"]
    look, line = model.get_submodule("look"), model.get_submodule("map")
    x, y = torch.randn(7, 3, 4, 5, requires_grad=True), torch.randn(7, 1)
    h = torch.nn.functional.conv2d(x, look.weight, look.bias, padding=1).relu()
    m = x[:, 0, 1, 2] + h[:, 1, 3, -1] + line(x[:, 1].flatten(1))[:, 0] + x[:, 2, 0].sum(1)
    expected = Normal(m, 1.0).log_prob(y[:, 0])
    made = model.log_prob(model.input(x), y)
    torch.testing.assert_close(made, expected)
    (slopes,) = torch.autograd.grad(expected.sum(), x, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(made.sum(), x)[0], slopes)


def test_data_are_indexed_by_their_sets_and_sizes() -> None:
    model = dsl.loads(SOURCE).programs["pictures"]
    line = model.get_submodule("map")
    image, column, y = torch.randn(6, 3, 4, 5), torch.randint(5, (6,)), torch.randn(6)
    m = image[torch.arange(6), 1, 2, column] + image[:, 0].mean((1, 2)) + line(image[:, 2].flatten(1))[:, 0]
    made = model.log_joint(None, {"image": image, "column": column, "y": y})
    torch.testing.assert_close(made, Normal(m, 1.0).log_prob(y).sum()[None])


def test_an_index_beyond_its_axis_does_not_reach_into_the_next() -> None:
    model = dsl.loads(SOURCE).programs["pictures"]
    given = {"image": torch.randn(6, 3, 4, 5), "column": torch.tensor([0, 1, 2, 3, 4, 5]), "y": torch.randn(6)}
    with pytest.raises(InputProblem, match="column"):
        model.log_joint(None, given)


def test_a_convolution_says_what_shape_it_reads() -> None:
    model = dsl.loads(SOURCE).programs["picture"]
    with pytest.raises(InputProblem, match=r"`look` reads 60 numbers along the last axis, of shape \(3, 4, 5\)"):
        model.log_prob(torch.randn(7, 3, 4, 5), torch.randn(7, 1))
