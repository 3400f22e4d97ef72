"""Draws from a named arrow for each element of a plate: arguments, values and options laid out along it.

Shapes: B rows, then the plate's axes, then the arrow's own.  A number has no axis of its own, (B, …): inside the arrow
it has one of length 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.frame import as_tensor
from qvr_core.runtime.values.arrow import Value, is_product
from qvr_core.runtime.values.cells import Cell, as_argument, as_one
from qvr_core.runtime.values.layout import Where, blocks, from_parts, parts, prepare
from qvr_core.semantics.types.spaces import Real, Space

Plate = tuple[int, ...]


def argument_along(cells: Sequence[Cell], own: Sequence[int], domain: Space, rows: int, plate: Plate) -> Value:
    """Arguments as that of an arrow, (B, *plate, …); of each the last `own` axes are the arrow's."""
    values = [as_one(cell) for cell in cells]
    flat = [Cell(_spread(cell, rank, rows, plate), True) for cell, rank in zip(values, own, strict=True)]
    made = as_argument(flat, domain, rows * math.prod(plate))
    return from_parts([arrays.unflatten(part, 0, (rows, *plate)) for part in parts(made)])


def _spread(cell: Cell, own: int, rows: int, plate: Plate) -> Tensor:
    """A value repeated along what it lacks of rows and plate, (B · |plate|, …)."""
    value: Tensor = cell.value
    first = int(cell.rows)
    front = value.shape[first : value.ndim - own]
    event = value.shape[value.ndim - own :]
    lead = value.shape[0] if cell.rows else 1
    wide = value.reshape(lead, *(1,) * (len(plate) - len(front)), *front, *event)
    return wide.expand(rows, *plate, *event).reshape(-1, *event)


def repeated_along(x: Value, plate: Plate) -> Value:
    """The same argument (B, …) for each element of a plate."""
    made: list[Tensor] = []
    for part in parts(x):
        wide = part.reshape(part.shape[0], *(1,) * len(plate), *part.shape[1:])
        made.append(wide.expand(part.shape[0], *plate, *part.shape[1:]))
    return from_parts(made)


def given_along(codomain: Space, cell: Cell, rows: int, plate: Plate, where: Where) -> Value:
    """A value from outside, (B, *plate, …) or without rows, checked and brought into the arrow's normal form."""
    value = cell.value
    if is_product(value):
        return from_parts([_checked(part, rows, plate, where) for part in value])
    wide = _checked(value if cell.rows else _with_rows(as_tensor(value), codomain, rows, plate), rows, plate, where)
    made = prepare(codomain, wide.flatten(0, len(plate)), where)
    return from_parts([arrays.unflatten(part, 0, (rows, *plate)) for part in parts(made)])


def _with_rows(value: Tensor, codomain: Space, rows: int, plate: Plate) -> Tensor:
    depth = len(plate)
    shape = codomain.shape if isinstance(codomain, Real) else ()
    ranks = {0, len(shape)} if is_number(codomain) else {0 if _finite(codomain) else 1, len(shape)}
    plain = tuple(value.shape[:depth]) == plate and value.ndim - depth in ranks
    if not plain and value.ndim > depth and value.shape[0] in (1, rows):
        return value
    return value.unsqueeze(0)


def _checked(value: Tensor, rows: int, plate: Plate, where: Where) -> Tensor:
    if tuple(value.shape[1 : 1 + len(plate)]) != plate or value.shape[0] not in (1, rows):
        wanted = " × ".join(map(str, plate))
        raise where.misfit(f"{wanted} values, one for each element", f"shape {tuple(value.shape[1:])}")
    return value.expand(rows, *value.shape[1:])


def is_number(space: Space) -> bool:
    """Whether a value of a space is one real number."""
    own = blocks(space)
    return len(own) == 1 and not own[0].finite and not own[0].sequence and own[0].size == 1


def _finite(space: Space) -> bool:
    return all(block.finite for block in blocks(space))


def as_elements(value: Value, space: Space) -> Value:
    """A value in the arrow's normal form as steps read it: a number at each place of the plate."""
    return value.squeeze(-1) if is_tensor(value) and is_number(space) else value
