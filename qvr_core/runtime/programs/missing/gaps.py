"""Cells that the data of an observed step leave out: `[missing=impute]` and `[missing=drop]`.

A missing cell is NaN in what was given.  Filled-in values are latents: (B, n) numbers of one site, in the order of the
cells; where the support ties the numbers of a draw together, (B, n, …) whole draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.families.bijectors import Bound, Support, constrain, unconstrained_shape
from qvr_core.runtime.values.layout import Where

TOGETHER = frozenset(("ordered", "zero sum", "simplex", "cholesky", "correlation", "correlation matrix", "covariance"))
"""Supports that tie the numbers of one draw together."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Where a value has no numbers: `cells` (…) says which draws lack some, `index` (n,) which numbers, or, `whole`,
    which draws, counted from 0 in the value's order.  `filled` is the value with a stand-in there."""

    cells: Tensor
    index: Tensor
    filled: Tensor
    whole: bool
    partial: bool
    """True where a draw lacks some of its numbers only."""
    source: int
    """The draw that stands in, where one has all of its numbers."""

    def stood_in(self, option: Tensor) -> Tensor:
        """What an option says of each draw, (…, *cells); in the gaps what it says of the stand-in."""
        lead = option.ndim - self.cells.ndim
        if lead < 0 or option.shape[lead:] != self.cells.shape:
            return option
        one = option.reshape(*option.shape[:lead], -1)[..., self.source]
        return arrays.where(self.cells, one.reshape(*one.shape, *(1,) * self.cells.ndim), option)

    @property
    def count(self) -> int:
        return len(self.index)

    def completed(self, values: Tensor) -> Tensor:
        """The value with these in its gaps: (B, n, …) to (B, *shape)."""
        shape = self.filled.shape
        own = shape[self.cells.ndim :] if self.whole else ()
        flat = self.filled.reshape(1, -1, *own).expand(values.shape[0], -1, *own)
        return flat.index_copy(1, self.index, values.to(flat.dtype)).reshape(values.shape[0], *shape)

    def picked(self, value: Tensor) -> Tensor:
        """What stands in the gaps of a value: (B, *shape) to (B, n, …)."""
        own = self.filled.shape[self.cells.ndim :] if self.whole else ()
        return value.reshape(value.shape[0], -1, *own).index_select(1, self.index)

    def bound(self, bound: Bound) -> Bound:
        """A bound of every draw as that of what is missing."""
        if not is_tensor(bound) or bound.ndim == 0:
            return bound
        rows = bound.shape[: -self.cells.ndim] if bound.ndim > self.cells.ndim else ()
        return bound.expand(*rows, *self.cells.shape).reshape(*rows, -1).index_select(-1, self.index)


@dataclass(slots=True)
class Filling:
    """The gaps of one site in one execution, and what fills them: `values` (B, n, …), None where nothing does yet.

    `moved` where they came as unconstrained numbers, whose log Jacobian (B,) is beside them.
    """

    gaps: Gaps
    values: Tensor | None = None
    log_jacobian: Tensor | None = None
    moved: bool = False
    left_out: bool = False
    """True where the cells do not count."""


class GapFinder:
    """Finds the gaps of one site's data; a tensor is looked at once, however often a loop passes it."""

    def __init__(self, event: int, support: str, discrete: bool, where: Where) -> None:
        self.event = event
        self.support = support
        self.discrete = discrete
        self.where = where
        self._given: object = None
        self._version = 0
        self._there: Tensor | None = None
        self._found: Gaps | None = None

    def __call__(self, value: Tensor, there: Tensor | None = None) -> Gaps | None:
        """None where nothing is missing of what is `there`, (…, 1, …) bool; None is all.  Raises `InputProblem` where
        everything is."""
        if value is not self._given or value._version != self._version or there is not self._there:
            self._found = self._look(value, there) if value.is_floating_point() else None
            self._given, self._version, self._there = value, value._version, there
        return self._found

    def _look(self, value: Tensor, there: Tensor | None) -> Gaps | None:
        absent = arrays.isnan(value)
        missing = absent if there is None else absent & there
        if not bool(missing.any()):
            return None
        if bool((absent if there is None else absent | ~there).all()):
            raise self.where.misfit("values", "that every one is missing")
        own = value.shape[value.ndim - self.event :]
        each = missing.reshape(-1, own.numel() if self.event else 1)
        cells = each.any(-1)
        partial = bool((cells & ~each.all(-1)).any())
        whole = self.support in TOGETHER
        if whole and partial:
            row = int((cells & ~each.all(-1)).nonzero()[0])
            raise self.where.misfit("draws that are given or missing as a whole", f"a part of one (the first is {row})")
        index = (cells if whole else missing.reshape(-1)).nonzero().squeeze(-1)
        lacking = absent.reshape(each.shape).any(-1)
        source = 0 if bool(lacking.all()) else int((~lacking).nonzero()[0])
        stand_in = value[~absent][0] if bool(lacking.all()) else value.reshape(-1, *own)[source]
        filled = arrays.where(absent, stand_in, value)
        return Gaps(
            cells.reshape(value.shape[: value.ndim - self.event]),
            index,
            filled.long() if self.discrete else filled,
            whole,
            partial,
            source,
        )

    def shape(self, gaps: Gaps) -> tuple[int, ...]:
        """The shape of the unconstrained numbers behind what is missing."""
        own = gaps.filled.shape[gaps.cells.ndim :]
        return unconstrained_shape(self.support, (gaps.count, *own)) if gaps.whole else (gaps.count,)


def given_values(gaps: Gaps, value: Any, rows: int, where: Where) -> Tensor:
    """Values for the gaps, the same in all rows or a row each, as (B, n, …)."""
    own = tuple(gaps.filled.shape[gaps.cells.ndim :]) if gaps.whole else ()
    wanted = (gaps.count, *own)
    tensor = arrays.as_tensor(value)
    if tuple(tensor.shape) not in (wanted, (rows, *wanted), (1, *wanted)):
        raise where.misfit(f"values for {gaps.count} missing cells, {wanted}", f"shape {tuple(tensor.shape)}")
    return tensor.expand(rows, *wanted)


def moved_values(gaps: Gaps, free: Tensor, support: Support) -> tuple[Tensor, Tensor]:
    """Values for the gaps of unconstrained numbers (B, n, …), and log |∂value/∂free| (B,)."""
    return constrain(free, replace(support, low=gaps.bound(support.low), high=gaps.bound(support.high)))


def shifted(cells: Tensor, shifts: Sequence[int], axis: int) -> Tensor:
    """The cells, and those that read one of them `shift` elements back along an axis."""
    found = cells
    size = cells.shape[axis]
    for shift in shifts:
        before = arrays.zeros_like(cells.narrow(axis, 0, shift))
        found = found | arrays.cat([before, cells.narrow(axis, 0, size - shift)], axis)
    return found
