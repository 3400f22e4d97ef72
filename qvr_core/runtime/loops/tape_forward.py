"""The buffers of one run of a loop, and its forward steps as calls on them.

Every call is bound to its views once, so a run is a walk over a list; buffers and list are lent from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, permutations

import torch
from torch import Tensor

from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, MulAddOp, Op, UnaryOp, ins_of, outs_of
from qvr_core.runtime.loops.tape_loop import Loop

Call = Callable[[], object]
Shared = Callable[[int, int], Call]
"""What is done for all steps from one to another at once."""
ROWS_AT_ONCE = 256
"""Rows, over several steps, that are multiplied at once."""
MOST_ORDERED = 6
"""Chunks whose order in memory is chosen; more stay as they are."""
UNARY: dict[str, Callable[..., Tensor]] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}
BINARY: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


class LoopBuffers:
    """For a loop over L steps and B rows.

    `states` (L + 1, B, w) begin with the start state; `value` has (L, B, w) by slot.  Chunks under one function lie
    side by side, so that one call serves them: `order` says which rows of the weights come first.
    """

    def __init__(self, loop: Loop, length: int, rows: int, like: Tensor) -> None:
        self.loop, self.length, self.rows, self.like = loop, length, rows, like.detach().new_empty(())
        tape = loop.tape
        self.nbytes = 0
        self.states = [self.new(length + 1, rows, tape.widths[slot]) for slot in tape.states]
        self.value: dict[int, Tensor] = {slot: self.time(tape.widths[slot]) for slot in loop.given}
        for before, slot, returned in zip(self.states, tape.states, tape.returns, strict=True):
            self.value[slot], self.value[returned] = before[:-1], before[1:]
        self.chunked = {op.slot: op for op in loop.ops if isinstance(op, ChunkOp)}
        self.order = {op.out: self._order(op) for op in loop.linear}
        # as the forward steps read them (in, out), and as the backward does (out, in)
        self.weights = [self.new(op.columns[-1][1], tape.widths[op.out]) for op in loop.linear]
        self.turned = [self.new(tape.widths[op.out], op.columns[-1][1]) for op in loop.linear]
        self.biases = {op.out: self.new(tape.widths[op.out]) for op in loop.linear if op.bias is not None}
        self.spans = spans_of(length, rows)
        self._shared: list[Shared] = []
        steps: list[Sequence[Call]] = []
        self._called: set[int] = set()
        self.backward: object = None
        """What `tape_backward` keeps here."""
        for op in loop.ops:
            steps += self._steps(op)
        by_step = list(zip(*steps, strict=True))
        self.forward: list[Call] = []
        for a, b in self.spans:
            self.forward += [shared(a, b) for shared in self._shared]
            self.forward += [call for step in by_step[a:b] for call in step]

    def new(self, *shape: int) -> Tensor:
        made = self.like.new_empty(shape)
        self.nbytes += made.nbytes
        return made

    def time(self, width: int) -> Tensor:
        return self.new(self.length, self.rows, width)

    # ------------------------------------------------------------ before the steps

    def _users(self, slot: int) -> list[Op]:
        return [op for op in self.loop.ops if slot in ins_of(op)]

    def function_of(self, slot: int) -> str:
        """The function that alone reads a linear map, or a chunk of one: its value may stand where the map's did."""
        returns = self.loop.tape.returns
        made = next((op for op in self.loop.ops if slot in outs_of(op)), None)
        whole = made.slot if isinstance(made, ChunkOp) else slot
        if whole in returns or not any(op.out == whole for op in self.loop.linear):
            return ""
        match self._users(slot):
            case [UnaryOp(function=function, out=out)] if out not in returns:
                return function
            case _:
                return ""

    def _order(self, op: LinearOp) -> tuple[int, ...]:
        """The order in which the chunks of a linear map lie in memory."""
        chunk = self.chunked.get(op.out)
        if chunk is None:
            return ()
        count = len(chunk.outs)
        kinds = [self.function_of(slot) for slot in chunk.outs]
        origins = [self.loop.adjoint.sources(slot) for slot in chunk.outs]

        def runs(order: tuple[int, ...]) -> int:
            return sum(len(list(groupby(order, key=lambda at: keys[at]))) for keys in (kinds, origins))

        plain = tuple(range(count))
        movable = op.out not in self.loop.tape.returns and count <= MOST_ORDERED
        return min(permutations(plain), key=runs) if movable else plain

    def rows_of(self, op: LinearOp, tensor: Tensor) -> Tensor:
        """A weight or bias with its rows in the order of memory."""
        return self._moved(tensor, self.order[op.out])

    def rows_back(self, op: LinearOp, tensor: Tensor) -> Tensor:
        """The inverse of `rows_of`."""
        order = self.order[op.out]
        return self._moved(tensor, tuple(order.index(at) for at in range(len(order))))

    @staticmethod
    def _moved(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
        if order == tuple(range(len(order))):
            return tensor
        parts = tensor.chunk(len(order))
        return torch.cat([parts[at] for at in order])

    def load(
        self, start: Tensor, given: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor | None]
    ) -> None:
        """Take over what this run works on."""
        tape = self.loop.tape
        for state, first in zip(self.states, start.split([tape.widths[s] for s in tape.states], -1), strict=True):
            state[0].copy_(first)
        for slot, tensor in zip(self.loop.given, given, strict=True):
            self.value[slot].copy_(tensor)
        for op, weight, bias, held, turned in zip(
            self.loop.linear, weights, biases, self.weights, self.turned, strict=True
        ):
            turned.copy_(self.rows_of(op, weight))
            held.copy_(turned.mT)
            if bias is not None:
                self.biases[op.out].copy_(self.rows_of(op, bias))

    # ------------------------------------------------------------ the steps

    def _steps(self, op: Op) -> list[Sequence[Call]]:
        """The calls of an operation, each by time."""
        match op:
            case LinearOp():
                return self._linear(op)
            case ChunkOp():
                self._cut(op)
                return []
            case UnaryOp():
                return self._unary(op)
            case MulAddOp():
                out = self._fill(op.out)
                base, left, right = self.value[op.base], self.value[op.left], self.value[op.right]
                return [by_time(torch.addcmul, base, left, right, value=op.scale, out=out)]
            case BinaryOp():
                self._share_place(op)
                return [self._binary(op)]

    def _share_place(self, op: BinaryOp) -> None:
        """What is only there to be added to stands where the sum will."""
        users = self._users(op.out)
        user = users[0] if len(users) == 1 else None
        if isinstance(user, MulAddOp) and user.base == op.out and op.out not in (user.left, user.right):
            self.value[op.out] = self._fill(user.out)

    def _fill(self, slot: int) -> Tensor:
        """The buffer that an operation fills."""
        if slot not in self.value:
            self.value[slot] = self.time(self.loop.tape.widths[slot])
        return self.value[slot]

    def _linear(self, op: LinearOp) -> list[Sequence[Call]]:
        index = self.loop.linear.index(op)
        weight, bias, out = self.weights[index], self.biases.get(op.out), self._fill(op.out)
        parts = [(slot, weight[a:b]) for slot, (a, b) in zip(op.slots, op.columns, strict=True)]
        shared = [(slot, part) for slot, part in parts if slot in self.loop.given]
        own = [(slot, part) for slot, part in parts if slot not in self.loop.given]
        for number, (slot, part) in enumerate(shared):
            self._shared.append(_shared_product(out, self.value[slot], part, bias if number == 0 else None, number > 0))
        calls: list[Sequence[Call]] = []
        for slot, part in own:
            value = self.value[slot]
            if shared or calls:
                calls.append([partial(o.addmm_, v, part) for o, v in zip(out, value, strict=True)])
            elif bias is not None:
                calls.append([partial(torch.addmm, bias, v, part, out=o) for o, v in zip(out, value, strict=True)])
            else:
                calls.append([partial(torch.mm, v, part, out=o) for o, v in zip(out, value, strict=True)])
        return calls

    def _cut(self, op: ChunkOp) -> None:
        for slot, start in self.offsets(op):
            self.value[slot] = self.value[op.slot][..., start : start + op.width]

    def chunk_of(self, slot: int) -> ChunkOp | None:
        """The operation that cuts `slot` off something."""
        return next((op for op in self.chunked.values() if slot in op.outs), None)

    def offsets(self, op: ChunkOp) -> list[tuple[int, int]]:
        """Each chunk with the first of its columns, in the order of memory."""
        order = self.order.get(op.slot) or tuple(range(len(op.outs)))
        return [(op.outs[at], number * op.width) for number, at in enumerate(order)]

    def _unary(self, op: UnaryOp) -> list[Sequence[Call]]:
        if op.out in self._called:
            return []
        value = self.value[op.slot]
        if not self.function_of(op.slot):
            return [_apply(op.function, value, self._fill(op.out))]
        together = self._neighbours(op)
        self.value.update((each.out, self.value[each.slot]) for each in together)
        self._called.update(each.out for each in together)
        first = self.value[together[0].slot]
        width = sum(self.value[each.slot].shape[-1] for each in together)
        whole = first.as_strided((*first.shape[:-1], width), first.stride(), first.storage_offset())
        return [_apply(op.function, whole, whole)]

    def _neighbours(self, op: UnaryOp) -> list[UnaryOp]:
        """The operations of the same function on the chunks beside, in the order of memory."""
        chunk = self.chunk_of(op.slot)
        slots = [slot for slot, _ in self.offsets(chunk)] if chunk is not None else [op.slot]
        for function, run in groupby(slots, key=self.function_of):
            beside = list(run)
            if op.slot in beside and function:
                return [user for slot in beside for user in self._users(slot) if isinstance(user, UnaryOp)]
        return [op]

    def _binary(self, op: BinaryOp) -> Sequence[Call]:
        out, function = self._fill(op.out), BINARY[op.function]
        left, right = (self.value[x] if isinstance(x, int) else x for x in (op.left, op.right))
        if isinstance(left, Tensor) and isinstance(right, Tensor) and op.scale != 1.0:
            zero = self.like.new_zeros(())
            return by_time(torch.addcmul, zero, left, right, value=op.scale, out=out)
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            raise AssertionError("an operation on numbers alone")
        # a number as a tensor without axes: on either side, with one call
        left, right = (x if isinstance(x, Tensor) else self.like.new_tensor(x) for x in (left, right))
        return by_time(function, left, right, out=out)


def spans_of(length: int, rows: int) -> list[tuple[int, int]]:
    """The steps in blocks: what is done for several at once is done for as many as the cache holds."""
    size = max(1, ROWS_AT_ONCE // rows)
    return [(a, min(a + size, length)) for a in range(0, length, size)]


def _shared_product(out: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None, more: bool) -> Shared:
    def call(a: int, b: int) -> Call:
        return partial(_multiply, out[a:b].flatten(0, 1), value[a:b].flatten(0, 1), weight, bias, more)

    return call


def _multiply(out: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None, more: bool) -> None:
    if more:
        out.addmm_(value, weight)
    elif bias is None:
        torch.mm(value, weight, out=out)
    else:
        torch.addmm(bias, value, weight, out=out)


def _apply(function: str, value: Tensor, out: Tensor) -> Sequence[Call]:
    if function == "relu":
        return by_time(torch.clamp, value, min=0.0, out=out)
    return by_time(UNARY[function], value, out=out)


def by_time(function: Callable[..., object], *tensors: Tensor, out: Tensor, **options: float) -> list[Call]:
    """The calls function(*tensors[t], out=out[t]); a tensor without axes is the same at all times."""
    count = out.shape[0]
    columns = [tensor.unbind(0) if tensor.ndim else (tensor,) * count for tensor in tensors]
    rows = zip(*columns, strict=True)
    return [partial(function, *row, out=o, **options) for row, o in zip(rows, out.unbind(0), strict=True)]
