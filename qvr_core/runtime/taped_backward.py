"""The backward of a loop, generated from its tape: every operation's gradient as a function of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from qvr_core.runtime.tape import BinaryOp, ChunkOp, LinearOp, Op, UnaryOp
from qvr_core.runtime.tape_loop import Loop, LoopBuffers, ins_of


def generated_backward(
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
    placed = _placed(loop, lent)
    undo = [_undo(op, loop, lent, at, by_linear, placed) for op in reversed(loop.ops)]
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
    lent: LoopBuffers,
    at: dict[int, Sequence[Tensor]],
    by_linear: Sequence[Sequence[tuple[int, Tensor]]],
    placed: Placed,
) -> Callable[[int, Grads], None]:
    """The gradient of an operation as a function of time, from the gradients so far into them."""
    match op:
        case LinearOp():
            index = loop.linear.index(op)
            return _undo_linear(op.out, lent.grad_at[index], by_linear[index])
        case ChunkOp():
            into = next((lent.grad_at[i] for i, other in enumerate(loop.linear) if other.out == op.slot), None)
            return _undo_chunk(op, at, into, all(slot in placed for slot in op.outs))
        case UnaryOp():
            out, slot, slope, place = op.out, op.slot, lent.slope_at[op.out], placed.get(op.slot)
            if place is not None:
                return _undo_in_place(out, slot, slope, place)

            def unary(t: int, g: Grads) -> None:
                own = g.get(out)
                if own is not None:
                    _add(g, slot, own * slope[t])

            return unary
        case BinaryOp():
            return _undo_binary(op, at, lent)


Placed = dict[int, Sequence[Tensor]]


def _placed(loop: Loop, lent: LoopBuffers) -> Placed:
    """Chunks of a linear map with one, pointwise, reader: their gradients go straight to where the map keeps its."""
    found: Placed = {}
    for op in loop.ops:
        if not isinstance(op, ChunkOp):
            continue
        index = next((i for i, other in enumerate(loop.linear) if other.out == op.slot), None)
        if index is None or sum(op.slot in ins_of(other) for other in loop.ops) != 1:
            continue
        for slot, views in zip(op.outs, lent.grads[index].split(op.width, -1), strict=True):
            readers = [other for other in loop.ops if slot in ins_of(other)]
            if len(readers) == 1 and isinstance(readers[0], UnaryOp) and slot not in loop.tape.returns:
                found[slot] = views.unbind(0)
    return found


def _undo_in_place(
    out: int, slot: int, slope: Sequence[Tensor], place: Sequence[Tensor]
) -> Callable[[int, Grads], None]:
    def unary(t: int, g: Grads) -> None:
        own = g.get(out)
        if own is None:
            g[slot] = place[t].zero_()
        else:
            g[slot] = torch.mul(own, slope[t], out=place[t])

    return unary


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
    op: ChunkOp, at: dict[int, Sequence[Tensor]], into: Sequence[Tensor] | None, in_place: bool
) -> Callable[[int, Grads], None]:
    """Where the chunks are those of a linear map, their gradients go straight to where it keeps its own."""
    outs, whole = op.outs, op.slot
    if in_place and into is not None:
        return lambda t, g: g.__setitem__(whole, into[t])

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


def _undo_binary(op: BinaryOp, at: dict[int, Sequence[Tensor]], lent: LoopBuffers) -> Callable[[int, Grads], None]:
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


def _slopes(loop: Loop, lent: LoopBuffers, at: dict[int, Sequence[Tensor]]) -> None:
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


def _weight_gradients(ctx: Any, loop: Loop, lent: LoopBuffers, at: dict[int, Sequence[Tensor]]) -> list[Tensor]:
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
