"""Links: from any raw numbers of a network to legal parameters of a family."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.semantics.language.family import Family, bounds_of
from qvr_core.semantics.types.spaces import Finite, Real, Space

SOFTPLUS_SHIFT = 0.541325
"""softplus(0.541325) = 1: a raw output of zero gives one."""
FLOOR = 0.001
_EDGE = 1e-6
"""How far from its ends, as a share, a number between two bounds stays."""
_LARGE = 1e4
"""Raw outputs are taken as at most this in size where a family's arithmetic would overflow."""

Params = tuple[Tensor, ...]
"""The parameters of a family in the runtime's form, in the order of its declaration."""

# How many parameters there are is the family's: a function is of one of these numbers of them, and each has its type.
R = TypeVar("R")
OfParameters: TypeAlias = (
    Callable[[Tensor], R]
    | Callable[[Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor], R]
)
"""A function of one to four parameters, given by place."""

OfValue: TypeAlias = (
    Callable[[Tensor], R]
    | Callable[[Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], R]
)
"""A function of a value, or of noise, and its parameters."""

OfTails: TypeAlias = (
    Callable[[Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], R]
    | Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], R]
)
"""A function of two tails, or of two ends, and parameters."""

Drawing: TypeAlias = (
    Callable[[tuple[int, ...], Generator | None], Tensor]
    | Callable[[tuple[int, ...], Generator | None, Tensor], Tensor]
    | Callable[[tuple[int, ...], Generator | None, Tensor, Tensor], Tensor]
    | Callable[[tuple[int, ...], Generator | None, Tensor, Tensor, Tensor], Tensor]
)
"""Draws of a shape from a generator and up to three parameters."""


@dataclass(frozen=True, slots=True)
class HeadPlan:
    """What a link knows of its kernel: where it lands, the option `scale`, and how the raw output is cut.

    `event_shape` is the family's own view of one value: () joint index, (d,) vector, (k, k) or (n, m) matrix.
    """

    family: Family
    codomain: Space
    scale: float
    options: Mapping[str, object]
    blocks: tuple[tuple[str, int], ...]
    event_shape: tuple[int, ...]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Those of the codomain."""
        return (self.codomain.low, self.codomain.high) if isinstance(self.codomain, Real) else (None, None)

    @property
    def trials(self) -> int:
        """The option `total`, or what a finite codomain says of it."""
        total, space = self.options.get("total"), self.codomain
        if isinstance(total, int):
            return total
        if isinstance(space, Finite) and isinstance(space.size, int):
            return space.size - 1
        return self.family.head_options["total"]

    def pieces(self, raw: Tensor) -> dict[str, Tensor]:
        """The raw output (…, P) by parameter, of a size that no family's arithmetic overflows on."""
        names, sizes = zip(*self.blocks, strict=True)
        return dict(zip(names, arrays.split(raw.clamp(-_LARGE, _LARGE), list(sizes), -1), strict=True))


Link = Callable[[HeadPlan, Tensor], Params]


def positive(raw: Tensor) -> Tensor:
    """softplus, 1 at raw 0, never below 1/1000."""
    return F.softplus(raw + SOFTPLUS_SHIFT) + FLOOR


def elementwise(head: HeadPlan, raw: Tensor) -> Params:
    """The default: real parameters as they are, positive ones by softplus, `scale` times the option `scale`."""
    pieces = head.pieces(raw)
    made: list[Tensor] = []
    for parameter in head.family.parameters:
        value = pieces[parameter.name]
        if parameter.constraint in ("positive", "positive vector"):
            value = positive(value)
        made.append(value * head.scale if parameter.name == "scale" else value)
    return tuple(made)


def by_constraint(head: HeadPlan, raw: Tensor) -> Params:
    """Of a declared family, each parameter by what it takes: numbers above a bound by softplus, between two by a
    sigmoid, a simplex by softmax, an ascending vector by sums of softplus.

    A parameter of single draws is (…, d) for d of them, its vectors (…, d, k); of one vector, or of one element of a
    set whose size the codomain says, (…) and (…, k).
    """
    made: list[Tensor] = []
    pieces = head.pieces(raw)
    one = bool(head.family.event) or not head.event_shape
    for parameter in head.family.parameters:
        value = pieces[parameter.name]
        if one and not parameter.rank:
            value = value.squeeze(-1)
        elif parameter.rank and not one:
            width = math.prod(head.event_shape)
            value = arrays.unflatten(value, -1, (width, value.shape[-1] // width))
        value = _legal(parameter.constraint, value)
        made.append(value * head.scale if parameter.name == "scale" else value)
    return tuple(made)


def _legal(constraint: str, value: Tensor) -> Tensor:
    if constraint in ("positive", "positive vector"):
        return positive(value)
    if constraint == "simplex":
        return (value.softmax(-1) + _EDGE) / (1.0 + _EDGE * value.shape[-1])
    if constraint == "ordered":
        first, rest = value[..., :1], value[..., 1:]
        return arrays.cat([first, first + positive(rest).cumsum(-1)], -1)
    low, high = (0.0, 1.0) if constraint == "unit" else bounds_of(constraint) or (None, None)
    if low is None:
        return value
    if high is None:
        return low + positive(value)
    return low + (high - low) * (_EDGE + (1.0 - 2.0 * _EDGE) * value.sigmoid())


def triangular(raw: Tensor, size: int, scale: float) -> Tensor:
    """A lower triangular matrix with a positive diagonal, `scale` · identity at raw 0."""
    rows, columns = arrays.tril_indices(size, size)
    matrix = raw.new_zeros(*raw.shape[:-1], size, size)
    matrix[..., rows, columns] = raw
    diagonal = positive(matrix.diagonal(dim1=-2, dim2=-1))
    return scale * (matrix.tril(-1) + arrays.diag_embed(diagonal))
