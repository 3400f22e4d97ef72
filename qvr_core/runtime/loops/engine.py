"""Running a loop over time: one autograd function whose backward is generated from the loop's tape.

What depends on the items alone is computed for all times beforehand.  Several loops of one shape, each with weights of
its own, run side by side along a leading group axis, written [G,] below.  L times, B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.loops.lstm import lstm_of, run_lstm, runs
from qvr_core.runtime.loops.plain_torch import evaluate, plain_loop
from qvr_core.runtime.loops.run import LoopRun, filled, gradients, versions
from qvr_core.runtime.loops.tape import LinearOp, outs_of
from qvr_core.runtime.loops.torch_operators import recorded_backward, recorded_run
from qvr_core.runtime.values.indices import in_transform, recording


def run_program(
    loop: Loop,
    items: Sequence[Tensor],
    start: Tensor,
    emit_all: bool,
    only: int | None = None,
) -> Tensor:
    """States ([L,] B, S) of a cell program, from its items (L, B, w) and the start state (B, S); or `only` one of them.

    What is a long short-term memory is run by torch's own, where it can.
    """
    tape = loop.tape
    values: dict[int, Tensor] = dict(zip(tape.items, items, strict=True))
    linear = (op for op in tape.ops if isinstance(op, LinearOp))
    parameters = {op.out: made() for op, made in zip(linear, tape.parameters, strict=True)}

    def apply(op: LinearOp) -> Tensor:
        joined = values[op.slots[0]] if len(op.slots) == 1 else torch.cat([values[s] for s in op.slots], -1)
        return F.linear(joined, *parameters[op.out])

    for op in tape.ops:
        if outs_of(op)[0] not in loop.made_by:
            evaluate(op, values, apply)
    given = [values[slot] for slot in loop.given]
    weights = [each for op in loop.linear for each in parameters[op.out] if each is not None]
    run = LoopRun(loop, 0, items[0].shape[0], emit_all, (None,) * len(given))
    if in_transform():
        states = plain_loop(run, start, (*given, *weights))
    elif recording() and not emit_all:
        states = _run(replace(run, emit_all=True), start, (*given, *weights))[-1]
    elif (lstm := lstm_of(loop)) is not None and runs(run, lstm, only, start, (*given, *weights)):
        states = run_lstm(run, lstm, start, (*given, *weights))
        if emit_all:
            return states
    else:
        states = _run(run, start, (*given, *weights))
    return states if only is None else torch.split(states, [tape.widths[slot] for slot in tape.states], -1)[only]


def run_loop(run: LoopRun, start: Tensor | None, tensors: Sequence[Tensor]) -> Tensor:
    """States ([G,] [L,] B, S); while anything looks at each operation, plain ones.

    `tensors` are what is given, by slot ([G,] L, B, w) or tables (V, w), then for each group the weight (and bias) of
    each linear operation; `start` is ([G,] B, S), or None for zeros.
    """
    if traced():
        return plain_loop(run, start, tensors)
    return _run(run, start, tensors)


def traced() -> bool:
    """Whether something looks at every operation, and plain ones are wanted: torch.func, or a compiler."""
    return in_transform() or recording()


def _run(run: LoopRun, start: Tensor | None, tensors: Sequence[Tensor]) -> Tensor:
    return _CompiledLoop.apply(run, start, *tensors)  # pyright: ignore[reportReturnType, reportUnknownVariableType]


def below_autograd() -> AbstractContextManager[None]:
    """Inside an autograd function nothing is recorded: its operations need not ask."""
    return torch._C._AutoDispatchBelowAutograd()  # pyright: ignore


class _CompiledLoop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: LoopRun, start: Tensor | None, *tensors: Tensor) -> Tensor:
        # there may be hundreds of weights: saving each of them the usual way costs more than the arithmetic
        ctx.run, ctx.tensors, ctx.versions = run, (start, *tensors), versions((start, *tensors))
        ctx.number = None
        if recording():
            states, ctx.number = recorded_run(run, start, tensors)
            return states
        with below_autograd():
            states, ctx.pooled, ctx.inputs = filled(run, start, tensors, ctx.needs_input_grad[1:])
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients of `forward`'s inputs, in their order; `None` where none is wanted.

        RuntimeError where an input was changed in place in between.
        """
        run: LoopRun = ctx.run
        start, *tensors = ctx.tensors
        needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
        if ctx.number is not None:
            found = recorded_backward(run, ctx.number, grad, start, tensors)
            return (None, *(each if need else None for each, need in zip(found, needed, strict=True)))
        if versions(ctx.tensors) != ctx.versions:
            raise RuntimeError("a weight or input of a loop was modified in place before its gradient was computed")
        if not torch.is_grad_enabled():
            with below_autograd():
                return (None, *gradients(run, ctx.pooled.buffers, ctx.inputs, grad, tensors, needed))
        # for second derivatives: the gradient of the plain operations, itself a graph
        wanted = [tensor for tensor, need in zip(ctx.tensors, needed, strict=True) if need]
        result = plain_loop(run, start, tensors)
        fresh = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
        return (None, *(next(fresh) if need else None for need in needed))
