"""B6: what a function makes of a value over a set, as a list of as many, goes with values over the set elementwise."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference.trace import trace

TEXT = """
object Time : FinSet 6
object Part : FinSet 2
def change(z) = [z[1], -z[0]]
program p : Time -> Time
    sample a : Part <- Normal(0.0, 1.0)
    let {let} from {start}
    return z
"""
STEPS = {
    "pattern": ("(k, z)[t : Time] = (change(z[t - 1]), z[t - 1] + 0.1 * k[t])", "(a, a)"),
    "one name": ("z[t : Time] = z[t - 1] + 0.1 * change(z[t - 1])", "a"),
    "other side": ("z[t : Time] = 0.1 * change(z[t - 1]) + z[t - 1]", "a"),
}


@pytest.mark.parametrize("name", STEPS)
def test_b6_a_list_of_as_many_elements_meets_the_set(name: str) -> None:
    let, start = STEPS[name]
    a = torch.tensor([1.0, 2.0])
    z = trace(loads(TEXT.format(let=let, start=start)).morphism, None, {"a": a}).output[0]
    expected = [a]
    for _ in range(5):
        before = expected[-1]
        expected.append(before + 0.1 * torch.stack([before[1], -before[0]]))
    torch.testing.assert_close(z, torch.stack(expected))
