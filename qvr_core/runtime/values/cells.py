"""Values in a program: a tensor and whether its first axis is the row axis.

Data is the same for every row and has no row axis; what comes from the input or from a draw has one.  Aligning keeps
the two apart: rows meet rows, and everything else broadcasts from the last axis, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.values.arrow import Value, is_product
from qvr_core.runtime.values.layout import factors, join, width
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.spaces import Finite, Seq, Space, Terms, Unknown


class Cell(NamedTuple):
    """A value: a tensor, a tuple of tensors (a product), a function, or a chart."""

    value: Any
    rows: bool

    @property
    def rank(self) -> int:
        """Number of axes after the row axis."""
        return self.value.ndim - 1 if self.rows else self.value.ndim


def align(cells: Sequence[Cell]) -> tuple[list[Tensor], bool]:
    """The tensors shaped so that plain broadcasting pairs rows with rows, and whether the result has rows."""
    tensors = [as_one(cell).value for cell in cells]
    if not any(cell.rows for cell in cells):
        return tensors, False
    rank = max(t.ndim - cell.rows for t, cell in zip(tensors, cells, strict=True))
    return [lead(t, rank) if cell.rows else t for t, cell in zip(tensors, cells, strict=True)], True


def lead(tensor: Tensor, rank: int) -> Tensor:
    """Insert axes of length 1 after the row axis until `rank` axes follow it."""
    missing = rank - (tensor.ndim - 1)
    if missing <= 0:
        return tensor
    return tensor.reshape(tensor.shape[0], *([1] * missing), *tensor.shape[1:])


def as_one(cell: Cell) -> Cell:
    """A product of reals as one tensor; anything else as it is."""
    if is_product(cell.value):
        return Cell(arrays.cat([part if part.ndim > 1 else part[:, None] for part in cell.value], -1), cell.rows)
    return cell


def with_rows(cell: Cell, rows: int) -> Tensor:
    """The tensor with its row axis, repeated where the value is the same for every row."""
    return cell.value if cell.rows else cell.value.expand(rows, *cell.value.shape)


def repeat_rows(cell: Cell, times: int) -> Cell:
    """Every row `times` times in a row (row r becomes rows r·times … r·times + times − 1)."""
    if not cell.rows or times == 1:
        return cell
    if is_product(cell.value):
        return Cell(tuple(part.repeat_interleave(times, 0) for part in cell.value), True)
    return Cell(cell.value.repeat_interleave(times, 0), True)


def as_argument(cells: Sequence[Cell], domain: Space, rows: int) -> Value:
    """Values as the argument of an arrow with this domain, in normal form: every part with a row axis.

    A draw of a scalar (B,) becomes (B, 1).  Beside a sequence a plain value is the same at every position.
    """
    values: list[Value] = []
    spaces = factors(domain)
    matched = spaces if len(spaces) == len(cells) else (None,) * len(cells)
    for cell, space in zip(cells, matched, strict=True):
        if is_product(cell.value):
            values.append(cell.value)
        else:
            values.append(_column(with_rows(cell, rows), space))
    return values[0] if len(values) == 1 else join(_as_long(values, matched))


def _column(value: Tensor, factor: Space | None) -> Tensor:
    if not value.is_floating_point() and _wants_reals(factor):
        value = value.to(precision())
    if not value.is_floating_point():
        return value
    bare = 2 if isinstance(factor, Seq) and width(factor) == 1 else 1
    return value.unsqueeze(-1) if value.ndim == bare else value


def _as_long(values: Sequence[Value], spaces: Sequence[Space | None]) -> list[Value]:
    """Values of which those of `Seq` factors are all sequences of one length: plain ones are repeated."""
    ranks = [0 if not isinstance(space, Seq) else 3 if _wants_reals(space) else 2 for space in spaces]
    lengths = [
        value.shape[1] for value, rank in zip(values, ranks, strict=True) if is_tensor(value) and value.ndim == rank
    ]
    if not lengths:
        return list(values)
    length = max(lengths)

    def along(value: Value, rank: int) -> Value:
        if not is_tensor(value) or not rank:
            return value
        plain = value.unsqueeze(-1) if value.ndim == 1 and rank == 3 else value
        if plain.ndim == rank - 1:
            plain = plain.unsqueeze(1)
        return plain.expand(plain.shape[0], length, *plain.shape[2:]) if plain.shape[1] == 1 else plain

    return [along(value, rank) for value, rank in zip(values, ranks, strict=True)]


def _wants_reals(factor: Space | None) -> bool:
    item = factor.item if isinstance(factor, Seq) else factor
    return item is not None and not isinstance(item, Finite | Terms | Unknown)
