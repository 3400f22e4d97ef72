"""Index notation as whole-tensor operations: what an index runs through, matrix products, sums by an index.

A frame may hold a *window* for an index: a step that runs element by element looks at one element at a time through
the same expressions; where the loop is written down, at what stands for the element of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, broadcasting
from qvr_core.runtime.programs.chains.turns import Turn
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell, as_one
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.hidden_counts import counted
from qvr_core.semantics.types.model.expressions import Bound, Contract, Data, IndexValue, Scatter, Window
from qvr_core.semantics.types.model.steps import RunningIndex
from qvr_core.semantics.types.spaces import Space

Evaluate = Callable[[Frame], Cell]


class Growing:
    """A value over indices that is made element by element along one of them: what there is of it so far.

    Elements keep the axis of that index, with length 1; `axis` counts from behind rows.
    """

    def __init__(self, axis: int, index: str = "") -> None:
        self.axis = axis
        self.index = index
        self.rows = False
        self.elements: list[Tensor] = []

    @classmethod
    def of(cls, first: Sequence[Cell], axis: int, index: str = "") -> Growing:
        """A value that begins with these elements."""
        made = cls(axis, index)
        for cell in first:
            made.add(cell)
        return made

    def add(self, cell: Cell) -> None:
        """One more element; where it has rows, all get them."""
        value = cell.value
        if cell.rows and not self.rows:
            self.elements = [element.expand(value.shape[0], *element.shape) for element in self.elements]
            self.rows = True
        elif self.rows and not cell.rows:
            value = value.expand(self.elements[0].shape[0], *value.shape)
        self.elements.append(value)

    def runs_along(self, axis: int) -> bool:
        """Whether an axis, counted from the end, is the one along which it grows."""
        return axis + self.elements[0].ndim - int(self.rows) == self.axis

    def window(self, first: Any, count: int) -> Tensor:
        """Elements `first`, …  Raises `RuntimeProblem` where they are not made yet."""
        if first + count > len(self.elements):
            problem = f"the element {first + count - 1} along `{self.index}` is read before it is drawn"
            raise RuntimeProblem(f"{problem}: what is observed has to be given here")
        if count == 1:
            place: int = first
            return self.elements[place]
        return _along(self.elements[first : first + count], self.axis + int(self.rows))

    def whole(self) -> Tensor:
        """All elements that there are."""
        return _along(self.elements, self.axis + int(self.rows))


def _along(elements: Sequence[Tensor], axis: int) -> Tensor:
    """Elements one behind the other, those of lower precision raised, further axes repeated."""
    dtype = elements[0].dtype
    for element in elements[1:]:
        dtype = arrays.promote_types(dtype, element.dtype)
    shape = broadcasting.broadcast_shapes(
        *((*element.shape[:axis], *element.shape[axis + 1 :]) for element in elements)
    )
    wide = [element.to(dtype).expand(*shape[:axis], element.shape[axis], *shape[axis:]) for element in elements]
    return arrays.cat(wide, axis)


def preceded(first: Sequence[Cell], rest: Cell, axis: int) -> Cell:
    """`rest` behind its first elements along an axis, counted from behind rows."""
    made = Growing.of([*first, rest], axis)
    return Cell(made.whole(), made.rows)


def size_of(space: Space) -> int:
    """The number of elements of an index's set."""
    return _number(getattr(space, "size", None))


def sizes_of(step: str, indices: Sequence[RunningIndex], longest: int = 0) -> list[int]:
    """The sizes of a step's indices; `longest` is the lag of the name that begins last.

    Raises `RuntimeProblem` where one looks back farther than its set is long.
    """
    sizes = [size_of(index.space) for index in indices]
    for index, size in zip(indices, sizes, strict=True):
        lag = max(index.lag, longest) if index.lag else 0
        if lag > size:
            name = getattr(index.space, "nominal", None) or "its set"
            raise RuntimeProblem(f"`{step}` looks {lag} back along `{index.name}`, and `{name}` has {size}")
    return sizes


def index_value(expr: IndexValue) -> Evaluate:
    """The elements that an index runs through, int64."""
    # the values of a hidden count are as many as its block says while it runs
    first, size = expr.first, 0 if counted(expr.size) else _number(expr.size)

    def run(frame: Frame) -> Cell:
        low, count = frame.windows.get(expr.name, (first, size - first))
        if isinstance(low, Turn):
            return Cell(low.of(arrays.arange(low.first, low.first + low.count, device=frame.device), 0), False)
        return Cell(arrays.arange(low, low + count, device=frame.device), False)

    return run


def window(expr: Window, base: Evaluate) -> Evaluate:
    """The elements of an axis that an index runs through, `shift` back."""
    name, axis, shift, first, size = expr.index, expr.axis, expr.shift, expr.first, _number(expr.size)
    again = expr.again

    def run(frame: Frame) -> Cell:
        cell = base(frame)
        low, count = frame.windows.get(name, (first, size - first))
        if isinstance(cell.value, Growing):
            return Cell(cell.value.window(low - shift, count), cell.rows) if cell.value.runs_along(axis) else cell
        value = as_one(cell).value
        span = (low.first, low.count) if isinstance(low, Turn) else (low, count)
        there = value.shape[axis] if value.ndim >= -axis else 0
        if there < sum(span) - shift:
            raise _too_few(expr, there, frame)
        found = taken(value, *span)
        return Cell(low.of(found, axis) if isinstance(low, Turn) else found, cell.rows)

    def taken(value: Tensor, low: int, count: int) -> Tensor:
        if value.shape[axis] == count and low == shift:
            return value
        if again and low < shift:
            early = value.narrow(axis, low - shift + again, min(count, shift - low))
            rest = value.narrow(axis, 0, max(0, count + low - shift))
            return arrays.cat([early, rest], axis)
        return value.narrow(axis, low - shift, count)

    return run


def _too_few(expr: Window, there: int, frame: Frame) -> InputProblem:
    """Data that have not an element for each of an index: what is computed has the sets of its type."""
    what = f"`{expr.base.name}`" if isinstance(expr.base, Data | Bound) else "what is indexed"
    count = "a single number" if not there else str(there)
    wanted = f"{what} with {_number(expr.size)} elements, one for each `{expr.index}`"
    return InputProblem(f"program `{frame.program}`: expected {wanted}, found {count}")


def contract(expr: Contract, factors: Sequence[Evaluate]) -> Evaluate:
    """A product summed over some of its axes, as matrix products."""
    names = {name: at for at, name in enumerate(dict.fromkeys(name for axes in expr.axes for name in axes))}
    letters = ["".join(ascii_letters[names[name]] for name in axes) for axes in expr.axes]
    result = "".join(ascii_letters[names[name]] for name in expr.result)
    row = ascii_letters[len(names)]

    def run(frame: Frame) -> Cell:
        cells = [as_one(factor(frame)) for factor in factors]
        rows = any(cell.rows for cell in cells)
        dtype = precision()
        for cell in cells:
            dtype = arrays.promote_types(dtype, cell.value.dtype)
        terms = ",".join(row * cell.rows + axes for cell, axes in zip(cells, letters, strict=True))
        equation = f"{terms}->{row * rows}{result}"
        return Cell(arrays.einsum(equation, *(cell.value.to(dtype) for cell in cells)), rows)

    return run


def scatter(expr: Scatter, body: Evaluate, index: Evaluate) -> Evaluate:
    """`body` added up along its last axis by an index."""
    size = _number(expr.size)

    def run(frame: Frame) -> Cell:
        cell, by = as_one(body(frame)), index(frame)
        value = cell.value if cell.value.is_floating_point() else cell.value.to(precision())
        where = by.value.long()
        if by.rows:
            wide = broadcasting.broadcast_shapes(
                value.shape, where.shape[:1] + (1,) * (value.ndim - 2) + where.shape[1:]
            )
            value, where = value.expand(wide), where.reshape(-1, *(1,) * (len(wide) - 2), wide[-1]).expand(wide)
            made = value.new_zeros(*wide[:-1], size).scatter_add(-1, where, value)
            return Cell(made, True)
        return Cell(value.new_zeros(*value.shape[:-1], size).index_add(-1, where, value), cell.rows)

    return run


def _number(size: object) -> int:
    if isinstance(size, int):
        return int(size)
    raise TypeError("an index runs over a set whose size is not known")


def full(value: Tensor, sizes: Sequence[int], rows: bool) -> Tensor:
    """A value over indices, its leading axes behind rows repeated to their sizes."""
    missing = len(sizes) - (value.ndim - int(rows))
    if missing > 0:
        value = value.reshape(*value.shape[: int(rows)], *(1,) * missing, *value.shape[int(rows) :])
    lead = int(rows)
    wide = (*value.shape[:lead], *sizes, *value.shape[lead + len(sizes) :])
    return value if tuple(value.shape) == wide else value.expand(wide)
