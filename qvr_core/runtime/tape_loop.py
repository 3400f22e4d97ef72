"""The part of a tape that runs step by step, and its buffers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from qvr_core.runtime.tape import BinaryOp, ChunkOp, LinearOp, Op, Tape, UnaryOp


@dataclass(frozen=True, slots=True)
class Loop:
    """The part of a tape that runs step by step.

    `given` are the slots (or, for a linear operation, the operation's own slot) whose tensors (L, B, w) are computed
    beforehand: read slots, then for each linear operation its share of the items and its bias.  `weights` says for each
    (operation, slot) of the loop's linear operations which columns it takes.  `serial` tells loops apart.
    """

    tape: Tape
    ops: tuple[Op, ...]
    read: tuple[int, ...]
    linear: tuple[LinearOp, ...]
    weights: tuple[tuple[int, int, tuple[int, int]], ...]
    serial: int


_serials = itertools.count()


def loop_of(tape: Tape) -> Loop:
    """What of a tape has to run step by step."""
    hoisted = tape.hoisted()
    ops = tuple(op for op in tape.ops if outs_of(op)[0] not in hoisted)
    linear = tuple(op for op in ops if isinstance(op, LinearOp))
    read: dict[int, None] = {}
    for op in ops:
        if not isinstance(op, LinearOp):
            read.update({slot: None for slot in ins_of(op) if slot in hoisted})
    weights = tuple(
        (index, slot, columns)
        for index, op in enumerate(linear)
        for slot, columns in zip(op.slots, op.columns, strict=True)
        if slot not in hoisted
    )
    return Loop(tape, ops, tuple(read), linear, weights, next(_serials))


def outs_of(op: Op) -> tuple[int, ...]:
    return op.outs if isinstance(op, ChunkOp) else (op.out,)


def ins_of(op: Op) -> tuple[int, ...]:
    match op:
        case LinearOp():
            return op.slots
        case BinaryOp():
            return tuple(x for x in (op.left, op.right) if isinstance(x, int))
        case _:
            return (op.slot,)


class LoopBuffers:
    """A buffer (L, B, w) with its views by time for every slot that the loop computes, and slopes for the backward."""

    def __init__(self, loop: Loop, length: int, rows: int, like: Tensor) -> None:
        def new(width: int) -> Tensor:
            return torch.empty(length, rows, width, dtype=like.dtype, device=like.device)

        self.whole: dict[int, Tensor] = {}
        self.slope: dict[int, Tensor] = {}
        self.grads = [new(loop.tape.widths[op.out]) for op in loop.linear]
        for op in loop.ops:
            if isinstance(op, ChunkOp):
                self.whole.update(zip(op.outs, self.whole[op.slot].split(op.width, -1), strict=True))
                continue
            self.whole[op.out] = new(loop.tape.widths[op.out])
            if isinstance(op, UnaryOp) or (isinstance(op, BinaryOp) and op.function in ("minimum", "maximum")):
                self.slope[op.out] = new(loop.tape.widths[op.out])
        self.at = {slot: buffer.unbind(0) for slot, buffer in self.whole.items()}
        self.slope_at = {slot: buffer.unbind(0) for slot, buffer in self.slope.items()}
        self.grad_at = [buffer.unbind(0) for buffer in self.grads]
        numbers = sum(loop.tape.widths[outs_of(op)[0]] for op in loop.ops if not isinstance(op, ChunkOp))
        self.nbytes = 3 * numbers * length * rows * like.element_size()
