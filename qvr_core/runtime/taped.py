"""Running a tape over time: one autograd function whose backward is generated from the tape.

What depends on the items alone is computed for all times beforehand.  The loop keeps every value by time; its backward
walks the tape in reverse, and the gradients of weights are one product over all times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.fused import can_fuse
from qvr_core.runtime.tape import BinaryOp, ChunkOp, LinearOp, Op, Operand, Tape, UnaryOp
from qvr_core.runtime.tape_loop import Loop, LoopBuffers, outs_of
from qvr_core.runtime.taped_backward import generated_backward
from qvr_core.runtime.workspace import Loan

_UNARY: dict[str, Callable[..., Tensor]] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu}
_BINARY: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


def run_loop(loop: Loop, items: Sequence[Tensor], start: Tensor) -> Tensor:
    """All states (L, B, S) from the items (L, B, w) and the start state (B, S)."""
    tape = loop.tape
    length, rows = items[0].shape[:2]
    values: dict[int, Tensor] = dict(zip(tape.items, items, strict=True))
    hoisted = tape.hoisted()
    for op in tape.ops:
        if outs_of(op)[0] in hoisted:
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


class _Taped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loop: Loop, length: int, start: Tensor, *tensors: Tensor) -> Tensor:
        tape, rows = loop.tape, start.shape[0]
        key = (LoopBuffers, loop.serial, length, rows, start.dtype, start.device)
        loan = Loan(key, lambda: LoopBuffers(loop, length, rows, start))
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
        return generated_backward(ctx, loop, grad, given, weights)


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
