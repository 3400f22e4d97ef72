"""A loop as two operations of torch, so that a recorded graph holds it whole.

Unrolled over a sequence it would take a compiler minutes, and lose its buffers.  The forward operation leaves its
buffers under a number, which the backward takes them by.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from qvr_core.runtime.loops.forward_pass import Inputs, LoopBuffers
from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.loops.run import LoopRun, filled, gradients
from qvr_core.runtime.values.buffer_pool import Pooled

_loops: WeakValueDictionary[int, Loop] = WeakValueDictionary()
_left: dict[int, tuple[Pooled[LoopBuffers], Inputs]] = {}
_numbers = itertools.count()
MOST_LEFT = 8
"""Forward runs that may wait for their backward; older ones had none."""


def recorded_run(run: LoopRun, start: Tensor | None, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All states of a run without groups and tables, and the number of this run."""
    _loops[run.loop.serial] = run.loop
    return _operations()[0](run.loop.serial, run.length, start, list(tensors))


def recorded_backward(
    run: LoopRun, number: Tensor, grad: Tensor, start: Tensor | None, tensors: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients of the start state and of the tensors."""
    return _operations()[1](run.loop.serial, number, grad, start, list(tensors))


def _run_of(serial: int, length: int) -> LoopRun:
    loop = _loops[serial]
    return LoopRun(loop, 0, length, True, (None,) * len(loop.given))


@cache
def _operations() -> tuple[Any, Any]:
    """Registered when first wanted: few runs record anything."""

    def forward(serial: int, length: int, start: Tensor, tensors: list[Tensor]) -> tuple[Tensor, Tensor]:
        states, pooled, inputs = filled(_run_of(serial, length), start, tensors, [True] * (1 + len(tensors)))
        number = next(_numbers)
        _left[number] = pooled, inputs
        while len(_left) > MOST_LEFT:
            del _left[next(iter(_left))]
        return states, torch.tensor(number)

    def forward_shapes(serial: int, length: int, start: Tensor, tensors: list[Tensor]) -> tuple[Tensor, Tensor]:
        return start.new_empty(length, *start.shape), torch.empty((), dtype=torch.int64)

    def backward(serial: int, number: Tensor, grad: Tensor, start: Tensor, tensors: list[Tensor]) -> list[Tensor]:
        run = _run_of(serial, grad.shape[0])
        left = _left.pop(int(number), None)
        # a compiler may make one run of two equal ones
        pooled, inputs = filled(run, start, tensors, [True] * (1 + len(tensors)))[1:] if left is None else left
        found = gradients(run, pooled.buffers, inputs, grad, tensors, [True] * (1 + len(tensors)))
        return [gradient for gradient in found if gradient is not None]

    def backward_shapes(
        serial: int, number: Tensor, grad: Tensor, start: Tensor, tensors: list[Tensor]
    ) -> list[Tensor]:
        return [torch.empty_like(tensor) for tensor in (start, *tensors)]

    operations: list[Any] = []
    for name, function, shapes in (
        ("loop_forward", forward, forward_shapes),
        ("loop_backward", backward, backward_shapes),
    ):
        # the annotations are strings in this file, and the library reads types
        function.__annotations__ = _types(function.__annotations__)
        operation = torch.library.custom_op(f"qvr::{name}", function, mutates_args=())
        operation.register_fake(shapes)
        operations.append(operation)
    return operations[0], operations[1]


def _types(annotations: dict[str, Any]) -> dict[str, Any]:
    known = {"Tensor": Tensor, "int": int, "list[Tensor]": list[Tensor], "tuple[Tensor, Tensor]": tuple[Tensor, Tensor]}
    return {name: known[text] for name, text in annotations.items()}
