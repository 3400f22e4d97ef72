"""The part of a tape that runs step by step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from qvr_core.runtime.loops.adjoint import Adjoint, adjoint_of
from qvr_core.runtime.loops.primitives import UNARY
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, Op, Tape, UnaryOp, ins_of, outs_of

_serials = itertools.count()


@dataclass(frozen=True, eq=False)
class Loop:
    """The part of a tape that runs step by step.

    `given` are the slots that the steps read and that are known for all times beforehand.  `serial` tells loops apart.
    """

    tape: Tape
    ops: tuple[Op, ...]
    given: tuple[int, ...]
    serial: int = field(default_factory=lambda: next(_serials))

    @cached_property
    def linear(self) -> tuple[LinearOp, ...]:
        """Its linear operations, in order: their weights and biases are what the loop is a function of."""
        return tuple(op for op in self.ops if isinstance(op, LinearOp))

    @cached_property
    def adjoint(self) -> Adjoint:
        """Its backward, step by step."""
        return adjoint_of(self.tape, self.ops, self.given)

    @cached_property
    def made_by(self) -> dict[int, Op]:
        """The operation that fills each slot."""
        return {slot: op for op in self.ops for slot in outs_of(op)}

    def read_back(self, given: Sequence[int]) -> tuple[set[int], set[int]]:
        """The slots whose values, and those of whose functions the slopes, the backward reads, with the gradients of
        these given slots: they are kept for all times."""
        values = {*self.tape.states, *self.tape.returns}
        values.update(slot for op in self.linear for slot in op.slots)
        slopes: set[int] = set()
        for kind, slot in self.adjoint.factors(given):
            op = self.made_by.get(slot)
            if isinstance(op, BinaryOp) and kind != "value":
                values.update(ins_of(op))
            elif isinstance(op, UnaryOp) and kind == "slope" and UNARY[op.function].of_argument:
                slopes.add(slot)
            else:
                values.add(slot)
        return values.difference(self.given), slopes

    @cached_property
    def chunk_of(self) -> dict[int, ChunkOp]:
        """The operation that cuts a slot off something, by the slot."""
        return {slot: op for op in self.ops if isinstance(op, ChunkOp) for slot in op.outs}


def loop_of(tape: Tape) -> Loop:
    """What of a tape has to run step by step; the rest depends on the items alone."""
    hoisted = tape.hoisted()
    ops = tuple(op for op in tape.ops if outs_of(op)[0] not in hoisted)
    given = dict.fromkeys(slot for op in ops for slot in ins_of(op) if slot in hoisted)
    return Loop(tape, ops, tuple(given))
