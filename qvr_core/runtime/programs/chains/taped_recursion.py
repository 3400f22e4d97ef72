"""Recursions that are not affine, on the engine of recurrent loops: one operation with a generated backward.

What reads no earlier element is computed for all elements at once; the rest becomes a tape of pointwise operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from qvr_core.runtime.loops.engine import run_program
from qvr_core.runtime.loops.loop import Loop, loop_of
from qvr_core.runtime.loops.primitives import BINARY, UNARY
from qvr_core.runtime.loops.tape import BinaryOp, Operand, Tape, UnaryOp, shortened
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.chains.elements import State, element_read
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import full, size_of
from qvr_core.runtime.values.cells import Cell, as_one
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.model import Arrange, Bound, Builtin, Constant, Expr, IndexedValue, RunningIndex, Window
from qvr_core.semantics.types.walk import operands, walk

FEW = 40
"""Elements up to which a recorded graph has each operation of each of them: it may become machine code then."""
LONGEST = 400
"""Operations of the longest tape."""
MOST_POWER = 8


@dataclass(frozen=True)
class Item:
    """What is known for all elements; axis k of the step's indices is axis `order[k]` of its value."""

    value: Evaluate
    order: tuple[int, ...]

    def cell(self, frame: Frame, shape: Sequence[int]) -> Cell | None:
        """The value for all elements, (B, *shape); None where it has further axes."""
        cell = as_one(self.value(frame))
        if cell.rank > len(shape):
            return None
        own = [0] * len(shape)
        for size, at in zip(shape, self.order, strict=True):
            own[at] = size
        value, rows = full(cell.value, own, cell.rows), int(cell.rows)
        return Cell(value.permute(*range(rows), *(at + rows for at in self.order)), cell.rows)


@dataclass(frozen=True)
class TapedRecursion:
    """A `let` over indices as a loop; `states` are its state slots in their order, a name's newest element first."""

    names: tuple[str, ...]
    loop: Loop
    items: list[Item]
    states: tuple[State, ...]
    axis: int
    lag: int

    def solve(self, frame: Frame, first: Sequence[Sequence[Cell]], sizes: Sequence[int]) -> list[Cell] | None:
        """All elements of each name; None where they are left to what goes element by element.

        `first` are the first elements of each name, with an axis of length 1 for them.
        """
        count = sizes[self.axis] - self.lag
        if count < 1 or (recording() and (count <= FEW or in_transform())):
            return None
        shape = tuple(count if at == self.axis else size for at, size in enumerate(sizes))
        early = [cell for cells in first for cell in cells]
        if any(cell.rank != len(shape) for cell in early):
            return None  # elements that are vectors
        items = [cell for item in self.items if (cell := item.cell(frame, shape)) is not None]
        if len(items) < len(self.items):
            return None
        cells = [*items, *early]
        rows = next((len(cell.value) for cell in cells if cell.rows), None)
        dtype = precision()
        for cell in cells:
            dtype = torch.promote_types(dtype, cell.value.dtype)

        def laid(cell: Cell) -> Tensor:
            """(T, B, others) of (B, *sizes)."""
            value = cell.value if cell.rows else cell.value.unsqueeze(0).expand(rows or 1, *cell.value.shape)
            return (
                value.to(dtype).movedim(self.axis + 1, 0).flatten(2)
                if len(shape) > 1
                else value.to(dtype).mT[..., None]
            )

        given = [laid(cell) for cell in items]
        known = {name: torch.cat([laid(cell) for cell in own]) for name, own in zip(self.names, first, strict=True)}
        start = torch.cat([known[name][self.lag - back] for name, back in self.states], -1)
        found = run_program(self.loop, given or [start.new_zeros(count, *start.shape)], start, True)
        if not (recording() or in_transform()) and not bool(found.isfinite().all()):
            return None
        width = start.shape[-1] // len(self.states)
        made: list[Cell] = []
        for name in self.names:
            at = self.states.index((name, 1)) * width
            whole = torch.cat([known[name], found[..., at : at + width]])
            others = [size for place, size in enumerate(sizes) if place != self.axis]
            value = whole.reshape(*whole.shape[:2], *others).movedim(0, self.axis + 1)
            made.append(Cell(value if rows is not None else value.squeeze(0), rows is not None))
        return made


class _Unsupported(Exception):
    """The recursion does something that a tape does not know."""


def taped_recursion(names: tuple[str, ...], model: IndexedValue, parts: Parts) -> TapedRecursion | None:
    """The recursion of a `let`; None where its elements read others at another place, or by what is no pointwise
    function that the engine knows."""
    at = next((at for at, index in enumerate(model.indices) if index.lag), None)
    return None if at is None or not model.recursive else taped(names, model.values, model.indices, at, parts)


def taped(
    names: tuple[str, ...], values: Sequence[Expr], indices: Sequence[RunningIndex], at: int, parts: Parts
) -> TapedRecursion | None:
    """The recursion of names whose elements are `values`, along the index `at`."""
    writer = _Writer(names, indices, at, parts)
    try:
        for name, value in zip(names, values, strict=True):
            writer.now[name] = writer.slot(value)
        tape = writer.finished()
    except _Unsupported:
        return None
    return TapedRecursion(names, loop_of(tape), writer.given, tuple(writer.states), at, indices[at].lag)


@dataclass
class _Writer:
    """Writes the tape of a recursion: its earlier elements are states, what reads none of them is given."""

    names: tuple[str, ...]
    indices: Sequence[RunningIndex]
    at: int
    parts: Parts
    tape: Tape = field(default_factory=Tape)
    given: list[Item] = field(default_factory=list[Item])
    states: dict[State, int] = field(default_factory=dict[State, int])
    now: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.axes = tuple(axis_of(getattr(index.space, "nominal", None), index.name) for index in self.indices)
        sizes = [size_of(index.space) for at, index in enumerate(self.indices) if at != self.at]
        self.width = int(torch.Size(sizes).numel())

    def slot(self, expr: Expr) -> int:
        """The slot of a value, whose axes are the step's."""
        found = self.operand(expr, self.axes)
        return found if isinstance(found, int) else self._item(expr, self.axes)

    def operand(self, expr: Expr, axes: tuple[str | None, ...]) -> Operand:
        """A value that meets others over `axes`, the step's in any order."""
        if not any(isinstance(part, Bound) and part.name in self.names for part in walk(expr, operands)):
            number = isinstance(expr, Constant) and isinstance(expr.value, int | float)
            return float(expr.value) if number else self._item(expr, axes)  # pyright: ignore
        match expr:
            case Window():
                return self._read(expr)
            case Arrange(base=base, axes=order) if None not in order:
                return self.operand(base, axes)
            case Builtin(keywords=()) if sorted(map(str, expr.type.indexed)) == sorted(self.axes):
                return self._pointwise(canonical(expr.function), expr.args, expr.type.indexed)
            case Builtin(keywords=()) if len(self.axes) == 1:
                return self._pointwise(canonical(expr.function), expr.args, self.axes)
            case _:
                raise _Unsupported

    def finished(self) -> Tape:
        """The tape, shortened; the next states are the new elements, then those that were new before."""
        made = self.tape.hoisted()
        for name in self.names:
            if self.now[name] in made:
                raise _Unsupported  # nothing of it depends on a step before
            depth = max((back for one, back in self.states if one == name), default=1)
            for back in range(1, depth + 1):
                self._state(name, back)
        self.tape.states = list(self.states.values())
        taken = set(self.tape.states)
        for name, back in self.states:
            slot = self.now[name] if back == 1 else self.states[name, back - 1]
            if slot in taken:
                slot = self._binary("mul", slot, 1.0)  # what is passed on has no room of its own
            taken.add(slot)
            self.tape.returns.append(slot)
        return shortened(self.tape)

    def _item(self, expr: Expr, axes: tuple[str | None, ...]) -> int:
        self.given.append(Item(compile_expr(expr, self.parts), tuple(axes.index(axis) for axis in self.axes)))
        self.tape.items.append(self.tape.slot(self.width))
        return self.tape.items[-1]

    def _state(self, name: str, back: int) -> int:
        if (name, back) not in self.states:
            self.states[name, back] = self.tape.slot(self.width)
        return self.states[name, back]

    def _read(self, expr: Window) -> int:
        """An element of a name at its own place, or earlier."""
        name, back = element_read(expr, self.axes) or ("", 0)
        if not back and name not in self.now:
            raise _Unsupported
        return self._state(name, back) if back else self.now[name]

    def _pointwise(self, name: str, args: Sequence[Expr], axes: tuple[str | None, ...]) -> int:
        values = [self.operand(arg, axes) for arg in args]
        match name, values:
            case "neg", [operand]:
                return self._binary("mul", operand, -1.0)
            case "div", [left, float(number)] if number:
                return self._binary("mul", left, 1.0 / number)
            case "div", [left, int(right)]:
                return self._binary("mul", left, self._unary("reciprocal", right))
            case "pow", [int(base), float(power)]:
                return self._power(base, power)
            case "square", [int(slot)]:
                return self._binary("mul", slot, slot)
            case function, [int(slot)] if function in UNARY:
                return self._unary(function, slot)
            case "maximum" | "minimum", [_, _]:
                left, right = (
                    value if isinstance(value, int) else self._item(arg, axes)
                    for value, arg in zip(values, args, strict=True)
                )
                return self._binary(name, left, right)
            case function, [left, right] if function in BINARY:
                return self._binary(function, left, right)
            case _:
                raise _Unsupported

    def _power(self, base: int, power: float) -> int:
        if power == 0.5:
            return self._unary("sqrt", base)
        if power != int(power) or not 1 <= abs(power) <= MOST_POWER:
            raise _Unsupported
        found = base
        for _ in range(int(abs(power)) - 1):
            found = self._binary("mul", found, base)
        return found if power > 0 else self._unary("reciprocal", found)

    def _unary(self, function: str, slot: int) -> int:
        out = self._out()
        self.tape.ops.append(UnaryOp(out, function, slot))
        return out

    def _binary(self, function: str, left: Operand, right: Operand) -> int:
        out = self._out()
        self.tape.ops.append(BinaryOp(out, function, left, right))
        return out

    def _out(self) -> int:
        if len(self.tape.ops) >= LONGEST:
            raise _Unsupported
        return self.tape.slot(self.width)
