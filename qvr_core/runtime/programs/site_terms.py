"""Log densities of a site element by element, and what options say of the elements."""

from __future__ import annotations

from dataclasses import dataclass

from qvr_core.arrays.engine import Tensor, broadcasting
from qvr_core.runtime.programs.arithmetic import Evaluate
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell, lead
from qvr_core.runtime.values.layout import Where


@dataclass(slots=True)
class Terms:
    """Elementwise log densities: (B, …) with rows, else (…)."""

    value: Tensor
    rows: bool

    def per_row(self, rows: int) -> Tensor:
        """Summed over everything but the rows, (B,)."""
        if not self.rows:
            return self.value.sum().expand(rows)
        return self.value if self.value.ndim == 1 else self.value.flatten(1).sum(-1)

    def by_row(self, rows: int) -> Tensor:
        """(B, …)."""
        return self.value if self.rows else self.value.expand(rows, *self.value.shape)


def fitted_option(
    option: Evaluate, what: str, frame: Frame, elements: Cell, selected: Cell | None, where: Where
) -> Cell:
    """What an option says of each element of a value; `selected` are the rows that `at` takes of it.

    Raises `InputProblem`, which calls the option `what`, where it has another shape.
    """
    cell = option(frame)
    rank = elements.rank
    if selected is not None and cell.value.shape[-1:] != elements.value.shape[-1:]:
        cell = Cell(cell.value[..., selected.value], cell.rows)
    value = lead(cell.value, rank) if cell.rows else cell.value
    own = tuple(elements.value.shape[int(elements.rows) :])
    try:
        joint = broadcasting.broadcast_shapes(value.shape[int(cell.rows) :], own)
    except RuntimeError:
        joint = None
    if joint is None or len(joint) > rank or tuple(joint) != own:
        raise where.misfit(f"{what} of shape {own}", f"shape {tuple(value.shape[int(cell.rows) :])}")
    return Cell(value, cell.rows)
