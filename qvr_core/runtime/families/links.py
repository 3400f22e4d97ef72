"""Links: from any raw numbers of a network to legal parameters of a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.types.spaces import Finite, Real, Space

SOFTPLUS_SHIFT = 0.541325
"""softplus(0.541325) = 1: a raw output of zero gives one."""
FLOOR = 0.001
_LARGE = 1e4
"""Raw outputs are taken as at most this in size where a family's arithmetic would overflow."""

Params = tuple[Tensor, ...]
"""The parameters of a family in the runtime's form, in the order of its declaration."""


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
        return dict(zip(names, raw.clamp(-_LARGE, _LARGE).split(sizes, dim=-1), strict=True))


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


def triangular(raw: Tensor, size: int, scale: float) -> Tensor:
    """A lower triangular matrix with a positive diagonal, `scale` · identity at raw 0."""
    rows, columns = arrays.tril_indices(size, size)
    matrix = raw.new_zeros(*raw.shape[:-1], size, size)
    matrix[..., rows, columns] = raw
    diagonal = positive(matrix.diagonal(dim1=-2, dim2=-1))
    return scale * (matrix.tril(-1) + arrays.diag_embed(diagonal))
