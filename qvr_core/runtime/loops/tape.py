"""A deterministic cell program as a list of operations on slots, and what of it can be made shorter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from torch import Tensor

Operand = int | float
"""A slot, or a number."""


@dataclass(frozen=True, slots=True)
class LinearOp:
    """out = Σ slot · W[:, columns]ᵀ + bias; `shifts` (start, end, number) are added to those entries of the bias."""

    out: int
    slots: tuple[int, ...]
    columns: tuple[tuple[int, int], ...]
    bias: bool
    shifts: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class UnaryOp:
    """out = function(slot) + plus."""

    out: int
    function: str
    slot: int
    plus: float = 0.0


@dataclass(frozen=True, slots=True)
class BinaryOp:
    """`scale` multiplies a product; it is 1 for every other function."""

    out: int
    function: str
    left: Operand
    right: Operand
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class MulAddOp:
    """out = base + scale · left · right."""

    out: int
    base: int
    left: int
    right: int
    scale: float


@dataclass(frozen=True, slots=True)
class ChunkOp:
    """A slot cut into as many pieces as `outs`, each `width` wide along the last axis."""

    outs: tuple[int, ...]
    slot: int
    width: int


Op = LinearOp | UnaryOp | BinaryOp | MulAddOp | ChunkOp


def outs_of(op: Op) -> tuple[int, ...]:
    """The slots that an operation fills."""
    return op.outs if isinstance(op, ChunkOp) else (op.out,)


def ins_of(op: Op) -> tuple[int, ...]:
    """The slots that an operation reads."""
    match op:
        case LinearOp():
            return op.slots
        case BinaryOp():
            return tuple(x for x in (op.left, op.right) if isinstance(x, int))
        case MulAddOp():
            return (op.base, op.left, op.right)
        case _:
            return (op.slot,)


class Dropping(Protocol):
    """What leaves numbers out in training: the share, and whether they are the same ones at all steps."""

    training: bool
    drop_rate: float
    once: bool


@dataclass(slots=True)
class Tape:
    """`items` and `states` are the input slots, `returns` the slots of the next state, `widths` of every slot.

    `parameters` gives the current weight and bias of each linear operation, in order.  The last items are what is
    multiplied with where numbers are left out, one for each of `dropped`, in the order in which a step draws them.
    """

    items: list[int] = field(default_factory=list[int])
    states: list[int] = field(default_factory=list[int])
    returns: list[int] = field(default_factory=list[int])
    widths: list[int] = field(default_factory=list[int])
    ops: list[Op] = field(default_factory=list[Op])
    parameters: list[Callable[[], tuple[Tensor, Tensor | None]]] = field(
        default_factory=list[Callable[[], tuple[Tensor, Tensor | None]]]
    )

    dropped: list[Dropping] = field(default_factory=list[Dropping])

    def slot(self, width: int) -> int:
        """A new slot."""
        self.widths.append(width)
        return len(self.widths) - 1

    def linear(
        self, read: Sequence[int], width: int, bias: bool, shifts: tuple[tuple[int, int, float], ...] = ()
    ) -> int:
        """A new slot with a linear map of these slots, side by side."""
        ends = tuple(accumulate(self.widths[slot] for slot in read))
        columns = tuple(zip((0, *ends), ends, strict=False))
        out = self.slot(width)
        self.ops.append(LinearOp(out, tuple(read), columns, bias, shifts))
        return out

    def hoisted(self) -> set[int]:
        """Slots that depend on the items alone: they are computed for all times at once."""
        found = set(self.items)
        for op in self.ops:
            if all(slot in found for slot in ins_of(op)):
                found.update(outs_of(op))
        return found

    def uses(self) -> Counter[int]:
        """How often each slot is read or returned."""
        return Counter([slot for op in self.ops for slot in ins_of(op)] + self.returns)


def shortened(tape: Tape) -> Tape:
    """The same with numbers drawn into products, and products into sums."""
    for rule in (_scaled_product, _product_in_sum):
        hoisted, uses = tape.hoisted(), tape.uses()
        made: dict[int, Op] = {}
        gone: set[int] = set()
        for op in tape.ops:
            for slot in ins_of(op):
                inner = made.get(slot)
                # a step must not take over what all steps share
                alike = (slot in hoisted) == (outs_of(op)[0] in hoisted)
                if inner is not None and alike and uses[slot] == 1 and (joint := rule(op, inner)) is not None:
                    op = joint
                    gone.add(slot)
                    break
            made[outs_of(op)[0]] = op
        tape.ops = [made[outs_of(op)[0]] for op in tape.ops if outs_of(op)[0] not in gone]
    return tape


def _scaled_product(op: Op, inner: Op) -> Op | None:
    """(k · a) · b as one operation."""
    if not (isinstance(op, BinaryOp) and isinstance(inner, BinaryOp) and op.function == inner.function == "mul"):
        return None
    numbers = [x for x in (inner.left, inner.right) if not isinstance(x, int)]
    slots = [x for x in (inner.left, inner.right) if isinstance(x, int)]
    if len(numbers) != 1 or not (isinstance(op.left, int) and isinstance(op.right, int)):
        return None
    other = op.right if op.left == inner.out else op.left
    return BinaryOp(op.out, "mul", slots[0], other, op.scale * inner.scale * numbers[0])


def _product_in_sum(op: Op, inner: Op) -> Op | None:
    """a + b · c as one operation."""
    if not (isinstance(op, BinaryOp) and op.function in ("add", "sub")):
        return None
    if not (isinstance(inner, BinaryOp) and inner.function == "mul"):
        return None
    base = op.right if op.left == inner.out else op.left
    if not (isinstance(base, int) and isinstance(inner.left, int) and isinstance(inner.right, int)):
        return None
    if op.function == "sub" and op.left == inner.out:
        return None
    sign = -1.0 if op.function == "sub" else 1.0
    return MulAddOp(op.out, base, inner.left, inner.right, sign * inner.scale)
