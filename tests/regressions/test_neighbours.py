"""B8: the neighbour of an element of data is what it is written as, in values."""

from __future__ import annotations

import torch

from qvr_core.dsl import loads
from qvr_core.inference.trace import trace

TEXT = """
object Row : FinSet 3
object Column : FinSet 5
object Gap : FinSet 4
program p : Row -> Row
    data x : Row * Column
    sample b <- Normal(0.0, 1.0)
    let rise[i : Row, k : Gap] = x[i, k + 1] - x[i, k]
    let part[i : Row] = sum(x[i, k + 2] * x[i, k - 1] for k : Column if logical_and(k > 0, k < 3))
    let drawn[i : Row] = sum(b * x[i, k - 1] for k : Column if k > 0)
    return (rise, part, drawn)
"""
X = torch.tensor([[1.0, 3.0, 2.0, 7.0, 5.0], [0.0, 1.0, 4.0, 9.0, 16.0], [2.0, 2.0, 2.0, 2.0, 3.0]])


def test_b8_neighbours_of_data_have_their_values() -> None:
    model = loads(TEXT).morphism
    rise, part, drawn = trace(model, None, {"x": X, "b": torch.tensor(2.0)}).output
    torch.testing.assert_close(rise[0], X[:, 1:] - X[:, :-1], check_dtype=False)
    torch.testing.assert_close(part[0], X[:, 3] * X[:, 0] + X[:, 4] * X[:, 1], check_dtype=False)
    torch.testing.assert_close(drawn[0], 2.0 * X[:, :4].sum(1), check_dtype=False)
