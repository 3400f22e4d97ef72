"""The buffers of one run of a loop, and its forward steps as calls on them.

Every call is bound to its views once, so a run is a walk over a list; buffers and list are pooled from run to run.
Axes: G groups (loops of one shape side by side, each with weights of its own), L times, B rows.  What the backward
reads is kept for all times; the rest has room for one block of steps, few enough to stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, permutations

import torch
from torch import Tensor

from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.loops.primitives import BINARY, UNARY, Call
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, MulAddOp, Op, UnaryOp, ins_of, outs_of

BLOCK_NUMBERS = 2**20
"""Numbers that a block of steps may hold in all its buffers."""
MOST_ORDERED = 6
"""Chunks whose order in memory is chosen; more stay as they are."""


class Inputs:
    """What one run is given, by slot: values (G, L, B, w), or a table (V, w) with the rows (G, L, B) to take of it."""

    def __init__(self, slots: Sequence[int], values: Sequence[Tensor], rows: Sequence[Tensor | None]) -> None:
        pairs = list(zip(slots, values, rows, strict=True))
        self.values = {slot: value for slot, value, index in pairs if index is None}
        self.tables = {slot: (table, index) for slot, table, index in pairs if index is not None}

    def part(self, slot: int, a: int, b: int) -> Tensor:
        """The values of a slot at the steps from a to b."""
        return cut(self.values[slot], a, b)

    def flat(self, slot: int, a: int, b: int) -> Tensor:
        """The same as (G, n · B, w)."""
        return self.part(slot, a, b).flatten(1, 2)

    def rows(self, slot: int, a: int, b: int) -> tuple[Tensor, ...]:
        """By group the rows (n · B) of a table."""
        return cut(self.tables[slot][1], a, b).flatten(1).unbind(0)


NOTHING = Inputs((), (), ())


def cut(tensor: Tensor, a: int, b: int) -> Tensor:
    """The steps from a to b."""
    return tensor if tensor.shape[1] == b - a else tensor[:, a:b]


class LoopBuffers:
    """`value` has by slot (G, L, B, w), or one block's; `states` (G, L + 1, B, w) begin with the start state.

    Chunks under one function lie side by side, so that one call serves them: `order` says which rows of the weights
    come first.
    """

    def __init__(
        self, loop: Loop, groups: int, length: int, rows: int, like: Tensor, needed: Sequence[int] = ()
    ) -> None:
        """`needed` are the given slots that get a gradient."""
        self.loop, self.groups, self.length, self.rows = loop, groups, length, rows
        self.read_back, sloped = loop.read_back(needed)
        self.like = like.detach().new_empty(())
        tape = loop.tape
        self.nbytes = 0
        width = sum(tape.widths[slot] for op in loop.ops for slot in outs_of(op))
        self.size = max(1, min(length, BLOCK_NUMBERS // (2 * groups * rows * width)))
        self.spans = [(a, min(a + self.size, length)) for a in range(0, length, self.size)]
        self.states = [self.new(groups, length + 1, rows, tape.widths[slot]) for slot in tape.states]
        self.value: dict[int, Tensor] = {}
        for whole, slot, returned in zip(self.states, tape.states, tape.returns, strict=True):
            self.value[slot], self.value[returned] = whole[:, :-1], whole[:, 1:]
        self.order = {op.out: self._order(op) for op in loop.linear}
        self.weights = [self.new(groups, tape.widths[op.out], op.columns[-1][1]) for op in loop.linear]
        self.biases = {op.out: self.new(groups, tape.widths[op.out]) for op in loop.linear if op.bias}
        self._shifts = [
            (self.biases[op.out][:, a:b], self.like.new_tensor(number))
            for op in loop.linear
            for a, b, number in op.shifts
        ]
        self.slopes = {slot: self._always(tape.widths[slot]) for slot in sloped}
        self.projected: dict[tuple[int, int, int], Tensor] = {}
        self.inputs = NOTHING
        """Those of the run or backward under way."""
        self.backward: dict[bool, object] = {}
        """What `backward` keeps here."""
        self._before: list[Callable[[int, int], Call]] = []
        self._after: list[Callable[[int, int], Call]] = []
        self._called: set[int] = set()
        columns = [column for op in loop.ops for column in self._columns(op)]
        by_step = list(zip(*columns, strict=True))
        self._calls: list[Call] = []
        for a, b in self.spans:
            self._calls += [before(a, b) for before in self._before]
            self._calls += [call for step in by_step[a:b] for call in step]
            self._calls += [after(a, b) for after in self._after]
        places = [(op, weight, self.biases.get(op.out)) for op, weight in zip(loop.linear, self.weights, strict=True)]
        self.places = [
            (op, each[group]) for group in range(groups) for op, *pair in places for each in pair if each is not None
        ]

    def new(self, *shape: int) -> Tensor:
        made = self.like.new_empty(shape)
        self.nbytes += made.nbytes
        return made

    def _always(self, width: int) -> Tensor:
        return self.new(self.groups, self.length, self.rows, width)

    def block(self, width: int, more: int = 0) -> Tensor:
        """A buffer for one block of steps."""
        return self.new(self.groups, self.size + more, self.rows, width)

    # ------------------------------------------------------------ views

    def at_each_step(self, tensor: Tensor) -> Sequence[Tensor]:
        """The slices of all steps, (B, w) of a single group or (G, B, w): those of a block come again and again."""
        return self._cycle((tensor[0] if self.groups == 1 else tensor.transpose(0, 1)).unbind(0))

    def of_each_group(self, tensor: Tensor) -> list[Sequence[Tensor]]:
        """By group the slices (B, w) of all steps."""
        return [self._cycle(group.unbind(0)) for group in tensor.unbind(0)]

    def _cycle(self, slices: Sequence[Tensor]) -> Sequence[Tensor]:
        count = len(slices)
        return slices if count >= self.length else [slices[t % count] for t in range(self.length)]

    def cut(self, tensor: Tensor, a: int, b: int) -> Tensor:
        """The steps from a to b, of a block's buffer the first ones."""
        return tensor[:, a:b] if tensor.shape[1] == self.length else tensor[:, : b - a]

    def flat(self, tensor: Tensor, a: int, b: int) -> tuple[Tensor, ...]:
        """By group the steps from a to b, with times and rows as rows of a matrix."""
        return self.cut(tensor, a, b).flatten(1, 2).unbind(0)

    # ------------------------------------------------------------ the order of chunks

    def users(self, slot: int) -> list[Op]:
        """The operations that read a slot, in the order of the tape."""
        return [op for op in self.loop.ops if slot in ins_of(op)]

    def function_of(self, slot: int) -> str:
        """The function that alone reads a linear map, or a chunk of one: its value may stand where the map's did."""
        returns = self.loop.tape.returns
        made = self.loop.made_by.get(slot)
        whole = made.slot if isinstance(made, ChunkOp) else slot
        if whole in returns or not isinstance(self.loop.made_by.get(whole), LinearOp):
            return ""
        match self.users(slot):
            case [UnaryOp(function=function, out=out, plus=plus)] if out not in returns:
                return "" if UNARY[function].of_argument else f"{function} {plus}"
            case _:
                return ""

    def _chunk(self, slot: int) -> ChunkOp | None:
        return next((op for op in self.loop.chunk_of.values() if op.slot == slot), None)

    def _order(self, op: LinearOp) -> tuple[int, ...]:
        """The order in which the chunks of a linear map lie in memory; empty where it is theirs."""
        chunk = self._chunk(op.out)
        if chunk is None:
            return ()
        count = len(chunk.outs)
        kinds = [self.function_of(slot) for slot in chunk.outs]
        origins = [self.loop.adjoint.sources(slot) for slot in chunk.outs]

        def runs(order: tuple[int, ...]) -> int:
            return sum(len(list(groupby(order, key=lambda at: keys[at]))) for keys in (kinds, origins))

        plain = tuple(range(count))
        movable = op.out not in self.loop.tape.returns and count <= MOST_ORDERED
        best = min(permutations(plain), key=runs) if movable else plain
        return () if best == plain else best

    def rows_of(self, op: LinearOp, tensor: Tensor) -> Tensor:
        """A weight or bias with its rows in the order of memory."""
        order = self.order[op.out]
        return _moved(tensor, order) if order else tensor

    def rows_back(self, op: LinearOp, tensor: Tensor) -> Tensor:
        """The inverse of `rows_of`."""
        order = self.order[op.out]
        return _moved(tensor, tuple(order.index(at) for at in range(len(order)))) if order else tensor

    def offsets(self, op: ChunkOp) -> list[tuple[int, int]]:
        """Each chunk with the first of its columns, in the order of memory."""
        order = self.order.get(op.slot) or tuple(range(len(op.outs)))
        return [(op.outs[at], number * op.width) for number, at in enumerate(order)]

    # ------------------------------------------------------------ a run

    def run(self, start: Tensor | None, parameters: Sequence[Tensor]) -> None:
        """Fill the buffers; `parameters` are for each group, in the order of operations, weight and bias."""
        if start is None:
            for whole in self.states:
                whole[:, 0].zero_()
        else:
            parts = torch.split(start, [whole.shape[-1] for whole in self.states], -1)
            for whole, first in zip(self.states, parts, strict=True):
                whole[:, 0].copy_(first)
        moved = [self.rows_of(op, each) for (op, _), each in zip(self.places, parameters, strict=True)]
        if moved:
            torch._foreach_copy_([place for _, place in self.places], moved)  # pyright: ignore
        for part, number in self._shifts:
            part.add_(number)
        for call in self._calls:
            call()

    # ------------------------------------------------------------ operations as calls

    def _columns(self, op: Op) -> list[Sequence[Call]]:
        """The calls of an operation, each by time."""
        match op:
            case LinearOp():
                return self._linear(op)
            case ChunkOp():
                for slot, start in self.offsets(op):
                    self.value[slot] = self._read(op.slot)[..., start : start + op.width]
                return []
            case UnaryOp():
                return self._unary(op)
            case MulAddOp():
                out = self._fill(op.out)
                base, left, right = (self._read(slot) for slot in (op.base, op.left, op.right))
                return [self._by_time(torch.addcmul, base, left, right, value=op.scale, out=out)]
            case BinaryOp():
                self._share_place(op)
                return [self._binary(op)]

    def _read(self, slot: int) -> Tensor:
        """The value of a slot; what is given is copied into a block's room, where bound calls find it."""
        if slot not in self.value:
            room = self.value[slot] = self.block(self.loop.tape.widths[slot])
            self._before.append(partial(self._load, slot, room))
        return self.value[slot]

    def _load(self, slot: int, room: Tensor, a: int, b: int) -> Call:
        place = self.cut(room, a, b)
        return lambda: place.copy_(self.inputs.part(slot, a, b))

    def _fill(self, slot: int) -> Tensor:
        """The buffer that an operation fills."""
        if slot not in self.value:
            kept = not self.read_back.isdisjoint(self._standing_in(slot))
            self.value[slot] = (self._always if kept else self.block)(self.loop.tape.widths[slot])
        return self.value[slot]

    def _standing_in(self, slot: int) -> set[int]:
        """The slots whose values lie in the buffer of `slot` in the end."""
        parts = self._parts(slot)
        found = {slot, *parts}
        if self._in_place(slot):
            found.update(op.out for part in parts for op in self.users(part) if isinstance(op, UnaryOp))
        return found

    def _parts(self, slot: int) -> tuple[int, ...]:
        """All chunks of what `slot` is cut from or cut into, or itself."""
        chunk = self.loop.chunk_of.get(slot) or self._chunk(slot)
        return (slot,) if chunk is None else chunk.outs

    def _in_place(self, slot: int) -> bool:
        """Whether functions write over what a linear map gives: where that is kept for the most part."""
        parts = self._parts(slot)
        return 2 * sum(bool(self.function_of(part)) for part in parts) > len(parts)

    def _share_place(self, op: BinaryOp) -> None:
        """What is only there to be added to stands where the sum will; the next state is there to be read."""
        users = self.users(op.out)
        user = users[0] if len(users) == 1 and op.out not in self.loop.tape.returns else None
        if isinstance(user, MulAddOp) and user.base == op.out and op.out not in (user.left, user.right):
            self.value[op.out] = self._fill(user.out)

    def _linear(self, op: LinearOp) -> list[Sequence[Call]]:
        """What is given is multiplied for a block at once; `out` has a column of calls for each other part."""
        weight, bias, out = self.weights[self.loop.linear.index(op)], self.biases.get(op.out), self._fill(op.out)
        parts = [(slot, weight[..., a:b].mT) for slot, (a, b) in zip(op.slots, op.columns, strict=True)]
        own = [(slot, part) for slot, part in parts if slot not in self.loop.given]
        shared = [(slot, part) for slot, part in parts if slot in self.loop.given]
        if not shared and bias is not None:
            whole = bias[:, None, None]
            self._before.append(lambda a, b: partial(self.cut(out, a, b).copy_, whole))
        for number, (slot, part) in enumerate(shared):
            self._before.append(partial(self._share, slot, part, None if number else bias, out, number > 0))
        columns: list[Sequence[Call]] = []
        for number, (slot, part) in enumerate(own):
            groups = zip(part, self.of_each_group(out), self.of_each_group(self.value[slot]), strict=True)
            for w, outs, values in groups:
                pairs = zip(outs, values, strict=True)
                if bias is not None or shared or number:
                    columns.append([partial(o.addmm_, v, w) for o, v in pairs])
                else:
                    columns.append([partial(torch.mm, v, w, out=o) for o, v in pairs])
        return columns

    def _share(
        self, slot: int, weights: Tensor, biases: Tensor | None, out: Tensor, more: bool, a: int, b: int
    ) -> Call:
        """What a given slot adds to a linear map at the steps from a to b."""
        into = self.flat(out, a, b)
        every = list(zip(weights, [None] * self.groups if biases is None else biases, strict=True))

        def call() -> None:
            if slot in self.inputs.tables:
                self._take_rows(slot, every, into, more, a, b)
                return
            for each, value, (weight, bias) in zip(into, self.inputs.flat(slot, a, b), every, strict=True):
                _multiply(each, value, weight, bias, more)

        return call

    def _take_rows(
        self,
        slot: int,
        every: Sequence[tuple[Tensor, Tensor | None]],
        into: Sequence[Tensor],
        more: bool,
        a: int,
        b: int,
    ) -> None:
        """Rows of a table are fewer than what is taken of them: it goes through a linear map once."""
        table, _ = self.inputs.tables[slot]
        width = every[0][0].shape[1]
        key = (slot, every[0][0].data_ptr(), len(table))
        if key not in self.projected:
            self.projected[key] = self.new(self.groups, len(table), width)
        triples = zip(self.projected[key], into, self.inputs.rows(slot, a, b), every, strict=True)
        for projected, each, rows, (weight, bias) in triples:
            if a == 0:
                _multiply(projected, table, weight, bias, False)
            if more:
                each += projected.index_select(0, rows)
            else:
                torch.index_select(projected, 0, rows, out=each)

    def _unary(self, op: UnaryOp) -> list[Sequence[Call]]:
        if op.out in self._called:
            return []
        value = self._read(op.slot)
        if op.out in self.slopes:
            slope, kept = UNARY[op.function].slope, self.slopes[op.out]
            self._after.append(lambda a, b: partial(slope, self.cut(value, a, b), self.cut(kept, a, b)))
        if not self.function_of(op.slot) or not self._in_place(op.slot):
            return self._apply(op, value, self._fill(op.out))
        together = self._neighbours(op)
        self.value.update((each.out, self.value[each.slot]) for each in together)
        self._called.update(each.out for each in together)
        first = self.value[together[0].slot]
        width = sum(self.value[each.slot].shape[-1] for each in together)
        whole = first.as_strided((*first.shape[:-1], width), first.stride(), first.storage_offset())
        return self._apply(op, whole, whole)

    def _apply(self, op: UnaryOp, value: Tensor, out: Tensor) -> list[Sequence[Call]]:
        pairs = zip(self.at_each_step(value), self.at_each_step(out), strict=True)
        plus = [self.like.new_tensor(op.plus)] if op.plus else []
        calls = [[*UNARY[op.function].calls(v, o), *(partial(o.add_, number) for number in plus)] for v, o in pairs]
        return list(zip(*calls, strict=True))

    def _neighbours(self, op: UnaryOp) -> list[UnaryOp]:
        """The operations of the same function on the chunks beside, in the order of memory."""
        chunk = self.loop.chunk_of.get(op.slot)
        slots = [slot for slot, _ in self.offsets(chunk)] if chunk is not None else [op.slot]
        for function, run in groupby(slots, key=self.function_of):
            beside = list(run)
            if op.slot in beside and function:
                return [user for slot in beside for user in self.users(slot) if isinstance(user, UnaryOp)]
        return [op]

    def _binary(self, op: BinaryOp) -> Sequence[Call]:
        out, function = self._fill(op.out), BINARY[op.function]
        left, right = (self._read(x) if isinstance(x, int) else x for x in (op.left, op.right))
        if isinstance(left, Tensor) and isinstance(right, Tensor) and op.scale != 1.0:
            return self._by_time(torch.addcmul, self.like.new_zeros(()), left, right, value=op.scale, out=out)
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            raise AssertionError("an operation on numbers alone")
        # a number as a tensor without axes: on either side, with one call
        left, right = (x if isinstance(x, Tensor) else self.like.new_tensor(x) for x in (left, right))
        return self._by_time(function, left, right, out=out)

    def _by_time(self, function: Callable[..., object], *tensors: Tensor, out: Tensor, **options: float) -> list[Call]:
        """The calls function(*tensors[t], out=out[t]); a tensor without axes is the same at all times."""
        columns = [self.at_each_step(each) if each.ndim else [each] * self.length for each in (*tensors, out)]
        return [partial(function, *row, out=o, **options) for *row, o in zip(*columns, strict=True)]


def _multiply(out: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None, more: bool) -> None:
    if more:
        out.addmm_(value, weight)
    elif bias is None:
        torch.mm(value, weight, out=out)
    else:
        torch.addmm(bias, value, weight, out=out)


def _moved(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    parts = tensor.chunk(len(order))
    return torch.cat([parts[at] for at in order])
