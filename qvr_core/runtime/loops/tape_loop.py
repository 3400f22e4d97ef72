"""The part of a tape that runs step by step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

from qvr_core.runtime.loops.adjoint import Adjoint, adjoint_of
from qvr_core.runtime.loops.tape import LinearOp, Op, Tape, ins_of, outs_of


@dataclass(frozen=True)
class Loop:
    """The part of a tape that runs step by step.

    `given` are the slots that the steps read and that are computed for all times beforehand.  `serial` tells loops
    apart.
    """

    tape: Tape
    ops: tuple[Op, ...]
    given: tuple[int, ...]
    serial: int

    @cached_property
    def linear(self) -> tuple[LinearOp, ...]:
        """Its linear operations, in order: their weights and biases are what the loop is a function of."""
        return tuple(op for op in self.ops if isinstance(op, LinearOp))

    @cached_property
    def adjoint(self) -> Adjoint:
        """Its backward, step by step."""
        return adjoint_of(self.tape, self.ops, self.given)


_serials = itertools.count()


def loop_of(tape: Tape) -> Loop:
    """What of a tape has to run step by step."""
    hoisted = tape.hoisted()
    ops = tuple(op for op in tape.ops if outs_of(op)[0] not in hoisted)
    given = dict.fromkeys(slot for op in ops for slot in ins_of(op) if slot in hoisted)
    return Loop(tape, ops, tuple(given), next(_serials))
