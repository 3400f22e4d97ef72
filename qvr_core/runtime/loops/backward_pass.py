"""The backward of a loop as calls on pooled buffers, made from its adjoint.

It goes through the steps in blocks, last block first: coefficients for the whole block, its steps one by one, and its
share of the gradients of weights.  So nothing but the forward pass's values is kept for all times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from qvr_core.runtime.loops.adjoint import Coefficient, Factor, Gather, Through
from qvr_core.runtime.loops.forward_pass import LoopBuffers, cut
from qvr_core.runtime.loops.primitives import UNARY, Call, monomial, took
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, UnaryOp
from qvr_core.runtime.loops.weight_sums import WeightSums

Part = Tensor | int
"""A buffer, or a given slot."""
Recipe = Callable[[int, int], Call]
"""What is done for the steps from one to another at once."""


def backward_of(buffers: LoopBuffers, emit_all: bool) -> BackwardSteps:
    """The calls of the backward, made when first wanted and kept with the buffers."""
    made = buffers.backward.get(emit_all)
    if not isinstance(made, BackwardSteps):
        made = buffers.backward[emit_all] = BackwardSteps(buffers, emit_all)
    return made


class BackwardSteps:
    """All buffers hold one block.  `grad` has the kept gradients (G, n, B, w) by slot; those of returned slots are part
    of `state_grads` (G, n + 1, B, w), whose first row is that of the state before the block.
    """

    def __init__(self, buffers: LoopBuffers, emit_all: bool) -> None:
        self.buffers, self.loop, self.emit_all = buffers, buffers.loop, emit_all
        self.size, tape = buffers.size, buffers.loop.tape
        self.grad: dict[int, Tensor] = {}
        self._copies = self.loop.adjoint.copies()
        self.state_grads = [self._state(slot) for slot in tape.returns]
        for whole, slot in zip(self.state_grads, tape.states, strict=True):
            self.grad[slot] = whole[:, :-1]
        self._places = self.loop.adjoint.places()
        self._recipes: list[Recipe] = []
        self._held: dict[Factor, Tensor] = {}
        # with a gradient from outside at each step, that of a state begins with it
        self._begun: set[int] = {*tape.returns, *(tape.states if emit_all else ())}
        columns: list[Sequence[Call]] = []
        self._before_first: list[int] = []
        for group in self._groups():
            made = self._through(group) if isinstance(group, Through) else self._gather(group)
            slots = {group.slot} if isinstance(group, Through) else {each.slot for each in group}
            if slots.issubset(tape.states):
                self._before_first += range(len(columns), len(columns) + len(made))
            columns += made
        self._unreached = [
            whole for whole, slot in zip(self.state_grads, tape.states, strict=True) if slot not in self._begun
        ]
        self.steps = [list(step) for step in zip(*columns, strict=True)][::-1]
        first = self.steps[-1] if self.steps else []
        self._first_step = [call for at, call in enumerate(first) if at not in self._before_first]
        self._coefficients = self._bound(self._recipes)
        self._of_given: dict[int, tuple[dict[tuple[int, int], list[Call]], list[tuple[int, Part | float]]]] = {}
        self._weights = WeightSums(buffers, self.kept)

    def _bound(self, recipes: Sequence[Recipe]) -> dict[tuple[int, int], list[Call]]:
        return {span: [recipe(*span) for recipe in recipes] for span in self.buffers.spans}

    def _state(self, returned: int) -> Tensor:
        """The gradients of a state; where a chunk has the same, in the chunk's place."""
        chunk = self.loop.chunk_of.get(self._copies.get(returned, -1))
        if chunk is None or chunk.slot in self.grad or isinstance(self.loop.made_by[chunk.slot], ChunkOp):
            self._copies.pop(returned, None)
            whole = self._block(self.loop.tape.widths[returned], 1)
        else:
            uncut = self._block(self.loop.tape.widths[chunk.slot], 1)
            self.grad[chunk.slot] = uncut[:, 1:]
            start = dict(self.buffers.offsets(chunk))[self._copies[returned]]
            whole = uncut[..., start : start + chunk.width]
        self.grad[returned] = whole[:, 1:]
        return whole

    def _block(self, width: int, more: int = 0) -> Tensor:
        return self.buffers.block(width, more).zero_()

    def kept(self, slot: int) -> Tensor:
        """The buffer of a gradient; a chunk's is part of what it is cut from."""
        if slot not in self.grad:
            chunk = self.loop.chunk_of.get(slot)
            if slot in self._places:
                self.grad[slot] = self.kept(self._places[slot])
            elif chunk is None:
                self.grad[slot] = self._block(self.loop.tape.widths[slot])
            else:
                self._cut_chunks(chunk)
        return self.grad[slot]

    def _cut_chunks(self, op: ChunkOp) -> None:
        whole = self.kept(op.slot)
        for slot, start in self.buffers.offsets(op):
            self.grad[slot] = whole[..., start : start + op.width]
        if op.slot in self._begun:
            self._begun.update(op.outs)

    # ------------------------------------------------------------ the backward of a run

    def run(self, grad: Tensor, needed: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of the start state, what is given, and the parameters, from that of all states or the last."""
        loop, inputs = self.loop, self.buffers.inputs
        need_start, need_given = needed[0], needed[1 : 1 + len(loop.given)]
        need_weights = any(needed[1 + len(loop.given) :])
        emitted = torch.split(grad, [whole.shape[-1] for whole in self.state_grads], -1)
        wanted = [slot for slot, need in zip(loop.given, need_given, strict=True) if need]
        given = {slot: torch.empty_like(inputs.values[slot]) for slot in wanted if slot in inputs.values}
        sums = self._weights.new() if need_weights or len(given) < len(wanted) else None
        for a, b in reversed(self.buffers.spans):
            self._run_block(a, b, emitted, need_start)
            for slot, total in given.items():
                self._given_gradient(slot, total, a, b)
            if sums is not None:
                self._weights.add(sums, a, b)
        if sums is not None:
            given.update(self._weights.tables(sums, wanted))
        start = torch.cat([whole[:, 0] for whole in self.state_grads], -1) if need_start else None
        weights = self._weights.parameters(sums) if sums is not None else [None] * (len(needed) - 1 - len(loop.given))
        return [start, *(given.get(slot) for slot in loop.given), *weights]

    def _run_block(self, a: int, b: int, emitted: Sequence[Tensor], need_start: bool) -> None:
        last = b == self.buffers.length
        for whole, part in zip(self.state_grads, emitted, strict=True):
            end = whole[:, b - a]
            if self.emit_all:
                whole[:, 1 : b - a + 1].copy_(part[:, a:b])
                if not last:
                    end += whole[:, 0]
                whole[:, 0].zero_()
            else:
                end.copy_(part if last else whole[:, 0])
        if not self.emit_all:
            for whole in self._unreached:
                whole[:, : b - a].zero_()
        for call in self._coefficients[a, b]:
            call()
        steps = self.steps[self.size - (b - a) :]
        for step in steps if a or need_start else steps[:-1]:
            for call in step:
                call()
        if not (a or need_start):
            for call in self._first_step:
                call()

    def _given_gradient(self, slot: int, total: Tensor, a: int, b: int) -> None:
        """A block's share of the gradient of what is given."""
        buffers, begun = self.buffers, False
        into = cut(total, a, b)
        for op, weight in zip(self.loop.linear, buffers.weights, strict=True):
            for read, (low, high) in zip(op.slots, op.columns, strict=True):
                if read != slot:
                    continue
                grads = buffers.flat(self.kept(op.out), a, b)
                for out, grad, w in zip(into.flatten(1, 2), grads, weight[..., low:high], strict=True):
                    _ = out.addmm_(grad, w) if begun else torch.mm(grad, w, out=out)
                begun = True
        calls, terms = self._reaching(slot)
        for call in calls[a, b]:
            call()
        for anchor, coefficient in terms:
            source = buffers.cut(self.kept(anchor), a, b)
            value = coefficient if isinstance(coefficient, float) else self._cut(coefficient, a, b)
            if not begun:
                torch.mul(source, value, out=into)
            elif isinstance(value, Tensor):
                into.addcmul_(source, value)
            else:
                into.add_(source, alpha=value)
            begun = True
        if not begun:
            into.zero_()

    def _reaching(self, slot: int) -> tuple[dict[tuple[int, int], list[Call]], list[tuple[int, Part | float]]]:
        """The pointwise terms of a given slot's gradient, made when first wanted."""
        if slot not in self._of_given:
            recipes, held = self._recipes, self._held
            self._recipes, self._held = [], dict(held)
            terms = [(anchor, self._coefficient(c)) for anchor, c in self.loop.adjoint.given[slot]]
            self._of_given[slot] = self._bound(self._recipes), list(terms)
            self._recipes, self._held = recipes, held
        return self._of_given[slot]

    # ------------------------------------------------------------ steps

    def _groups(self) -> Iterator[Through | list[Gather]]:
        """Chunks that lie side by side and get gradients from the same places are served by one call."""
        steps = [step for step in self.loop.adjoint.steps if step.slot not in self._copies.values()]
        through = {step.slot for step in steps if isinstance(step, Through)}
        chunk_of = self.loop.chunk_of

        def source(step: Gather) -> object:
            chunk = chunk_of.get(step.slot)
            alone = chunk is None or step.slot in through or chunk.slot in self._begun
            return step.slot if alone else tuple(anchor for anchor, _ in step.terms)

        for chunk, run in groupby(steps, key=lambda step: chunk_of.get(step.slot)):
            if chunk is None:
                for step in run:
                    yield step if isinstance(step, Through) else [step]
                continue
            cut = list(run)
            yield from (step for step in cut if isinstance(step, Through))
            gathers = [step for step in cut if isinstance(step, Gather)]
            gathers.sort(key=lambda each: self.kept(each.slot).storage_offset())
            yield from (list(group) for _, group in groupby(gathers, key=source))

    def _through(self, step: Through) -> list[Sequence[Call]]:
        op = step.op
        a, b = op.columns[step.position]
        fresh = self._begin(step.slot)
        weights = self.buffers.weights[self.loop.linear.index(op)][..., a:b]
        columns: list[Sequence[Call]] = []
        for out, grad, weight in zip(self.kept(step.slot), self.kept(op.out), weights, strict=True):
            pairs = zip(out.unbind(0), grad.unbind(0), strict=True)
            if fresh:
                columns.append([partial(torch.mm, g, weight, out=o) for o, g in pairs])
            else:
                columns.append([partial(o.addmm_, g, weight) for o, g in pairs])
        return columns

    def _begin(self, slot: int) -> bool:
        """Whether nothing has been added to this gradient so far."""
        new = slot not in self._begun
        self._begun.add(slot)
        return new

    def _gather(self, group: list[Gather]) -> list[Sequence[Call]]:
        out = side_by_side([self.kept(each.slot) for each in group])
        columns: list[Sequence[Call]] = []
        for anchor, _ in group[0].terms:
            parts = [dict(each.terms)[anchor] for each in group]
            fresh = all([self._begin(each.slot) for each in group])
            columns.append(self._term(out, self.kept(anchor), parts, fresh))
        return columns

    def _term(self, out: Tensor, source: Tensor, parts: list[Coefficient], fresh: bool) -> Sequence[Call]:
        """out (+)= coefficient · source."""
        if len(parts) == 1:
            value = self._coefficient(parts[0])
        else:
            source = source.unsqueeze(-2)
            # what is written first may stand where its result goes
            value = out if fresh else self._block(out.shape[-1] * out.shape[-2]).view(out.shape)
            for at, part in enumerate(parts):
                self._evaluate(part, value[..., at, :])
        pairs = list(zip(self._steps(out), self._steps(source), strict=True))
        if isinstance(value, Tensor):
            rows = zip(pairs, self._steps(value), strict=True)
            if fresh:
                return [partial(torch.mul, g, c, out=o) for (o, g), c in rows]
            return [partial(o.addcmul_, g, c) for (o, g), c in rows]
        if fresh:
            return [partial(torch.mul, g, value, out=o) for o, g in pairs]
        return [partial(o.add_, g, alpha=value) for o, g in pairs]

    def _steps(self, block: Tensor) -> Sequence[Tensor]:
        return (block[0] if self.buffers.groups == 1 else block.transpose(0, 1)).unbind(0)

    # ------------------------------------------------------------ coefficients

    def _coefficient(self, coefficient: Coefficient) -> Tensor | float:
        """A coefficient for a block: a number, or a buffer."""
        if not any(each.factors for each in coefficient):
            return float(sum(each.scale for each in coefficient))
        if len(coefficient) == 1 and coefficient[0].scale == 1.0 and len(coefficient[0].factors) == 1:
            factor = self._factor(coefficient[0].factors[0])
            # the steps are bound to places in a block
            if isinstance(factor, Tensor) and factor.shape[1] == self.size:
                return factor
        slot = next(slot for each in coefficient for _, slot in each.factors)
        made = self._block(self.loop.tape.widths[slot])
        self._evaluate(coefficient, made)
        return made

    def _evaluate(self, coefficient: Coefficient, out: Tensor) -> None:
        """Write a coefficient into `out`."""
        # numbers last, so that there is something to add them to
        for number, each in enumerate(sorted(coefficient, key=lambda each: -len(each.factors))):
            factors = [self._factor(factor) for factor in each.factors]
            self._recipe(partial(monomial, each.scale, number > 0), out, *factors)

    def _factor(self, factor: Factor) -> Part:
        kind, slot = factor
        if kind == "value":
            return self._value(slot)
        if slot in self.buffers.slopes:
            return self.buffers.slopes[slot]
        if factor not in self._held:
            made = self._held[factor] = self._block(self.loop.tape.widths[slot])
            op = self.loop.made_by[slot]
            if isinstance(op, UnaryOp):
                self._recipe(partial(_slope, op), made, self._value(slot))
            else:
                assert isinstance(op, BinaryOp)
                left, right = (self._value(int(side)) for side in (op.left, op.right))
                less = (kind == "left") == (op.function == "minimum")
                self._recipe(took, made, *((left, right) if less else (right, left)))
        return self._held[factor]

    def _value(self, slot: int) -> Part:
        return slot if slot in self.loop.given else self.buffers.value[slot]

    def _recipe(self, function: Callable[..., object], *parts: Part) -> None:
        def recipe(a: int, b: int) -> Call:
            found = [part if isinstance(part, int) else self.buffers.cut(part, a, b) for part in parts]
            if not any(isinstance(part, int) for part in found):
                return partial(function, *found)
            buffers = self.buffers
            return lambda: function(*(buffers.inputs.part(p, a, b) if isinstance(p, int) else p for p in found))

        self._recipes.append(recipe)

    def _cut(self, part: Part, a: int, b: int) -> Tensor:
        return self.buffers.inputs.part(part, a, b) if isinstance(part, int) else self.buffers.cut(part, a, b)


def _slope(op: UnaryOp, out: Tensor, value: Tensor) -> None:
    if op.plus:
        value = torch.sub(value, op.plus, out=out)
    UNARY[op.function].slope(value, out)


def side_by_side(parts: list[Tensor]) -> Tensor:
    """Parts that lie side by side as (…, B, k, w); one alone as (…, B, w)."""
    first = parts[0]
    if len(parts) == 1:
        return first
    width = first.shape[-1]
    shape, stride = (*first.shape[:-1], len(parts), width), (*first.stride()[:-1], width, 1)
    return first.as_strided(shape, stride, first.storage_offset())
