"""The least that a row's work takes here: its matrix products, its functions and its noise alone, measured beside it.

Nothing of a program is in it: each call is torch's own, of the shapes that the row has, into a buffer that is there
already.  What the row takes can only come near it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.inference_steps import by_turns

Call = Callable[[], object]
Product = tuple[int, int, int, int, int]
"""Matrices side by side, rows, inner and outer width, and how often."""


@dataclass(frozen=True)
class Work:
    """`functions` are each a function of torch, of how many numbers, and how often; `noise` is how many are drawn;
    `weights` are given gradients, of which torch keeps account one by one."""

    products: Sequence[Product]
    functions: Sequence[tuple[Callable[..., Tensor], int, int]]
    noise: int
    weights: Sequence[Tensor] = ()

    @property
    def flop(self) -> float:
        """Floating-point operations of the products."""
        return sum(2.0 * many * rows * inner * outer * count for many, rows, inner, outer, count in self.products)

    def calls(self) -> tuple[list[Call], list[Call], list[Call], list[Call]]:
        """Products, functions, noise and gradients of weights, each call bound to buffers of its own shape."""
        products: list[Call] = []
        for many, rows, inner, outer, count in self.products:
            left, right, out = (
                torch.randn(many, rows, inner),
                torch.randn(many, inner, outer),
                torch.empty(many, rows, outer),
            )
            multiply = partial(torch.bmm, left, right, out=out)
            alone = partial(torch.mm, left[0], right[0], out=out[0])
            products += [alone if many == 1 else multiply] * count
        functions: list[Call] = []
        for function, numbers, count in self.functions:
            value = torch.randn(numbers)
            functions += [partial(function, value)] * count
        return products, functions, [partial(torch.randn, self.noise)], [partial(_handed_out, self.weights)]


def _handed_out(weights: Sequence[Tensor]) -> None:
    """A gradient for each weight, by one function of autograd that computes nothing."""
    if weights:
        for weight in weights:
            weight.grad = None
        _Nothing.apply(*weights).backward()  # pyright: ignore[reportAttributeAccessIssue]


class _Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> Tensor:
        ctx.shapes = [weight.shape for weight in weights]
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All gradients, as views of one block."""
        block = torch.empty(sum(shape.numel() for shape in ctx.shapes))
        parts = block.split([shape.numel() for shape in ctx.shapes])
        return tuple(part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))


def scans(rows: int, length: int, cells: int, hidden: int, size: int) -> Work:
    """Loss and gradient of so many scans of tanh cells with a Normal head: what cannot be left out of their steps.

    The first layer's share of the items, the head of the model and all sums are.
    """
    steps, outer = length * cells, 2 * size
    forwards = [(1, rows, size, hidden, steps), (1, rows, hidden, hidden, steps), (1, rows, hidden, outer, steps)]
    backwards = [(1, rows, outer, hidden, steps), (1, rows, hidden, hidden, steps), (1, rows, hidden, size, steps)]
    seen = rows * length
    weights = [(1, hidden, seen, size, cells), (1, hidden, seen, hidden, cells), (1, outer, seen, hidden, cells)]
    functions = [(torch.tanh, rows * hidden, 2 * steps), (F.softplus, rows * size, steps),
                 (torch.sigmoid, seen * size, cells)]  # fmt: skip
    return Work([*forwards, *backwards, *weights], functions, seen * size * cells)


def chain(rows: int, stages: Sequence[tuple[int, int, int]], hidden: int, weights: Sequence[Tensor]) -> Work:
    """Loss and gradient of tanh networks in a row: by stage how many side by side, widths of input and value."""
    products: list[Product] = []
    functions: list[tuple[Callable[..., Tensor], int, int]] = []
    for many, inside, size in stages:
        for inner, outer in ((inside, hidden), (hidden, hidden), (hidden, 2 * size)):
            products += [(many, rows, inner, outer, 1), (many, rows, outer, inner, 1), (many, outer, rows, inner, 1)]
        functions += [(torch.tanh, many * rows * hidden, 2), (F.softplus, many * rows * size, 1),
                      (torch.sigmoid, many * rows * size, 1)]  # fmt: skip
    return Work(products, functions, sum(rows * many * size for many, _, size in stages), weights)


def least(works: Sequence[Work], repeats: int) -> list[tuple[float, ...]]:
    """Milliseconds of each one's products, functions, noise and gradients handed out, all by turns."""

    def run(calls: Sequence[Call]) -> None:
        for call in calls:
            call()

    parts = [calls for work in works for calls in work.calls()]
    found = by_turns([partial(run, calls) for calls in parts], repeats)
    return [tuple(found[at : at + 4]) for at in range(0, len(found), 4)]


def said(work: Work, spent: Sequence[float]) -> str:
    """The least of a row, in words."""
    products, functions, noise, handed = spent
    rate = work.flop / products / 1e6
    gradients = f", {len(work.weights)} gradients handed out {handed:.2f}" if work.weights else ""
    return (
        f"{sum(spent):.2f} ms at the least: products {products:.2f} ({rate:.0f} GFLOP/s), functions {functions:.2f}, "
        f"noise {noise:.2f}{gradients}"
    )
