"""Recursive lets in a small program, with random data and latents."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition, densities, substitute
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.programs.steps import IndexedLet

PROGRAM = """
object Time : FinSet {time}
object Group : FinSet {group}
program p : Time -> Real 1
    sample a <- Uniform(0.0, 1.0)
    sample b[g : Group] <- Uniform(0.0, 1.0)
    {line}
    return {name}
"""


def model_of(line: str, name: str, time: int = 11, group: int = 3) -> ProgramModule:
    """The program with that line, which binds the names."""
    return dsl.loads(PROGRAM.format(line=line, name=name, time=time, group=group)).programs["p"]


def let_of(model: ProgramModule) -> IndexedLet:
    """Its recursive let."""
    return next(step for step in model.steps if isinstance(step, IndexedLet))


def data_and_latents(rows: int, time: int, group: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Data, and latents of so many executions."""
    generator = torch.Generator().manual_seed(time + rows)
    data = {
        "y": torch.randn(time, generator=generator, dtype=torch.float64),
        "w": torch.randn(group, time, generator=generator, dtype=torch.float64),
    }
    latents = {
        "a": torch.rand(rows, generator=generator, dtype=torch.float64).requires_grad_(),
        "b": torch.rand(rows, group, generator=generator, dtype=torch.float64).requires_grad_(),
    }
    return data, latents


def run(model: ProgramModule, data: dict[str, Tensor], latents: dict[str, Tensor]) -> tuple[list[Tensor], list[Any]]:
    """The names, and the gradients of a weighted sum of them in each latent."""
    read = {name: value for name, value in data.items() if name in model.wanted_data}
    output = model.execute(None, condition(read), substitute(latents), densities(False)).output
    parts = list(output) if isinstance(output, tuple) else [output]
    weight = [torch.linspace(0.5, 2.0, part.numel(), dtype=torch.float64).reshape(part.shape) for part in parts]
    total = torch.stack([(part * by).sum() for part, by in zip(parts, weight, strict=True)]).sum()
    return parts, list(torch.autograd.grad(total, list(latents.values()), allow_unused=True))
