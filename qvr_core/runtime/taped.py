"""Running a tape over time: one autograd function whose backward is generated from the tape.

What depends on the items alone is computed for all times beforehand.  The loop keeps every value by time; its backward
walks the tape in reverse, and the gradients of weights are one product over all times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.fused import can_fuse
from qvr_core.runtime.tape import BinaryOp, ChunkOp, LinearOp, Op, Operand, Tape, UnaryOp
from qvr_core.runtime.workspace import Loan

_UNARY: dict[str, Callable[..., Tensor]] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu}
_BINARY: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


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
    ops = tuple(op for op in tape.ops if _outs(op)[0] not in hoisted)
    linear = tuple(op for op in ops if isinstance(op, LinearOp))
    read: dict[int, None] = {}
    for op in ops:
        if not isinstance(op, LinearOp):
            read.update({slot: None for slot in _ins(op) if slot in hoisted})
    weights = tuple(
        (index, slot, columns)
        for index, op in enumerate(linear)
        for slot, columns in zip(op.slots, op.columns, strict=True)
        if slot not in hoisted
    )
    return Loop(tape, ops, tuple(read), linear, weights, next(_serials))


def _outs(op: Op) -> tuple[int, ...]:
    return op.outs if isinstance(op, ChunkOp) else (op.out,)


def _ins(op: Op) -> tuple[int, ...]:
    match op:
        case LinearOp():
            return op.slots
        case BinaryOp():
            return tuple(x for x in (op.left, op.right) if isinstance(x, int))
        case _:
            return (op.slot,)


def run_loop(loop: Loop, items: Sequence[Tensor], start: Tensor) -> Tensor:
    """All states (L, B, S) from the items (L, B, w) and the start state (B, S)."""
    tape = loop.tape
    length, rows = items[0].shape[:2]
    values: dict[int, Tensor] = dict(zip(tape.items, items, strict=True))
    hoisted = tape.hoisted()
    for op in tape.ops:
        if _outs(op)[0] in hoisted:
            _evaluate(op, values, tape)
    given = [values[slot] for slot in loop.read]
    for op in loop.linear:
        weight, bias = _weight(tape, op), _bias(tape, op)
        share: Tensor | None = None
        for slot, (a, b) in zip(op.slots, op.columns, strict=True):
            if slot in hoisted:
                part = F.linear(values[slot], weight[:, a:b], bias if share is None else None)
                share = part if share is None else share + part
        if share is None:
            flat = bias if bias is not None else weight.new_zeros(weight.shape[0])
            share = flat.expand(length, rows, weight.shape[0])
        given.append(share)
    weights = [_weight(tape, loop.linear[index])[:, a:b] for index, _, (a, b) in loop.weights]
    if can_fuse():
        return _Taped.apply(loop, length, start, *given, *weights)  # pyright: ignore[reportReturnType]
    return plain_loop(loop, length, start, given, weights)


def _weight(tape: Tape, op: LinearOp) -> Tensor:
    weight = tape.leaves[op.leaf][op.weight]
    assert weight is not None
    return weight


def _bias(tape: Tape, op: LinearOp) -> Tensor | None:
    return None if op.bias is None else tape.leaves[op.leaf][op.bias]


def _value(operand: Operand, values: dict[int, Tensor]) -> Any:
    return values[operand] if isinstance(operand, int) else operand


def _evaluate(op: Op, values: dict[int, Tensor], tape: Tape) -> None:
    """One operation in plain autograd."""
    match op:
        case LinearOp():
            joined = values[op.slots[0]] if len(op.slots) == 1 else torch.cat([values[s] for s in op.slots], -1)
            values[op.out] = F.linear(joined, _weight(tape, op), _bias(tape, op))
        case UnaryOp():
            values[op.out] = _UNARY[op.function](values[op.slot])
        case BinaryOp():
            left, right = _value(op.left, values), _value(op.right, values)
            if isinstance(left, float) and op.function == "sub":
                values[op.out] = -right + left
            else:
                values[op.out] = _BINARY[op.function](*((left, right) if isinstance(left, Tensor) else (right, left)))
        case ChunkOp():
            values.update(zip(op.outs, values[op.slot].split(op.width, -1), strict=True))


def plain_loop(loop: Loop, length: int, start: Tensor, given: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The loop in plain operations: what transforms see, and what the generated backward is tested against."""
    tape = loop.tape
    widths = [tape.widths[slot] for slot in tape.states]
    states = list(start.split(widths, -1))
    result: list[Tensor] = []
    for t in range(length):
        values = dict(zip(tape.states, states, strict=True))
        values.update((slot, tensor[t]) for slot, tensor in zip(loop.read, given, strict=False))
        for op in loop.ops:
            if isinstance(op, LinearOp):
                index = loop.linear.index(op)
                total = given[len(loop.read) + index][t]
                for (which, slot, _), weight in zip(loop.weights, weights, strict=True):
                    if which == index:
                        total = total + values[slot] @ weight.mT
                values[op.out] = total
            else:
                _evaluate(op, values, tape)
        states = [values[slot] for slot in tape.returns]
        result.append(torch.cat(states, -1))
    return torch.stack(result)


class _Buffers:
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
        numbers = sum(loop.tape.widths[_outs(op)[0]] for op in loop.ops if not isinstance(op, ChunkOp))
        self.nbytes = 3 * numbers * length * rows * like.element_size()


class _Taped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loop: Loop, length: int, start: Tensor, *tensors: Tensor) -> Tensor:
        tape, rows = loop.tape, start.shape[0]
        key = (_Buffers, loop.serial, length, rows, start.dtype, start.device)
        loan = Loan(key, lambda: _Buffers(loop, length, rows, start))
        lent = loan.buffers
        count = len(loop.read) + len(loop.linear)
        given, weights = tensors[:count], tensors[count:]
        at: dict[int, Sequence[Tensor]] = dict(lent.at)
        at.update((slot, tensor.unbind(0)) for slot, tensor in zip(loop.read, given, strict=False))
        starts = start.split([tape.widths[slot] for slot in tape.states], -1)
        for slot, returned, first in zip(tape.states, tape.returns, starts, strict=True):
            at[slot] = (first, *lent.at[returned][:-1])
        calls = [call for op in loop.ops if (call := _call(op, loop, at, given, weights)) is not None]
        for t in range(length):
            for call in calls:
                call(t)
        ctx.loop, ctx.loan, ctx.at, ctx.starts = loop, loan, at, starts
        ctx.save_for_backward(start, *tensors)
        return torch.cat([lent.whole[slot] for slot in tape.returns], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        loop: Loop = ctx.loop
        start, *tensors = ctx.saved_tensors
        count = len(loop.read) + len(loop.linear)
        given, weights = tensors[:count], tensors[count:]
        if torch.is_grad_enabled():
            result = plain_loop(loop, grad.shape[0], start, given, weights)
            needed: tuple[bool, ...] = ctx.needs_input_grad[2:]
            wanted = [tensor for tensor, need in zip((start, *tensors), needed, strict=True) if need]
            gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
            return (None, None, *(next(gradients) if need else None for need in needed))
        return _backward(ctx, loop, grad, given, weights)


def _call(
    op: Op, loop: Loop, at: dict[int, Sequence[Tensor]], given: Sequence[Tensor], weights: Sequence[Tensor]
) -> Callable[[int], object] | None:
    """An operation as a function of time, writing into its buffer."""
    match op:
        case LinearOp():
            index = loop.linear.index(op)
            share = given[len(loop.read) + index].unbind(0)
            own = [
                (at[slot], weight.mT)
                for (which, slot, _), weight in zip(loop.weights, weights, strict=True)
                if which == index
            ]
            out = at[op.out]
            (first, first_weight), *rest = own

            def linear(t: int) -> None:
                torch.addmm(share[t], first[t], first_weight, out=out[t])
                for slot, weight in rest:
                    out[t].addmm_(slot[t], weight)

            return linear
        case UnaryOp():
            function, value, out = _UNARY[op.function], at[op.slot], at[op.out]
            if op.function == "relu":
                return lambda t: torch.clamp(value[t], min=0.0, out=out[t])
            return lambda t: function(value[t], out=out[t])
        case BinaryOp():
            return _binary_call(op, at)
        case ChunkOp():
            return None


def _binary_call(op: BinaryOp, at: dict[int, Sequence[Tensor]]) -> Callable[[int], object]:
    function, out = _BINARY[op.function], at[op.out]
    if isinstance(op.left, int) and isinstance(op.right, int):
        left, right = at[op.left], at[op.right]
        return lambda t: function(left[t], right[t], out=out[t])
    number = op.right if isinstance(op.left, int) else op.left
    value = at[op.left if isinstance(op.left, int) else int(op.right)]
    if op.function == "sub" and not isinstance(op.left, int):
        return lambda t: torch.sub(value[t], number, out=out[t]).neg_()
    return lambda t: function(value[t], number, out=out[t])


def _backward(
    ctx: Any, loop: Loop, grad: Tensor, given: Sequence[Tensor], weights: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    tape, lent = loop.tape, ctx.loan.buffers
    at: dict[int, Sequence[Tensor]] = ctx.at
    length = grad.shape[0]
    hoisted_grads = {slot: torch.zeros_like(tensor) for slot, tensor in zip(loop.read, given, strict=False)}
    _slopes(loop, lent, at)
    widths = [tape.widths[slot] for slot in tape.returns]
    incoming = [part.unbind(0) for part in grad.split(widths, -1)]
    by_linear = [
        [(slot, weight) for (which, slot, _), weight in zip(loop.weights, weights, strict=True) if which == index]
        for index in range(len(loop.linear))
    ]
    undo = [_undo(op, loop, lent, at, by_linear) for op in reversed(loop.ops)]
    carried: list[Tensor | None] = [None] * len(tape.states)
    for t in range(length - 1, -1, -1):
        g: Grads = {}
        for slot, emitted, later in zip(tape.returns, incoming, carried, strict=True):
            g[slot] = emitted[t] if later is None else emitted[t] + later
        for call in undo:
            call(t, g)
        for slot, whole in hoisted_grads.items():
            if slot in g:
                whole[t] = g[slot]
        carried = [g.get(slot) for slot in tape.states]
    grad_start = None
    if ctx.needs_input_grad[2]:
        each = zip(carried, ctx.starts, strict=True)
        grad_start = torch.cat([torch.zeros_like(s) if c is None else c for c, s in each], -1)
    return (None, None, grad_start, *hoisted_grads.values(), *(b.clone() for b in lent.grads),
            *_weight_gradients(ctx, loop, lent, at))  # fmt: skip


Grads = dict[int, Tensor]


def _add(g: Grads, slot: int, value: Tensor) -> None:
    have = g.get(slot)
    g[slot] = value if have is None else have + value


def _undo(
    op: Op,
    loop: Loop,
    lent: _Buffers,
    at: dict[int, Sequence[Tensor]],
    by_linear: Sequence[Sequence[tuple[int, Tensor]]],
) -> Callable[[int, Grads], None]:
    """The gradient of an operation as a function of time, from the gradients so far into them."""
    match op:
        case LinearOp():
            index = loop.linear.index(op)
            return _undo_linear(op.out, lent.grad_at[index], by_linear[index])
        case ChunkOp():
            into = next((lent.grad_at[i] for i, other in enumerate(loop.linear) if other.out == op.slot), None)
            return _undo_chunk(op, at, into)
        case UnaryOp():
            out, slot, slope = op.out, op.slot, lent.slope_at[op.out]

            def unary(t: int, g: Grads) -> None:
                own = g.get(out)
                if own is not None:
                    _add(g, slot, own * slope[t])

            return unary
        case BinaryOp():
            return _undo_binary(op, at, lent)


def _undo_linear(
    out: int, stored: Sequence[Tensor], inputs: Sequence[tuple[int, Tensor]]
) -> Callable[[int, Grads], None]:
    def linear(t: int, g: Grads) -> None:
        own, kept = g.get(out), stored[t]
        if own is None:
            kept.zero_()
            return
        if own is not kept:
            kept.copy_(own)
        for slot, weight in inputs:
            _add(g, slot, kept @ weight)

    return linear


def _undo_chunk(
    op: ChunkOp, at: dict[int, Sequence[Tensor]], into: Sequence[Tensor] | None
) -> Callable[[int, Grads], None]:
    """Where the chunks are those of a linear map, their gradients go straight to where it keeps its own."""
    outs, whole = op.outs, op.slot

    def chunk(t: int, g: Grads) -> None:
        parts = [g.get(slot) for slot in outs]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            if not known:
                return
            zero = torch.zeros_like(at[outs[0]][t])
            known = [zero if part is None else part for part in parts]
        if into is not None and whole not in g:
            g[whole] = torch.cat(known, -1, out=into[t])
        else:
            _add(g, whole, torch.cat(known, -1))

    return chunk


def _undo_binary(op: BinaryOp, at: dict[int, Sequence[Tensor]], lent: _Buffers) -> Callable[[int, Grads], None]:
    out, left, right = op.out, op.left, op.right

    def choice(t: int, g: Grads) -> None:
        own = g.get(out)
        if own is not None:
            share = own * lent.slope_at[out][t]
            _add(g, int(left), share)
            _add(g, int(right), own - share)

    def product(t: int, g: Grads) -> None:
        own = g.get(out)
        if own is None:
            return
        if isinstance(left, int):
            _add(g, left, own * (at[right][t] if isinstance(right, int) else right))
        if isinstance(right, int):
            _add(g, right, own * (at[left][t] if isinstance(left, int) else left))

    def total(t: int, g: Grads) -> None:
        own = g.get(out)
        if own is None:
            return
        if isinstance(left, int):
            _add(g, left, own)
        if isinstance(right, int):
            _add(g, right, -own if op.function == "sub" else own)

    return {"mul": product, "add": total, "sub": total}.get(op.function, choice)


def _slopes(loop: Loop, lent: _Buffers, at: dict[int, Sequence[Tensor]]) -> None:
    """Derivatives of the pointwise operations, for all times at once."""
    for op in loop.ops:
        if isinstance(op, UnaryOp):
            value, slope = lent.whole[op.out], lent.slope[op.out]
            if op.function == "sigmoid":
                torch.addcmul(value, value, value, value=-1.0, out=slope)
            elif op.function == "tanh":
                torch.addcmul(value.new_ones(()), value, value, value=-1.0, out=slope)
            else:
                slope.copy_(value > 0)
        elif isinstance(op, BinaryOp) and op.out in lent.slope:
            # 1 where the left side is taken; both sides share a tie, as in torch
            left, right = (torch.stack(tuple(at[int(side)])) for side in (op.left, op.right))
            taken = left < right if op.function == "minimum" else left > right
            lent.slope[op.out].copy_(taken).add_(left == right, alpha=0.5)


def _weight_gradients(ctx: Any, loop: Loop, lent: _Buffers, at: dict[int, Sequence[Tensor]]) -> list[Tensor]:
    """One product over all times for each slot that a linear operation of the loop reads."""
    tape = loop.tape
    result: list[Tensor] = []
    for index, slot, _ in loop.weights:
        grads = lent.grads[index]
        if slot in tape.states:
            position = tape.states.index(slot)
            before = lent.whole[tape.returns[position]]
            total = grads[1:].flatten(0, 1).mT @ before[:-1].flatten(0, 1)
            result.append(total.addmm_(grads[0].mT, ctx.starts[position]))
        else:
            result.append(grads.flatten(0, 1).mT @ lent.whole[slot].flatten(0, 1))
    return result
