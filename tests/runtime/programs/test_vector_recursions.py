"""Recursions whose elements are vectors or matrices, against loops in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition, densities, substitute

PROGRAM = """
object Time : FinSet 6
object State : FinSet 3
object Group : FinSet 2
program p : Time -> Real 1
    sample A[i : State, j : State] <- Normal(0.0, 1.0)
    sample v0 : State <- Normal(0.0, 1.0)
    sample g0[g : Group, s : State] <- Normal(0.0, 1.0)
    data h : Time * State
    data f : Time -> Real 3
    data w : Group * Time
    {line}
    return v
"""
Values = dict[str, Tensor]


def numbers() -> Values:
    generator = torch.Generator().manual_seed(3)
    shapes = {"A": (2, 3, 3), "v0": (2, 3), "g0": (2, 2, 3), "h": (6, 3), "f": (6, 3), "w": (2, 6)}
    found = {
        name: torch.randn(*shape, generator=generator, dtype=torch.float64) * 0.5 for name, shape in shapes.items()
    }
    return {name: value.requires_grad_() if name in ["A", "v0", "g0"] else value for name, value in found.items()}


def mapped(x: Values, v: Tensor) -> Tensor:
    return torch.einsum("bij,b...j->b...i", x["A"], v)


CASES: dict[str, tuple[str, Callable[[Values], Tensor], Callable[[Values, Tensor, int], Tensor]]] = {
    "a map": (
        "let v[t : Time] = matmul(A, v[t - 1]) + h[t] from v0",
        lambda x: x["v0"],
        lambda x, v, t: mapped(x, v) + x["h"][t],
    ),
    "from the left": (
        "let v[t : Time] = tanh(matmul(v[t - 1], A)) + h[t - 1] from v0",
        lambda x: x["v0"],
        lambda x, v, t: torch.einsum("bi,bij->bj", v, x["A"]).tanh() + x["h"][t - 1],
    ),
    "each entry by itself": (
        "let v[t : Time] = 0.5 * v[t - 1] + h[t] from v0",
        lambda x: x["v0"],
        lambda x, v, t: 0.5 * v + x["h"][t],
    ),
    "entries without a set": (
        "let v[t : Time] = 0.5 * v[t - 1] + f[t] from [0.1, 0.2, 0.3]",
        lambda x: torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64).expand(2, 3),
        lambda x, v, t: 0.5 * v + x["f"][t],
    ),
    "a choice": (
        "let v[t : Time] = where(v[t - 1] > 0, v[t - 1]^2, h[t]) from 2.0 * v0",
        lambda x: 2.0 * x["v0"],
        lambda x, v, t: torch.where(v > 0, v**2, x["h"][t]),
    ),
    "a sum over entries": (
        "let v[t : Time, i : State] = sum(A[i, j] * v[t - 1, j] for j : State) + h[t, i] from v0[i]",
        lambda x: x["v0"],
        lambda x, v, t: mapped(x, v) + x["h"][t],
    ),
    "normalised": (
        "let v[t : Time] = softmax(matmul(A, v[t - 1])) from v0",
        lambda x: x["v0"],
        lambda x, v, t: mapped(x, v).softmax(-1),
    ),
    "groups": (
        "let v[g : Group, t : Time] = matmul(A, v[g, t - 1]) * w[g, t] from g0[g]",
        lambda x: x["g0"],
        lambda x, v, t: mapped(x, v) * x["w"][:, t, None],
    ),
    "groups behind": (
        "let v[t : Time, g : Group] = matmul(A, v[t - 1, g]) + v[t - 1, g, 0] * w[g, t] from g0[g]",
        lambda x: x["g0"],
        lambda x, v, t: mapped(x, v) + v[..., :1] * x["w"][:, t, None],
    ),
    "matrices": (
        "let v[t : Time] = matmul(A, matmul(v[t - 1], A)) from A",
        lambda x: x["A"],
        lambda x, v, t: x["A"] @ v @ x["A"],
    ),
    "a vector for all groups": (
        "let v[g : Group, t : Time] = matmul(A, v[g, t - 1]) * w[g, t] from v0",
        lambda x: x["v0"].unsqueeze(1).expand(2, 2, 3),
        lambda x, v, t: mapped(x, v) * x["w"][:, t, None],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_vectors_of_a_recursion_are_those_of_a_loop(name: str) -> None:
    line, first, step = CASES[name]
    program = dsl.loads(PROGRAM.format(line=line)).programs["p"]
    given = numbers()
    data = {key: value for key, value in given.items() if key in ("h", "f", "w") and key in program.wanted_data}
    latents = {key: given[key] for key in ("A", "v0", "g0")}
    found = program.execute(None, condition(data), substitute(latents), densities(False)).output
    assert isinstance(found, Tensor)
    elements = [first(given)]
    for t in range(1, 6):
        elements.append(step(given, elements[-1], t))
    wanted = torch.stack(elements, 2 if "[g : Group, t" in line else 1)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    weight = torch.linspace(0.5, 2.0, wanted.numel(), dtype=torch.float64).reshape(wanted.shape)
    every = list(latents.values())
    if not wanted.requires_grad:
        return
    slopes = torch.autograd.grad((found * weight).sum(), every, allow_unused=True)
    by_loop: list[Any] = list(torch.autograd.grad((wanted * weight).sum(), every, allow_unused=True))
    for one, two in zip(slopes, by_loop, strict=True):
        if two is not None:
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("right", ["z", "h[t]", "m[t]"])
def test_a_product_for_each_index(right: str) -> None:
    """`matmul(A, h[t])`: one product for each t, not one with the axis of t."""
    text = f"""
object Time : FinSet 4
object State : FinSet 3
object Other : FinSet 2
object Third : FinSet 2
program p : Time -> Real 1
    sample A[i : Other, j : State] <- Normal(0.0, 1.0)
    data z : State
    data h : Time * State
    data m : Time * State * Third
    let v[t : Time] = matmul(A, {right}) * (1 + t)
    return v
"""
    program = dsl.loads(text).programs["p"]
    generator = torch.Generator().manual_seed(1)
    data = {
        name: torch.randn(*size, generator=generator, dtype=torch.float64)
        for name, size in {"z": (3,), "h": (4, 3), "m": (4, 3, 2)}.items()
        if name in program.wanted_data
    }
    a = torch.randn(1, 2, 3, generator=generator, dtype=torch.float64)
    found = program.execute(None, condition(data), substitute({"A": a}), densities(False)).output
    assert isinstance(found, Tensor)
    one = data[right[0]]
    each = [a[0] @ (one if right == "z" else one[t]) * (1 + t) for t in range(4)]
    torch.testing.assert_close(found[0], torch.stack(each))
