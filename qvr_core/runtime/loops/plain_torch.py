"""A loop in plain operations of torch: what transforms see, and what the generated backward is tested against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.loops.primitives import BINARY, UNARY
from qvr_core.runtime.loops.run import LoopRun
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, MulAddOp, Op, Operand, UnaryOp


def plain_loop(run: LoopRun, start: Tensor | None, tensors: Sequence[Tensor]) -> Tensor:
    """The states of a run, as `run_loop` has them."""
    loop, tape, time = run.loop, run.loop.tape, -3
    given = {
        slot: tensor if index is None else F.embedding(index, tensor)
        for slot, tensor, index in zip(loop.given, tensors, run.index, strict=False)
    }
    weights = _side_by_side(run, run.parameters(tensors))
    shares = {op.out: _share(op, given, *weights[op.out]) for op in loop.linear}
    widths = [tape.widths[slot] for slot in tape.states]
    if start is None:
        like = next(iter(given.values())).select(time, 0)
        start = like.new_zeros(*like.shape[:-1], sum(widths))
    states: Sequence[Tensor] = torch.split(start, widths, -1)
    result: list[Tensor] = []
    for t in range(run.length):
        values = dict(zip(tape.states, states, strict=True))
        values.update((slot, tensor.select(time, t)) for slot, tensor in given.items())

        def apply(op: LinearOp, t: int = t, values: dict[int, Tensor] = values) -> Tensor:
            share = shares[op.out]
            return _linear_step(op, given, values, share[t] if isinstance(share, tuple) else share, weights[op.out][0])

        for op in loop.ops:
            evaluate(op, values, apply)
        states = [values[slot] for slot in tape.returns]
        result.append(torch.cat(states, -1))
    return torch.stack(result, time) if run.emit_all else result[-1]


def _side_by_side(run: LoopRun, parameters: Sequence[Tensor]) -> dict[int, tuple[Tensor, Tensor | None]]:
    """Weight and bias of each linear operation, those of all groups stacked."""
    count = sum(1 + op.bias for op in run.loop.linear)
    joined = [torch.stack(tuple(parameters[at::count])) if run.groups else parameters[at] for at in range(count)]
    fresh = iter(joined)
    found: dict[int, tuple[Tensor, Tensor | None]] = {}
    for op in run.loop.linear:
        weight, bias = next(fresh), next(fresh).unsqueeze(-2) if op.bias else None
        for a, b, number in op.shifts:
            assert bias is not None
            bias = bias + torch.cat([bias.new_full((width,), value) for width, value in
                                     ((a, 0.0), (b - a, number), (bias.shape[-1] - b, 0.0))])  # fmt: skip
        found[op.out] = weight, bias
    return found


def _share(
    op: LinearOp, given: dict[int, Tensor], weight: Tensor, bias: Tensor | None
) -> Tensor | tuple[Tensor, ...] | None:
    """What the given slots and the bias add to a linear map: by time where there are such."""
    share: Tensor | None = None
    for slot, (a, b) in zip(op.slots, op.columns, strict=True):
        if slot in given:
            part = given[slot] @ weight[..., a:b].mT.unsqueeze(-3)
            share = part if share is None else share + part
    if share is None:
        return bias
    return (share if bias is None else share + bias.unsqueeze(-3)).unbind(-3)


def _linear_step(
    op: LinearOp, given: dict[int, Tensor], values: dict[int, Tensor], total: Tensor | None, weight: Tensor
) -> Tensor:
    for slot, (a, b) in zip(op.slots, op.columns, strict=True):
        if slot not in given:
            part = values[slot] @ weight[..., a:b].mT
            total = part if total is None else total + part
    assert total is not None
    return total


def evaluate(op: Op, values: dict[int, Tensor], linear: Callable[[LinearOp], Tensor]) -> None:
    """Put what an operation gives, (B, width), into its slots; `linear` computes linear maps."""
    match op:
        case LinearOp():
            values[op.out] = linear(op)
        case UnaryOp():
            made = UNARY[op.function].plain(values[op.slot])
            values[op.out] = made + op.plus if op.plus else made
        case BinaryOp():
            left, right = (_operand(side, values) for side in (op.left, op.right))
            if isinstance(left, float) and op.function == "sub":
                made = -right + left
            else:
                made = BINARY[op.function](*((left, right) if isinstance(left, Tensor) else (right, left)))
            values[op.out] = made if op.scale == 1.0 else made * op.scale
        case MulAddOp():
            values[op.out] = torch.addcmul(values[op.base], values[op.left], values[op.right], value=op.scale)
        case ChunkOp():
            values.update(zip(op.outs, torch.split(values[op.slot], op.width, -1), strict=True))


def _operand(operand: Operand, values: dict[int, Tensor]) -> Any:
    return values[operand] if isinstance(operand, int) else operand
