"""A deterministic cell program as a list of operations on slots, from its typed steps.

Understands linear arrows, sigmoid, tanh, relu, +, −, ·, minimum, maximum and chunk on real vectors; `tape_of` gives
None for anything else, and the cell then runs as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from qvr_core.runtime import layout
from qvr_core.runtime.arrow import ArrowModule
from qvr_core.runtime.deterministic import LinearArrow
from qvr_core.semantics import model as m

Operand = int | float
"""A slot, or a number."""
UNARY = frozenset(["sigmoid", "tanh", "relu"])
BINARY = frozenset(["add", "sub", "mul", "minimum", "maximum"])


@dataclass(frozen=True, slots=True)
class LinearOp:
    """out = Σ slot · W[:, columns]ᵀ + bias; `weight` and `bias` are names in the leaf's table of parameters."""

    out: int
    slots: tuple[int, ...]
    columns: tuple[tuple[int, int], ...]
    leaf: int
    weight: str
    bias: str | None


@dataclass(frozen=True, slots=True)
class UnaryOp:
    out: int
    function: str
    slot: int


@dataclass(frozen=True, slots=True)
class BinaryOp:
    out: int
    function: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class ChunkOp:
    outs: tuple[int, ...]
    slot: int
    width: int


Op = LinearOp | UnaryOp | BinaryOp | ChunkOp


@dataclass(slots=True)
class Tape:
    """`items` and `states` are the input slots, `returns` the slots of the next state, `widths` of every slot."""

    items: list[int] = field(default_factory=list[int])
    states: list[int] = field(default_factory=list[int])
    returns: list[int] = field(default_factory=list[int])
    widths: list[int] = field(default_factory=list[int])
    ops: list[Op] = field(default_factory=list[Op])
    leaves: list[Mapping[str, Tensor | None]] = field(default_factory=list[Mapping[str, Tensor | None]])

    def slot(self, width: int) -> int:
        """A new slot."""
        self.widths.append(width)
        return len(self.widths) - 1

    def hoisted(self) -> set[int]:
        """Slots that depend on the items alone: they are computed for all times at once."""
        found = set(self.items)
        for op in self.ops:
            match op:
                case LinearOp():
                    if all(slot in found for slot in op.slots):
                        found.add(op.out)
                case UnaryOp():
                    if op.slot in found:
                        found.add(op.out)
                case BinaryOp():
                    if all(not isinstance(x, int) or x in found for x in (op.left, op.right)):
                        found.add(op.out)
                case ChunkOp():
                    if op.slot in found:
                        found.update(op.outs)
        return found


class _Unsupported(Exception):
    """The program does something that a tape does not know."""


def tape_of(program: m.Program, items: int, arrow: Callable[[m.Arrow], ArrowModule]) -> Tape | None:
    """The tape of a cell whose first `items` inputs are the item, or None."""
    try:
        return _Compiler(program, items, arrow).tape
    except _Unsupported:
        return None


class _Compiler:
    def __init__(self, program: m.Program, items: int, arrow: Callable[[m.Arrow], ArrowModule]) -> None:
        self.tape = Tape()
        self.arrow = arrow
        self.bound: dict[str, int] = {}
        self.chunks: dict[str, tuple[int, ...]] = {}
        for index, given in enumerate(program.inputs):
            if given.name is None or not layout.real_only(given.space.space):
                raise _Unsupported
            slot = self.tape.slot(layout.width(given.space.space))
            (self.tape.items if index < items else self.tape.states).append(slot)
            self.bound[given.name] = slot
        for step in program.steps:
            if not isinstance(step, m.LetModel):
                raise _Unsupported
            self._bind(step)
        self.tape.returns = [self._returned(name) for _, name in program.returns]
        widths = [[self.tape.widths[slot] for slot in slots] for slots in (self.tape.returns, self.tape.states)]
        if widths[0] != widths[1]:
            raise _Unsupported

    def _returned(self, name: str) -> int:
        slot = self.bound.get(name)
        # what is passed through unchanged has no buffer of its own
        if slot is None or slot in self.tape.items or slot in self.tape.states or slot in self.tape.returns:
            raise _Unsupported
        if slot in self.tape.hoisted() or any(isinstance(op, ChunkOp) and slot in op.outs for op in self.tape.ops):
            raise _Unsupported
        return slot

    def _bind(self, step: m.LetModel) -> None:
        if len(step.names) == 1:
            self.bound[step.names[0]] = self._slot(step.value)
            return
        value = step.value
        if not (isinstance(value, m.Builtin) and value.function == "chunk"):
            raise _Unsupported
        for name, slot in zip(step.names, self._chunk(value), strict=True):
            self.bound[name] = slot

    def _chunk(self, value: m.Builtin) -> tuple[int, ...]:
        if len(value.args) != 2 or value.keywords or not isinstance(value.args[1], m.Constant):
            raise _Unsupported
        count = value.args[1].value
        slot = self._slot(value.args[0])
        width = self.tape.widths[slot]
        if not isinstance(count, int) or width % count:
            raise _Unsupported
        outs = tuple(self.tape.slot(width // count) for _ in range(count))
        self.tape.ops.append(ChunkOp(outs, slot, width // count))
        return outs

    def _slot(self, expr: m.Expr) -> int:
        operand = self._operand(expr)
        if not isinstance(operand, int):
            raise _Unsupported
        return operand

    def _operand(self, expr: m.Expr) -> Operand:
        match expr:
            case m.Constant(value=value) if isinstance(value, int | float):
                return float(value)
            case m.Bound(name=name) if name in self.bound:
                return self.bound[name]
            case m.Apply():
                return self._apply(expr)
            case m.Builtin(function=function, args=(only,), keywords=()):
                if function == "neg":
                    return self._binary("mul", self._operand(only), -1.0)
                if function not in UNARY:
                    raise _Unsupported
                slot = self._slot(only)
                out = self.tape.slot(self.tape.widths[slot])
                self.tape.ops.append(UnaryOp(out, function, slot))
                return out
            case m.Builtin(function=function, args=(left, right), keywords=()) if function in BINARY:
                return self._binary(function, self._operand(left), self._operand(right))
            case _:
                raise _Unsupported

    def _binary(self, function: str, left: Operand, right: Operand) -> int:
        widths = {self.tape.widths[x] for x in (left, right) if isinstance(x, int)}
        # numbers only with the operations that have them on either side
        if len(widths) != 1 or (function in ("minimum", "maximum") and not isinstance(left, int | bool)):
            raise _Unsupported
        if function in ("minimum", "maximum") and (isinstance(left, float) or isinstance(right, float)):
            raise _Unsupported
        out = self.tape.slot(widths.pop())
        self.tape.ops.append(BinaryOp(out, function, left, right))
        return out

    def _apply(self, expr: m.Apply) -> int:
        leaf = self.arrow(expr.arrow)
        if not isinstance(leaf, LinearArrow):
            raise _Unsupported
        slots = tuple(self._slot(arg) for arg in expr.args)
        table: Mapping[str, Tensor | None] = vars(leaf)["_parameters"]
        self.tape.leaves.append(table)
        index = len(self.tape.leaves) - 1
        columns: list[tuple[int, int]] = []
        start = 0
        for slot in slots:
            columns.append((start, start + self.tape.widths[slot]))
            start += self.tape.widths[slot]
        bias = "bias" if table.get("bias") is not None else None
        if leaf.rank is None:
            return self._linear(slots, tuple(columns), index, "weight", bias, leaf.weight.shape[0])
        inner = self._linear(slots, tuple(columns), index, "in_factor", None, leaf.rank)
        whole = ((0, leaf.rank),)
        return self._linear((inner,), whole, index, "out_factor", bias, leaf.out_factor.shape[0])

    def _linear(
        self,
        slots: tuple[int, ...],
        columns: tuple[tuple[int, int], ...],
        leaf: int,
        weight: str,
        bias: str | None,
        width: int,
    ) -> int:
        out = self.tape.slot(width)
        self.tape.ops.append(LinearOp(out, slots, columns, leaf, weight, bias))
        return out
