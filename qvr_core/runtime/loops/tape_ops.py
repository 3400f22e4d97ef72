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

from qvr_core.runtime.loops.tape_backward import backward_of
from qvr_core.runtime.loops.tape_forward import LoopBuffers
from qvr_core.runtime.loops.tape_loop import Loop
from qvr_core.runtime.values.workspace import Loan

_loops: WeakValueDictionary[int, Loop] = WeakValueDictionary()
_left: dict[int, Loan[LoopBuffers]] = {}
_numbers = itertools.count()
MOST_LEFT = 8
"""Forward runs that may wait for their backward; older ones had none."""


def parts_of(
    loop: Loop, tensors: Sequence[Tensor]
) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor | None]]:
    """What is given, the weights, and the bias of each linear operation."""
    count, linear = len(loop.given), len(loop.linear)
    biases = iter(tensors[count + linear :])
    each = [None if op.bias is None else next(biases) for op in loop.linear]
    return tensors[:count], tensors[count : count + linear], each


def run(loop: Loop, length: int, start: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, Loan[LoopBuffers]]:
    """All states (L, B, S), and the buffers that the backward reads."""
    rows = start.shape[0]
    key = (LoopBuffers, loop.serial, length, rows, start.dtype, start.device)
    loan = Loan(key, lambda: LoopBuffers(loop, length, rows, start))
    lent = loan.buffers
    lent.load(start, *parts_of(loop, tensors))
    for call in lent.forward:
        call()
    return torch.cat([state[1:] for state in lent.states], -1), loan


def recorded_run(loop: Loop, length: int, start: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All states, and the number of this run."""
    _loops[loop.serial] = loop
    return _operations()[0](loop.serial, length, start, list(tensors))


def recorded_backward(
    loop: Loop, number: Tensor, grad: Tensor, start: Tensor, tensors: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients of the start state and of the tensors."""
    return _operations()[1](loop.serial, number, grad, start, list(tensors))


@cache
def _operations() -> tuple[Any, Any]:
    """Registered when first wanted: few runs record anything."""

    def forward(serial: int, length: int, start: Tensor, tensors: list[Tensor]) -> tuple[Tensor, Tensor]:
        states, loan = run(_loops[serial], length, start, tensors)
        number = next(_numbers)
        _left[number] = loan
        while len(_left) > MOST_LEFT:
            del _left[next(iter(_left))]
        return states, torch.tensor(number)

    def forward_shapes(serial: int, length: int, start: Tensor, tensors: list[Tensor]) -> tuple[Tensor, Tensor]:
        return start.new_empty(length, *start.shape), torch.empty((), dtype=torch.int64)

    def backward(serial: int, number: Tensor, grad: Tensor, start: Tensor, tensors: list[Tensor]) -> list[Tensor]:
        loan = _left.pop(int(number), None)
        if loan is None:
            # a compiler may make one run of two equal ones
            _, loan = run(_loops[serial], grad.shape[0], start, tensors)
        needed = [True] * (1 + len(tensors))
        return [gradient for gradient in backward_of(loan.buffers).run(grad, needed) if gradient is not None]

    def backward_shapes(
        serial: int, number: Tensor, grad: Tensor, start: Tensor, tensors: list[Tensor]
    ) -> list[Tensor]:
        return [torch.empty_like(tensor) for tensor in (start, *tensors)]

    operations: list[Any] = []
    for name, function, shapes in (
        ("tape_forward", forward, forward_shapes),
        ("tape_backward", backward, backward_shapes),
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
