"""The primitive functions of a loop, each with its value, its slope and its plain form: the one list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[[], object]
MANY = 1024
"""Numbers from which the sigmoid's speed outweighs two more operations."""


@dataclass(frozen=True, slots=True)
class Unary:
    """`calls` makes the calls that write f(z) into `out`; `slope` writes f'(z) into `out`, from f(z), so that f(z) may
    stand in the place of z, or with `of_argument` from z."""

    plain: Callable[[Tensor], Tensor]
    calls: Callable[[Tensor, Tensor], list[Call]]
    slope: Callable[[Tensor, Tensor], object]
    of_argument: bool = False

    def write(self, value: Tensor, out: Tensor) -> None:
        """f(value) into `out`, at once."""
        for call in self.calls(value, out):
            call()


@cache
def _vectorised_tanh() -> bool:
    """True where MKL's own tanh runs: elsewhere torch's takes some five times as long as its sigmoid."""
    try:
        return torch.backends.mkl.is_available() and "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@cache
def number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number as a tensor: operations convert a Python one each time."""
    return torch.tensor(value, dtype=dtype, device=device)


def _tanh(value: Tensor, out: Tensor) -> list[Call]:
    if value.numel() < MANY or _vectorised_tanh():
        return [partial(torch.tanh, value, out=out)]
    # tanh z = 2 σ(2z) − 1
    two, minus = (number(each, value.dtype, value.device) for each in (2.0, -1.0))
    return [
        partial(torch.mul, value, two, out=out),
        partial(torch.sigmoid, out, out=out),
        partial(torch.add, minus, out, alpha=2.0, out=out),
    ]


def _tanh_slope(value: Tensor, out: Tensor) -> None:
    torch.addcmul(number(1.0, value.dtype, value.device), value, value, value=-1.0, out=out)


def _sigmoid_slope(value: Tensor, out: Tensor) -> None:
    torch.addcmul(value, value, value, value=-1.0, out=out)


_softplus: Callable[..., Tensor] = torch._C._nn.softplus  # pyright: ignore


def _directly(function: Callable[..., Tensor], slope: Callable[[Tensor, Tensor], object]) -> Unary:
    """A function of torch whose slope is read off its value."""
    return Unary(function, lambda value, out: [partial(function, value, out=out)], slope)


def _of_argument(function: Callable[..., Tensor], slope: Callable[[Tensor, Tensor], object]) -> Unary:
    """A function of torch whose slope is one of its argument."""
    return Unary(function, lambda value, out: [partial(function, value, out=out)], slope, of_argument=True)


UNARY = {
    "sigmoid": Unary(torch.sigmoid, lambda value, out: [partial(torch.sigmoid, value, out=out)], _sigmoid_slope),
    "tanh": Unary(torch.tanh, _tanh, _tanh_slope),
    "relu": Unary(
        torch.relu,
        lambda value, out: [partial(torch.clamp, value, min=0.0, out=out)],
        lambda value, out: torch.gt(value, 0.0, out=out),
    ),
    "softplus": Unary(
        F.softplus,
        lambda value, out: [partial(_softplus, value, out=out)],
        lambda value, out: torch.sigmoid(value, out=out),
        of_argument=True,
    ),
    "exp": _directly(torch.exp, lambda value, out: out.copy_(value)),
    "expm1": _directly(torch.expm1, lambda value, out: torch.add(value, 1.0, out=out)),
    "sqrt": _directly(torch.sqrt, lambda value, out: torch.reciprocal(value, out=out).mul_(0.5)),
    "reciprocal": _directly(torch.reciprocal, lambda value, out: torch.mul(value, value, out=out).neg_()),
    "log": _of_argument(torch.log, lambda value, out: torch.reciprocal(value, out=out)),
    "log1p": _of_argument(torch.log1p, lambda value, out: torch.add(value, 1.0, out=out).reciprocal_()),
    "abs": _of_argument(torch.abs, lambda value, out: torch.sign(value, out=out)),
    "above_zero": Unary(
        lambda value: (value > 0.0).to(value.dtype),
        lambda value, out: [partial(torch.gt, value, number(0.0, value.dtype, value.device), out=out)],
        lambda value, out: out.zero_(),
    ),
    "sin": _of_argument(torch.sin, lambda value, out: torch.cos(value, out=out)),
    "cos": _of_argument(torch.cos, lambda value, out: torch.sin(value, out=out).neg_()),
}
BINARY: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


def took(out: Tensor, less: Tensor, more: Tensor) -> None:
    """1 where `less` is below `more`; both sides share a tie, as in torch."""
    torch.lt(less, more, out=out)
    out.add_(less == more, alpha=0.5)


def monomial(scale: float, add: bool, out: Tensor, *factors: Tensor) -> None:
    """out (+)= scale · Π factors."""
    if not factors:
        _ = out.add_(scale) if add else out.fill_(scale)
    elif len(factors) == 1:
        _ = out.add_(factors[0], alpha=scale) if add else torch.mul(factors[0], scale, out=out)
    elif add:
        first, *middle, last = factors
        for factor in middle:
            first = first * factor
        out.addcmul_(first, last, value=scale)
    else:
        torch.mul(factors[0], factors[1], out=out)
        for factor in factors[2:]:
            out.mul_(factor)
        if scale != 1.0:
            out.mul_(scale)
