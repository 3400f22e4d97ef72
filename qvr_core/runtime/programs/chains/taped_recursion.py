"""Recursions that are not affine, on the engine of recurrent loops: one operation with a generated backward.

What reads no earlier element is computed for all elements at once; the rest becomes a tape of pointwise operations.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.loops.engine import run_program
from qvr_core.runtime.loops.loop import Loop, loop_of
from qvr_core.runtime.loops.primitives import BINARY, UNARY
from qvr_core.runtime.loops.tape import BinaryOp, LinearOp, Operand, Tape, UnaryOp, shortened
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.chains.elements import State, element_read
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import full, size_of
from qvr_core.runtime.values.cells import Cell, as_one
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.axes import axis_of, indexed, set_of
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Builtin, Constant, Contract, Expr, Window
from qvr_core.semantics.types.model.steps import IndexedValue, RunningIndex
from qvr_core.semantics.types.walk import operands, walk

LONGEST = 400
"""Operations of the longest tape."""
MOST_POWER = 8
_COMPARISONS = frozenset({"gt", "lt", "ge", "le", "eq", "ne"})


@dataclass(frozen=True)
class Item:
    """What is known for all elements; axis k of the step's indices is axis `order[k]` of its value, which lacks those
    where it is None."""

    value: Evaluate
    order: tuple[int | None, ...]

    def cell(self, frame: Frame, shape: Sequence[int]) -> Cell | None:
        """The value for all elements, (B, *shape); None where it has further axes."""
        cell = as_one(self.value(frame))
        places = [at for at in self.order if at is not None]
        if cell.rank > len(places):
            return None
        own = [0] * len(places)
        for size, at in zip(shape, self.order, strict=True):
            if at is not None:
                own[at] = size
        value, rows = full(cell.value, own, cell.rows), int(cell.rows)
        value = value.permute(*range(rows), *(at + rows for at in places))
        for axis, at in enumerate(self.order):
            value = value.unsqueeze(axis + rows) if at is None else value
        return Cell(value.expand(*value.shape[:rows], *shape), cell.rows)


@dataclass(frozen=True)
class TapedRecursion:
    """A `let` over indices as a loop; `states` are its state slots in their order, a name's newest element first."""

    names: tuple[str, ...]
    loop: Loop
    items: list[Item]
    states: tuple[State, ...]
    axis: int
    lag: int
    dtype: list[arrays.dtype]
    """That of the run, which the matrices of sums over other axes are of."""

    def solve(self, frame: Frame, first: Sequence[Sequence[Cell]], sizes: Sequence[int]) -> list[Cell] | None:
        """All elements of each name; None where they are left to what goes element by element.

        `first` are the first elements of each name, with an axis of length 1 for them.
        """
        count = sizes[self.axis] - self.lag
        if count < 1:
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
            dtype = arrays.promote_types(dtype, cell.value.dtype)

        self.dtype[0] = dtype

        def laid(cell: Cell) -> Tensor:
            """(T, B, others) of (B, *sizes)."""
            value = cell.value if cell.rows else cell.value.unsqueeze(0).expand(rows or 1, *cell.value.shape)
            return (
                value.to(dtype).movedim(self.axis + 1, 0).flatten(2)
                if len(shape) > 1
                else value.to(dtype).mT[..., None]
            )

        given = [laid(cell) for cell in items]
        known = {name: arrays.cat([laid(cell) for cell in own]) for name, own in zip(self.names, first, strict=True)}
        start = arrays.cat([known[name][self.lag - back] for name, back in self.states], -1)
        found = run_program(self.loop, given or [start.new_zeros(count, *start.shape)], start, True)
        if not (recording() or in_transform()) and not bool(found.isfinite().all()):
            return None
        width = start.shape[-1] // len(self.states)
        made: list[Cell] = []
        for name in self.names:
            at = self.states.index((name, 1)) * width
            whole = arrays.cat([known[name], found[..., at : at + width]])
            others = [size for place, size in enumerate(sizes) if place != self.axis]
            value = whole.reshape(*whole.shape[:2], *others).movedim(0, self.axis + 1)
            made.append(Cell(value if rows is not None else value.squeeze(0), rows is not None))
        return made


def _reduced(expr: Builtin, body: Expr) -> str | None:
    """The axis of a sum over an index; None where it is over something else."""
    found = body.type.indexed
    name = found[-1] if found and tuple(found[:-1]) == tuple(expr.type.indexed) else None
    return name if name is not None and indexed(name) else None


class _Unsupported(Exception):
    """The recursion does something that a tape does not know."""


def taped_recursion(names: tuple[str, ...], model: IndexedValue, parts: Parts) -> TapedRecursion | None:
    """The recursion of a `let`; None where its elements read others at another place, or by what is no pointwise
    function that the engine knows."""
    at = next((at for at, index in enumerate(model.indices) if index.lag), None)
    if at is None or not model.recursive:
        return None
    return taped(names, model.values, model.indices, at, parts, model.longest)


def taped(
    names: tuple[str, ...], values: Sequence[Expr], indices: Sequence[RunningIndex], at: int, parts: Parts, lag: int
) -> TapedRecursion | None:
    """The recursion of names whose elements are `values`, along the index `at`, behind the first `lag`."""
    writer = _Writer(names, indices, at, parts)
    try:
        for name, value in zip(names, values, strict=True):
            writer.now[name] = writer.slot(value)
        tape = writer.finished()
    except _Unsupported:
        return None
    if not tape.items:
        # nothing but the earlier elements is read: what is given says only how many there are
        tape.items.append(tape.slot(writer.width))
    return TapedRecursion(names, loop_of(tape), writer.given, tuple(writer.states), at, lag, writer.dtype)


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
    dtype: list[arrays.dtype] = field(default_factory=lambda: [precision()])

    def __post_init__(self) -> None:
        self.axes = tuple(axis_of(getattr(index.space, "nominal", None), index.name) for index in self.indices)
        sizes = [size_of(index.space) for at, index in enumerate(self.indices) if at != self.at]
        self.width = int(arrays.Size(sizes).numel())

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
            case Arrange(base=base):
                return self.operand(base, base.type.indexed)
            case Contract():
                return self._contracted(expr)
            case Builtin(function="sum" | "mean", args=(body,), keywords=()) if _reduced(expr, body) is not None:
                return self._reduced(expr, body)
            case Builtin(keywords=()) if set(expr.type.indexed) <= set(self.axes) and len(self.axes) > 1:
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
        if not set(axes) <= set(self.axes):
            raise _Unsupported
        own = axes[len(axes) - len(expr.type.indexed) :] if expr.type.indexed else axes
        order = tuple(own.index(axis) if axis in own else None for axis in self.axes)
        self.given.append(Item(compile_expr(expr, self.parts), order))
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

    # ------------------------------------------------------------ sums over other indices

    def _contracted(self, expr: Contract) -> int:
        """A product summed over indices that the step does not have."""
        gone = dict.fromkeys(axis for axes in expr.axes for axis in axes if axis not in expr.result)
        if any(axis not in self.axes for axis in expr.result):
            raise _Unsupported
        with self._instead(gone):
            product, *others = [self.operand(one, axes) for one, axes in zip(expr.factors, expr.axes, strict=True)]
            for other in others:
                product = self._binary("mul", product, other)
            return self._summed(product, gone)

    def _reduced(self, expr: Builtin, body: Expr) -> int:
        gone = dict.fromkeys([str(_reduced(expr, body))])
        with self._instead(gone):
            total = self._summed(self.operand(body, body.type.indexed), gone)
            count = self._size(next(iter(gone)))
        return total if expr.function == "sum" else self._binary("mul", total, 1.0 / count)

    @contextmanager
    def _instead(self, gone: Iterable[str]) -> Generator[None]:
        """Indices of sums in the place of the step's own over the same sets, which may not stand beside them."""
        before = self.axes
        for axis in gone:
            free = [at for at, own in enumerate(self.axes) if at != self.at and set_of(own) == set_of(axis)]
            if len(free) != 1 or not set_of(axis):
                raise _Unsupported
            self.axes = (*self.axes[: free[0]], axis, *self.axes[free[0] + 1 :])
        try:
            yield
        finally:
            self.axes = before

    def _size(self, axis: str) -> int:
        return size_of(self.indices[self.axes.index(axis)].space)

    def _summed(self, slot: Operand, gone: Iterable[str]) -> int:
        """The sum along some axes, the same for all elements along them: a product with a matrix of zeros and ones."""
        if not isinstance(slot, int):
            raise _Unsupported
        matrix = arrays.ones(1, 1)
        for at, axis in enumerate(self.axes):
            if at != self.at:
                size = self._size(axis)
                matrix = arrays.kron(matrix, arrays.ones(size, size) if axis in gone else arrays.eye(size))
        out = self._out()
        self.tape.ops.append(LinearOp(out, (slot,), ((0, self.width),), bias=False))
        self.tape.parameters.append(lambda: (matrix.to(self.dtype[0]), None))
        return out

    # ------------------------------------------------------------ numbers

    def _choice(self, condition: Operand, first: Operand, second: Operand) -> int:
        """c · x + (1 − c) · y, which is x or y."""
        if not isinstance(condition, int):
            raise _Unsupported
        kept = self._binary("mul", condition, first)
        return self._binary("add", kept, self._binary("mul", self._binary("sub", 1.0, condition), second))

    def _truth(self, expr: Expr, condition: Operand) -> Operand:
        """1 or 0 of a condition: any number but 0 is true."""
        while isinstance(expr, Arrange):
            expr = expr.base
        if not isinstance(condition, int) or (isinstance(expr, Builtin) and canonical(expr.function) in _COMPARISONS):
            return condition
        # what is no number stays so, and is left to what goes element by element
        return self._binary("add", self._differs(condition, 0.0), self._binary("mul", condition, 0.0))

    def _differs(self, left: Operand, right: Operand) -> int:
        """1 where two numbers are not the same, else 0."""
        below, above = self._compared("le", left, right), self._compared("ge", left, right)
        return self._binary("sub", 1.0, self._binary("mul", below, above))

    def _compared(self, function: str, left: Operand, right: Operand) -> int:
        """1 where it is so, else 0."""
        if function in ("lt", "ge"):
            left, right = right, left
        above = self._unary("above_zero", self._binary("sub", left, right))
        return above if function in ("gt", "lt") else self._binary("sub", 1.0, above)

    def _pointwise(self, name: str, args: Sequence[Expr], axes: tuple[str | None, ...]) -> int:
        values = [self.operand(arg, axes) for arg in args]
        match name, values:
            case "where", [condition, first, second]:
                return self._choice(self._truth(args[0], condition), first, second)
            case "gt" | "lt" | "ge" | "le", [left, right]:
                return self._compared(name, left, right)
            case "eq" | "ne", [left, right]:
                apart = self._differs(left, right)
                return apart if name == "ne" else self._binary("sub", 1.0, apart)
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
