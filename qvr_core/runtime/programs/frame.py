"""The state of one execution: what is bound so far, what was given, and the records made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.data_types import DeclaredData
from qvr_core.runtime.programs.execution import Request, SiteRecord
from qvr_core.runtime.programs.missing.gaps import Filling
from qvr_core.runtime.values.arrow import Value, is_product
from qvr_core.runtime.values.cells import Cell, repeat_rows
from qvr_core.runtime.values.errors import MissingData
from qvr_core.runtime.values.layout import is_listing
from qvr_core.runtime.values.precision import at_least, precision
from qvr_core.semantics.types.model.expressions import Apply


@dataclass(slots=True)
class Frame:
    """`bound` are the names bound so far; `x` is the program's input as an arrow takes it (None where unused).

    Inside a summed-out block the rows are repeated `repeated` times per row of `parent`, whose names are looked up
    through this frame.
    """

    program: str
    request: Request
    rows: int
    x: Value | None
    reads_rows: bool
    """True where the program uses its input, so that a leading axis of `rows` in data is the row axis."""
    data: Mapping[str, Any]
    bound: dict[str, Cell] = field(default_factory=dict[str, Cell])
    sites: dict[str, SiteRecord] = field(default_factory=dict[str, SiteRecord])
    parent: Frame | None = None
    repeated: int = 1
    given: dict[str, Cell | None] = field(default_factory=dict[str, Cell | None])
    device: arrays.device | None = None
    """Where literals must lie; None for the CPU."""
    declared: Mapping[str, DeclaredData] = field(default_factory=dict[str, DeclaredData])
    """The data that `data` steps declare."""
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of axes of what groups of steps observe and read."""
    gaps: dict[str, Filling] = field(default_factory=dict[str, Filling])
    """The missing cells of observed steps."""
    drawn: set[str] = field(default_factory=set[str])
    """The observed steps of summed-out blocks that were drawn in this run: none of their elements is censored."""
    windows: dict[str, tuple[Any, int]] = field(default_factory=dict[str, tuple[Any, int]])
    """What an index looks at, the first element and how many, where that is not all that it runs through."""
    ended: list[Tensor] = field(default_factory=list[Tensor])
    """bool (B,) or (1,): where a differential equation has no solution up to its last time."""
    draw: Callable[[Apply, Value], Value] | None = None
    """What draws from a sampled arrow that is applied to values; None where none is."""

    def __getitem__(self, name: str) -> Cell:
        cell = self.bound.get(name)
        if cell is None:
            if self.parent is None and name in self.declared:
                return self.datum(name)
            if self.parent is None:
                raise MissingData(f"program `{self.program}`: `{name}` has no value here", site=name)
            cell = repeat_rows(self.parent[name], self.repeated)
            self.bound[name] = cell
        return cell

    def datum(self, name: str) -> Cell:
        """A data name's value; rows where the program runs by rows and the first axis is as long."""
        cell = self.supplied(name)
        if cell is None:
            raise MissingData(
                f"program `{self.program}` needs data `{name}`: pass observations={{'{name}': …}} or load(…, data=…)",
                site=name,
            )
        return cell

    def supplied(self, name: str) -> Cell | None:
        """What observations or data hold under a name, or None."""
        if name in self.given:
            return self.given[name]
        if self.parent is not None:
            above = self.parent.supplied(name)
            cell = None if above is None else repeat_rows(above, self.repeated)
        else:
            value = self.request.observations.get(name)
            if value is None and name not in self.request.anew:
                value = self.data.get(name)
            # a cell says itself whether it has rows
            cell = value if value is None or isinstance(value, Cell) else self._cell(name, value)
        self.given[name] = cell
        return cell

    def begun(self, name: str) -> Cell | None:
        """The data whose first elements an observed chain that is drawn begins with, or None."""
        if self.parent is not None:
            above = self.parent.begun(name)
            return None if above is None else repeat_rows(above, self.repeated)
        value = self.request.begun.get(name)
        return None if value is None else self._cell(name, value)

    @contextmanager
    def hidden(self, names: Collection[str]) -> Generator[None]:
        """The given values of these steps put away while they are drawn; what follows reads them again."""
        given = {name: cell for name in names if (cell := self.supplied(name)) is not None}
        self.given.update(dict.fromkeys(given))
        yield
        self.given.update(given)
        self.bound.update(given)

    def _cell(self, name: str, value: Any) -> Cell:
        tensor = as_tensor(value)
        if name in self.declared:
            return self.declared[name].cell(tensor, self.program, self.rows, self.reads_rows)
        if is_tensor(tensor):
            tensor = at_least(tensor, precision())
            if not self.reads_rows and tensor.ndim - 1 == self.ranks.get(name) and tensor.shape[0] == 1:
                tensor = tensor[0]  # as drawn: the one row of a program that reads none
            return Cell(tensor, self.reads_rows and tensor.ndim > 0 and tensor.shape[0] == self.rows)
        return Cell(tensor, self.reads_rows and isinstance(tensor, tuple))

    def inner(self, times: int) -> Frame:
        """A frame whose rows are this one's, each `times` times."""
        return Frame(
            self.program,
            self.request,
            self.rows * times,
            None if self.x is None else repeat_rows(Cell(self.x, True), times).value,
            self.reads_rows,
            self.data,
            parent=self,
            repeated=times,
            device=self.device,
            gaps=self.gaps,
            drawn=self.drawn,
            windows=self.windows,
        )


def as_tensor(value: Any) -> Any:
    """Numbers, lists and arrays as tensors (floats in the precision of the run); text and charts as they are."""
    if is_tensor(value):
        return value
    if isinstance(value, bool | int | float):
        return arrays.as_tensor(value, dtype=precision() if isinstance(value, float) else None)
    if is_product(value) and all(is_tensor(part) for part in value):
        return value
    if is_listing(value):
        return _in_precision(arrays.as_tensor(np.asarray(value))) if value and _numeric(value) else value
    if type(value).__module__ == "numpy":
        return _in_precision(arrays.as_tensor(value))
    return value


def _in_precision(tensor: Tensor) -> Tensor:
    return tensor.to(precision()) if tensor.is_floating_point() else tensor


def _numeric(value: Any) -> bool:
    while is_listing(value) and value:
        value = value[0]
    return isinstance(value, bool | int | float)
