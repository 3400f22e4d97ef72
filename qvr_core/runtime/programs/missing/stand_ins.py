"""Elements that do not count read the data of one that does.

A mask, or `where`, keeps a value out of a sum but not its derivative: 0 · ∞ is no number, so one division by the 0 that
pads a covariate would leave the whole gradient without numbers.  What is never computed has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Data, Expr
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Finite, factors_of
from qvr_core.semantics.types.walk import operands, walk

Counted = Callable[[Frame], Tensor | None]
"""Which elements of a step count, bool (*sizes); None where all do, or only latents say it."""


class StandIns:
    """The data that the arguments of a step read at its own elements."""

    def __init__(self, site: Site, expressions: Sequence[Expr], counted: Counted) -> None:
        spaces = [index.space for index in site.indices]
        if not spaces and (named := site.element or site.plate) is not None:
            spaces = list(factors_of(named.space))
        sets = [space.nominal for space in spaces if isinstance(space, Finite)]
        nodes = [node for expr in expressions for node in walk(expr, operands) if isinstance(node, Data)]
        self.names = tuple(
            dict.fromkeys(node.name for node in nodes if sets and [*map(_set, node.type.indexed)] == sets)
        )
        self.counted = counted

    @contextmanager
    def read(self, frame: Frame) -> Generator[None]:
        """While it is open, each of these names holds what an element that counts has."""
        counted = self.counted(frame) if self.names else None
        before = {} if counted is None else {name: cell for name in self.names if (cell := frame.supplied(name))}
        if counted is None or not before or bool(counted.all()) or not bool(counted.any()):
            yield
            return
        flat = counted.reshape(-1)
        own = arrays.arange(len(flat), device=flat.device)
        source = arrays.where(flat, own, int(flat.nonzero()[0]))
        try:
            frame.given.update({name: _held(cell, counted, source) for name, cell in before.items()})
            yield
        finally:
            frame.given.update(before)


def _set(axis: str | None) -> str | None:
    return None if axis is None else set_of(axis)


def _held(cell: Cell, counted: Tensor, source: Tensor) -> Cell:
    sizes, value = tuple(counted.shape), cell.value
    if cell.rows or not is_tensor(value) or tuple(value.shape[: len(sizes)]) != sizes:
        return cell
    flat = value.reshape(-1, *value.shape[len(sizes) :])
    return Cell(flat.index_select(0, source).reshape(value.shape), False)
