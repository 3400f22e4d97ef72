"""One run of a loop on pooled buffers: its states, and the gradients of all that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.loops.backward_pass import backward_of
from qvr_core.runtime.loops.forward_pass import NOTHING, Inputs, LoopBuffers
from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.values.buffer_pool import Pooled


@dataclass(frozen=True, slots=True)
class LoopRun:
    """A run apart from its tensors: how many groups (0: no group axis), steps, and all states or the last.

    `index` has for each given slot the rows ([G,] L, B) to take where its tensor is a table, which linear operations
    alone may read.
    """

    loop: Loop
    groups: int
    length: int
    emit_all: bool
    index: tuple[Tensor | None, ...]

    def parameters(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Of the tensors of a run those that are weights and biases."""
        return tensors[len(self.loop.given) :]


def _grouped(run: LoopRun, tensor: Tensor) -> Tensor:
    return tensor if run.groups else tensor.unsqueeze(0)


def filled(
    run: LoopRun, start: Tensor | None, tensors: Sequence[Tensor], needed: Sequence[bool]
) -> tuple[Tensor, Pooled[LoopBuffers], Inputs]:
    """The states, the buffers that the backward reads, and what it is given."""
    loop = run.loop
    reached = tuple(slot for slot, need in zip(loop.given, needed[1:], strict=False) if need)
    given: list[Tensor] = []
    index: list[Tensor | None] = []
    for each, rows in zip(tensors, run.index, strict=False):
        # a table with fewer rows than are taken of it goes through linear maps itself
        few = rows is not None and len(each) * max(1, run.groups) <= rows.numel()
        taken = each if rows is None or few else F.embedding(rows, each)
        given.append(taken if few else _grouped(run, taken).contiguous())
        index.append(_grouped(run, rows) if rows is not None and few else None)
    inputs = Inputs(loop.given, given, index)
    like = next(iter(inputs.values.values()), start)
    assert like is not None
    groups, rows = max(1, run.groups), like.shape[-2]
    key = (loop.serial, reached, groups, run.length, rows, like.dtype, like.device)
    pooled = Pooled(key, lambda: LoopBuffers(loop, groups, run.length, rows, like, reached))
    buffers = pooled.buffers
    buffers.inputs = inputs
    buffers.run(None if start is None else _grouped(run, start), run.parameters(tensors))
    ends = [buffers.value[slot] if run.emit_all else buffers.value[slot][:, -1] for slot in loop.tape.returns]
    buffers.inputs = NOTHING
    # what the caller sees is never pooled
    states = ends[0].clone() if len(ends) == 1 else torch.cat(ends, -1)
    return states if run.groups else states[0], pooled, inputs


def gradients(
    run: LoopRun,
    buffers: LoopBuffers,
    inputs: Inputs,
    grad: Tensor,
    tensors: Sequence[Tensor],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients of the start state and of the tensors of a run, where they are needed."""
    buffers.inputs = inputs
    found = backward_of(buffers, run.emit_all).run(_grouped(run, grad), needed)
    buffers.inputs = NOTHING
    for at, (rows, slot) in enumerate(zip(run.index, run.loop.given, strict=True), 1):
        made = found[at]
        if made is not None and slot not in inputs.tables:
            found[at] = made if run.groups else made[0]
            if rows is not None:
                table = made.new_zeros(len(tensors[at - 1]), made.shape[-1])
                found[at] = table.index_add_(0, rows.flatten(), made.flatten(0, -2))
    if found[0] is not None and not run.groups:
        found[0] = found[0][0]
    return found


def versions(tensors: Sequence[Tensor | None]) -> int:
    """Changes when one of them is modified in place."""
    return sum([tensor._version for tensor in tensors if tensor is not None])
