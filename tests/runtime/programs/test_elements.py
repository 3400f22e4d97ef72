"""Builtins in steps with indices mean what a loop over the elements means; the sets have one size, so that a mistaken
axis would not be noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads

linalg: Any = torch.linalg

HEADER = """
object School : FinSet 3
object Item : FinSet 3
object Feature : FinSet 3
program p : School -> School
    data x : School * Feature
    data z : Item * Feature
    data m : Feature * Feature
    data k : School * Feature * Feature
"""
ONE: list[tuple[str, Callable[[Tensor, Tensor, Tensor], Tensor]]] = [
    ("diag(x[s])", lambda x, m, k: torch.diag(x)),
    ("diag(k[s])", lambda x, m, k: torch.diag(k)),
    ("diag_embed(x[s])", lambda x, m, k: torch.diag(x)),
    ("outer(x[s], x[s])", lambda x, m, k: torch.outer(x, x)),
    ("cholesky(k[s])", lambda x, m, k: linalg.cholesky(k)),
    ("inverse(k[s])", lambda x, m, k: linalg.inv(k)),
    ("logdet(k[s])", lambda x, m, k: torch.logdet(k)),
    ("mv(cholesky(k[s]), x[s])", lambda x, m, k: linalg.cholesky(k) @ x),
    ("mv(diag(x[s]), x[s])", lambda x, m, k: x * x),
    ("bmm(diag(x[s]), k[s])", lambda x, m, k: torch.diag(x) @ k),
    ("unsqueeze(x[s], 0)", lambda x, m, k: x.unsqueeze(0)),
    ("unsqueeze(x[s], 1)", lambda x, m, k: x.unsqueeze(1)),
    ("transpose(k[s])", lambda x, m, k: k.T),
    ("transpose(k[s], 0, 1)", lambda x, m, k: k.T),
    ("sum(x[s], dim=0)", lambda x, m, k: x.sum()),
    ("sum(k[s], dim=0)", lambda x, m, k: k.sum(0)),
    ("sum(k[s], 1)", lambda x, m, k: k.sum(1)),
    ("softmax(x[s], dim=0)", lambda x, m, k: torch.softmax(x, 0)),
    ("softmax(k[s], dim=0)", lambda x, m, k: torch.softmax(k, 0)),
    ("cumsum(k[s], dim=0)", lambda x, m, k: k.cumsum(0)),
    ("size(k[s], 0)", lambda x, m, k: torch.tensor(3.0)),
    ("concat(x[s], m[0])", lambda x, m, k: torch.cat([x, m[0]])),
    ("concat(x[s], [1.0])", lambda x, m, k: torch.cat([x, torch.ones(1)])),
    ("concat(x[s, 0], x[s, 1])", lambda x, m, k: x[:2]),
    ("concat([x[s], m[0]])", lambda x, m, k: torch.cat([x, m[0]])),
    ("[x[s, 0], 1.0, x[s, 2]]", lambda x, m, k: torch.stack([x[0], torch.ones(()), x[2]])),
    ("sum([x[s, 0], x[s, 1]])", lambda x, m, k: x[:2].sum()),
    ("[x[s], m[0]]", lambda x, m, k: torch.stack([x, m[0]])),
    ("clamp(x[s], 0.0, x[s, 1])", lambda x, m, k: x.clamp(torch.zeros(()), x[1])),
    ("chunk(x[s], 3)[1]", lambda x, m, k: x[1]),
]


def _found(binders: str, expression: str) -> tuple[dict[str, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(1)
    root = torch.randn(3, 3, 3, generator=generator)
    data = {
        "x": torch.rand(3, 3, generator=generator),
        "z": torch.rand(3, 3, generator=generator),
        "m": torch.rand(3, 3, generator=generator),
        "k": root @ root.mT + torch.eye(3),
    }
    source = f"{HEADER}    let found[{binders}] = {expression}\n    return found\nexport p\n"
    return data, loads(source).morphism.rsample(None, observations=data)[0]


@pytest.mark.parametrize(("expression", "wanted"), ONE, ids=[one for one, _ in ONE])
def test_one_index(expression: str, wanted: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    data, found = _found("s : School", expression)
    each = [wanted(data["x"][s], data["m"], data["k"][s]) for s in range(3)]
    torch.testing.assert_close(found.float(), torch.stack(each).float())


TWO: list[tuple[str, Callable[[Tensor, Tensor, Tensor], Tensor]]] = [
    ("sum(x[s] * z[t])", lambda x, z, m: x @ z),
    ("sum((x[s] - z[t])^2)", lambda x, z, m: ((x - z) ** 2).sum()),
    ("max(minimum(x[s], z[t]))", lambda x, z, m: torch.minimum(x, z).max()),
    ("softmax(x[s] + z[t])", lambda x, z, m: torch.softmax(x + z, 0)),
    ("dot(x[s], z[t])", lambda x, z, m: x @ z),
    ("outer(x[s], z[t])", lambda x, z, m: torch.outer(x, z)),
    ("outer(z[t], x[s])[0, 1]", lambda x, z, m: z[0] * x[1]),
    ("concat(x[s], z[t])", lambda x, z, m: torch.cat([x, z])),
    ("concat(z[t], x[s, 0])", lambda x, z, m: torch.cat([z, x[:1]])),
    ("[x[s, 0], z[t, 1]]", lambda x, z, m: torch.stack([x[0], z[1]])),
    ("[z[t], x[s]]", lambda x, z, m: torch.stack([z, x])),
    ("clamp(x[s], 0.1, z[t, 1])", lambda x, z, m: x.clamp(torch.tensor(0.1), z[1])),
    ("sum(matmul(m, z[t]) * x[s])", lambda x, z, m: (m @ z) @ x),
    ("where(x[s] > z[t], x[s], z[t])", lambda x, z, m: torch.maximum(x, z)),
    ("z[t] * x[s, 1]", lambda x, z, m: z * x[1]),
]


@pytest.mark.parametrize(("expression", "wanted"), TWO, ids=[one for one, _ in TWO])
def test_two_indices(expression: str, wanted: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    data, found = _found("s : School, t : Item", expression)
    each = [[wanted(data["x"][s], data["z"][t], data["m"]) for t in range(3)] for s in range(3)]
    torch.testing.assert_close(found, torch.stack([torch.stack(row) for row in each]))
