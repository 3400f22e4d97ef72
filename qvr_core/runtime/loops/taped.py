"""Running a tape over time: one autograd function whose backward is generated from the tape.

What depends on the items alone is computed for all times beforehand.  The loop keeps every value by time; its backward
follows the tape's adjoint, and the gradients of weights are one product over all times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, MulAddOp, Op, Operand, Tape, UnaryOp, outs_of
from qvr_core.runtime.loops.tape_backward import backward_of
from qvr_core.runtime.loops.tape_loop import Loop
from qvr_core.runtime.loops.tape_ops import parts_of, recorded_backward, recorded_run, run
from qvr_core.runtime.values.indices import in_transform, recording

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
    values: dict[int, Tensor] = dict(zip(tape.items, items, strict=True))
    inside = {slot for op in loop.ops for slot in outs_of(op)}
    for op in tape.ops:
        if outs_of(op)[0] not in inside:
            _evaluate(op, values, tape)
    given = [values[slot] for slot in loop.given]
    weights = [_weight(tape, op) for op in loop.linear]
    biases = [bias for op in loop.linear if (bias := _bias(tape, op)) is not None]
    length = items[0].shape[0]
    if not in_transform():
        return _Taped.apply(loop, length, start, *given, *weights, *biases)  # pyright: ignore[reportReturnType]
    return plain_loop(loop, length, start, (*given, *weights, *biases))


def _weight(tape: Tape, op: LinearOp) -> Tensor:
    weight = tape.leaves[op.leaf][op.weight]
    assert weight is not None
    return weight


def _bias(tape: Tape, op: LinearOp) -> Tensor | None:
    return None if op.bias is None else tape.leaves[op.leaf][op.bias]


def _value(operand: Operand, values: dict[int, Tensor]) -> Any:
    return values[operand] if isinstance(operand, int) else operand


def _evaluate(op: Op, values: dict[int, Tensor], tape: Tape) -> None:
    match op:
        case LinearOp():
            joined = values[op.slots[0]] if len(op.slots) == 1 else torch.cat([values[s] for s in op.slots], -1)
            values[op.out] = F.linear(joined, _weight(tape, op), _bias(tape, op))
        case UnaryOp():
            values[op.out] = _UNARY[op.function](values[op.slot])
        case BinaryOp():
            left, right = _value(op.left, values), _value(op.right, values)
            if isinstance(left, float) and op.function == "sub":
                made = -right + left
            else:
                made = _BINARY[op.function](*((left, right) if isinstance(left, Tensor) else (right, left)))
            values[op.out] = made if op.scale == 1.0 else made * op.scale
        case MulAddOp():
            values[op.out] = torch.addcmul(values[op.base], values[op.left], values[op.right], value=op.scale)
        case ChunkOp():
            values.update(zip(op.outs, values[op.slot].split(op.width, -1), strict=True))


def plain_loop(loop: Loop, length: int, start: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """The loop in plain operations: what transforms see, and what the generated backward is tested against."""
    tape = loop.tape
    given, weights, biases = parts_of(loop, tensors)
    shares = {
        op.out: _share(loop, op, given, weight, bias)
        for op, weight, bias in zip(loop.linear, weights, biases, strict=True)
    }
    weight_of = {op.out: weight for op, weight in zip(loop.linear, weights, strict=True)}
    states = start.split([tape.widths[slot] for slot in tape.states], -1)
    result: list[Tensor] = []
    for t in range(length):
        values = dict(zip(tape.states, states, strict=True))
        values.update((slot, tensor[t]) for slot, tensor in zip(loop.given, given, strict=True))
        for op in loop.ops:
            if isinstance(op, LinearOp):
                values[op.out] = _linear_step(loop, op, values, shares[op.out], weight_of[op.out], t)
            else:
                _evaluate(op, values, tape)
        states = tuple(values[slot] for slot in tape.returns)
        result.append(torch.cat(states, -1))
    return torch.stack(result)


def _share(loop: Loop, op: LinearOp, given: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """What the given slots and the bias add to a linear map, at all times."""
    share: Tensor | None = None
    for slot, (a, b) in zip(op.slots, op.columns, strict=True):
        if slot in loop.given:
            part = F.linear(given[loop.given.index(slot)], weight[:, a:b], bias if share is None else None)
            share = part if share is None else share + part
    return bias if share is None else share


def _linear_step(
    loop: Loop, op: LinearOp, values: dict[int, Tensor], share: Tensor | None, weight: Tensor, t: int
) -> Tensor:
    total = share[t] if share is not None and share.ndim > 1 else share
    for slot, (a, b) in zip(op.slots, op.columns, strict=True):
        if slot not in loop.given:
            part = values[slot] @ weight[:, a:b].mT
            total = part if total is None else total + part
    assert total is not None
    return total


class _Taped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loop: Loop, length: int, start: Tensor, *tensors: Tensor) -> Tensor:
        ctx.loop, ctx.number = loop, None
        ctx.save_for_backward(start, *tensors)
        if recording():
            states, ctx.number = recorded_run(loop, length, start, tensors)
        else:
            states, ctx.loan = run(loop, length, start, tensors)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        loop: Loop = ctx.loop
        start, *tensors = ctx.saved_tensors
        needed: tuple[bool, ...] = ctx.needs_input_grad[2:]
        if ctx.number is not None:
            found = recorded_backward(loop, ctx.number, grad, start, tensors)
            return (None, None, *(each if need else None for each, need in zip(found, needed, strict=True)))
        if not torch.is_grad_enabled():
            return (None, None, *backward_of(ctx.loan.buffers).run(grad, needed))
        result = plain_loop(loop, grad.shape[0], start, tensors)
        wanted = [tensor for tensor, need in zip((start, *tensors), needed, strict=True) if need]
        gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
        return (None, None, *(next(gradients) if need else None for need in needed))
