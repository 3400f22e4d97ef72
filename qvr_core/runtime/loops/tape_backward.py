"""The backward of a loop as calls on lent buffers, made from its adjoint.

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
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, UnaryOp
from qvr_core.runtime.loops.tape_forward import LoopBuffers

Call = Callable[[], object]
Recipe = Callable[[int, int], Call]
"""What is done for the steps from one to another at once."""
Part = Callable[[int, int], Tensor]
"""A tensor by time, cut to these steps."""


def backward_of(buffers: LoopBuffers) -> BackwardSteps:
    """The calls of the backward, made when first wanted and kept with the buffers."""
    if not isinstance(buffers.backward, BackwardSteps):
        buffers.backward = BackwardSteps(buffers)
    return buffers.backward


class BackwardSteps:
    """All buffers hold one block.  `grad` has the kept gradients (n, B, w) by slot; those of returned slots are part of
    `state_grads` (n + 1, B, w), whose first row is that of the state before the block.
    """

    def __init__(self, lent: LoopBuffers) -> None:
        self.lent, tape = lent, lent.loop.tape
        self.size = lent.spans[0][1]
        self.state_grads = [self._block(tape.widths[slot], 1) for slot in tape.states]
        self.carried = [whole[0].clone() for whole in self.state_grads]
        self.grad: dict[int, Tensor] = {}
        for whole, slot, returned in zip(self.state_grads, tape.states, tape.returns, strict=True):
            self.grad[slot], self.grad[returned] = whole[:-1], whole[1:]
        self._recipes: list[Recipe] = []
        self._held: dict[Factor, Tensor] = {}
        self._begun: set[int] = {*tape.states, *tape.returns}
        columns: list[Sequence[Call]] = []
        for group in self._groups():
            columns += self._through(group) if isinstance(group, Through) else self._gather(group)
        reached = lent.loop.adjoint.given.items()
        self._reached = {slot: [(a, self._coefficient(c)) for a, c in terms if c] for slot, terms in reached}
        self.steps = list(zip(*columns, strict=True))[::-1]
        self.coefficients = {span: [recipe(*span) for recipe in self._recipes] for span in lent.spans}

    def _block(self, width: int, more: int = 0) -> Tensor:
        return self.lent.new(self.size + more, self.lent.rows, width).zero_()

    def kept(self, slot: int) -> Tensor:
        """The buffer of a gradient; a chunk's is part of what it is cut from."""
        if slot not in self.grad:
            chunk = self.lent.chunk_of(slot)
            if chunk is None:
                self.grad[slot] = self._block(self.lent.loop.tape.widths[slot])
            else:
                self._cut(chunk)
        return self.grad[slot]

    def _cut(self, op: ChunkOp) -> None:
        whole = self.kept(op.slot)
        for slot, start in self.lent.offsets(op):
            self.grad[slot] = whole[..., start : start + op.width]
        if op.slot in self._begun:
            self._begun.update(op.outs)

    # ------------------------------------------------------------ the backward of a run

    def run(self, grad: Tensor, needed: Sequence[bool]) -> Iterator[Tensor | None]:
        """Gradients of the start state, what is given, the weights and the biases, from that of all states."""
        lent, loop = self.lent, self.lent.loop
        emitted = grad.split([whole.shape[-1] for whole in self.state_grads], -1)
        given = [torch.empty_like(lent.value[slot]) for slot in loop.given]
        weights = [torch.zeros_like(turned) for turned in lent.turned]
        biases = [bias.new_zeros(bias.shape) for bias in lent.biases.values()]
        for carried in self.carried:
            carried.zero_()
        for a, b in reversed(lent.spans):
            self._run_block(a, b, emitted)
            for slot, total in zip(loop.given, given, strict=True):
                self._of_given(slot, total[a:b])
            for op, total in zip(loop.linear, weights, strict=True):
                self._of_weight(op, total, a, b)
            for slot, total in zip(lent.biases, biases, strict=True):
                total += self.kept(slot)[: b - a].sum((0, 1))
        linear = [op for op in loop.linear if op.out in lent.biases]
        weights = [lent.rows_back(op, total) for op, total in zip(loop.linear, weights, strict=True)]
        biases = [lent.rows_back(op, total) for op, total in zip(linear, biases, strict=True)]
        found = (torch.cat(self.carried, -1), *given, *weights, *biases)
        return (each if need else None for each, need in zip(found, needed, strict=True))

    def _run_block(self, a: int, b: int, emitted: Sequence[Tensor]) -> None:
        for whole, carried, part in zip(self.state_grads, self.carried, emitted, strict=True):
            whole[0].zero_()
            whole[1 : b - a + 1].copy_(part[a:b])
            whole[b - a] += carried
        for call in self.coefficients[a, b]:
            call()
        for step in self.steps[self.size - (b - a) :]:
            for call in step:
                call()
        for whole, carried in zip(self.state_grads, self.carried, strict=True):
            carried.copy_(whole[0])

    def _of_given(self, slot: int, total: Tensor) -> None:
        total.zero_()
        count, flat = total.shape[0], total.view(-1, total.shape[-1])
        for op, turned in zip(self.lent.loop.linear, self.lent.turned, strict=True):
            for read, (a, b) in zip(op.slots, op.columns, strict=True):
                if read == slot:
                    flat.addmm_(self.kept(op.out)[:count].flatten(0, 1), turned[:, a:b])
        for anchor, coefficient in self._reached[slot]:
            source = self.kept(anchor)[:count]
            if isinstance(coefficient, Tensor):
                total.addcmul_(source, coefficient[:count])
            else:
                total.add_(source, alpha=coefficient)

    def _of_weight(self, op: LinearOp, total: Tensor, a: int, b: int) -> None:
        grad = self.kept(op.out)[: b - a].flatten(0, 1).mT
        for slot, (first, last) in zip(op.slots, op.columns, strict=True):
            total[:, first:last].addmm_(grad, self.lent.value[slot][a:b].flatten(0, 1))

    # ------------------------------------------------------------ steps

    def _groups(self) -> Iterator[Through | list[Gather]]:
        """Chunks that lie side by side and get gradients from the same places are served by one call."""
        through = {step.slot for step in self.lent.loop.adjoint.steps if isinstance(step, Through)}

        def source(step: Gather) -> object:
            chunk = self.lent.chunk_of(step.slot)
            alone = chunk is None or step.slot in through or chunk.slot in self._begun
            return step.slot if alone else tuple(anchor for anchor, c in step.terms if c)

        for chunk, run in groupby(self.lent.loop.adjoint.steps, key=lambda step: self.lent.chunk_of(step.slot)):
            if chunk is None:
                for step in run:
                    yield step if isinstance(step, Through) else [step]
                continue
            steps = list(run)
            yield from (step for step in steps if isinstance(step, Through))
            gathers = [step for step in steps if isinstance(step, Gather)]
            gathers.sort(key=lambda each: self.kept(each.slot).storage_offset())
            yield from (list(group) for _, group in groupby(gathers, key=source))

    def _through(self, step: Through) -> list[Sequence[Call]]:
        lent, op = self.lent, step.op
        a, b = op.columns[step.position]
        weight = lent.turned[lent.loop.linear.index(op)][:, a:b]
        pairs = zip(self.kept(step.slot).unbind(0), self.kept(op.out).unbind(0), strict=True)
        if self._begin(step.slot):
            return [[partial(torch.mm, g, weight, out=o) for o, g in pairs]]
        return [[partial(o.addmm_, g, weight) for o, g in pairs]]

    def _begin(self, slot: int) -> bool:
        """Whether nothing has been added to this gradient so far."""
        new = slot not in self._begun
        self._begun.add(slot)
        return new

    def _gather(self, group: list[Gather]) -> list[Sequence[Call]]:
        out = side_by_side([self.kept(each.slot) for each in group])
        calls: list[Sequence[Call]] = []
        for anchor in (anchor for anchor, c in group[0].terms if c):
            parts = [dict(each.terms)[anchor] for each in group]
            fresh = all([self._begin(each.slot) for each in group])
            calls.append(self._term(out, self.kept(anchor), parts, fresh))
        return calls

    def _term(self, out: Tensor, source: Tensor, parts: list[Coefficient], fresh: bool) -> Sequence[Call]:
        """out (+)= coefficient · source."""
        if len(parts) == 1:
            value = self._coefficient(parts[0])
        else:
            source = source.unsqueeze(-2)
            # what is written first may stand where its result goes
            value = out if fresh else self._block(out.shape[-1] * out.shape[-2]).view(out.shape)
            for at, part in enumerate(parts):
                self._evaluate(part, value[:, :, at])
        pairs = list(zip(out.unbind(0), source.unbind(0), strict=True))
        if isinstance(value, Tensor):
            rows = zip(pairs, value.unbind(0), strict=True)
            if fresh:
                return [partial(torch.mul, g, c, out=o) for (o, g), c in rows]
            return [partial(o.addcmul_, g, c) for (o, g), c in rows]
        if fresh:
            return [partial(torch.mul, g, value, out=o) for o, g in pairs]
        return [partial(o.add_, g, alpha=value) for o, g in pairs]

    # ------------------------------------------------------------ coefficients

    def _coefficient(self, coefficient: Coefficient) -> Tensor | float:
        """A coefficient for a block: a number, or a buffer."""
        if not any(each.factors for each in coefficient):
            return sum(each.scale for each in coefficient)
        slot = next(slot for each in coefficient for _, slot in each.factors)
        made = self._block(self.lent.value[slot].shape[-1])
        self._evaluate(coefficient, made)
        return made

    def _evaluate(self, coefficient: Coefficient, out: Tensor) -> None:
        """Write a coefficient into `out`."""
        # numbers last, so that there is something to add them to
        for number, each in enumerate(sorted(coefficient, key=lambda each: -len(each.factors))):
            factors = [self._factor(factor) for factor in each.factors]
            self._recipe(partial(_monomial, each.scale, number > 0), _local(out), *factors)

    def _factor(self, factor: Factor) -> Part:
        kind, slot = factor
        value = self.lent.value[slot]
        if kind == "value":
            return lambda a, b: value[a:b]
        if factor not in self._held:
            made = self._held[factor] = self._block(value.shape[-1])
            op = next(op for op in self.lent.loop.ops if not isinstance(op, ChunkOp) and op.out == slot)
            if isinstance(op, UnaryOp):
                self._recipe(SLOPES[op.function], _local(made), self._factor(("value", slot)))
            else:
                assert isinstance(op, BinaryOp)
                left, right = (self._factor(("value", int(side))) for side in (op.left, op.right))
                less = (kind == "left") == (op.function == "minimum")
                self._recipe(_taken, _local(made), *((left, right) if less else (right, left)))
        return _local(self._held[factor])

    def _recipe(self, function: Callable[..., object], *parts: Part) -> None:
        self._recipes.append(lambda a, b: partial(function, *(part(a, b) for part in parts)))


def _local(block: Tensor) -> Part:
    return lambda a, b: block[: b - a]


def side_by_side(parts: list[Tensor]) -> Tensor:
    """Parts that lie side by side as (n, B, k, w); one alone as (n, B, w)."""
    first = parts[0]
    if len(parts) == 1:
        return first
    width = first.shape[-1]
    shape, stride = (*first.shape[:-1], len(parts), width), (*first.stride()[:-1], width, 1)
    return first.as_strided(shape, stride, first.storage_offset())


def _sigmoid_slope(out: Tensor, value: Tensor) -> None:
    torch.addcmul(value, value, value, value=-1.0, out=out)


def _tanh_slope(out: Tensor, value: Tensor) -> None:
    torch.addcmul(value.new_ones(()), value, value, value=-1.0, out=out)


def _relu_slope(out: Tensor, value: Tensor) -> None:
    torch.gt(value, 0.0, out=out)


SLOPES: dict[str, Callable[[Tensor, Tensor], None]] = {
    "sigmoid": _sigmoid_slope,
    "tanh": _tanh_slope,
    "relu": _relu_slope,
}
"""The derivative of a function from its value."""


def _taken(out: Tensor, less: Tensor, more: Tensor) -> None:
    """1 where `less` is below `more`; both sides share a tie, as in torch."""
    torch.lt(less, more, out=out)
    out.add_(less == more, alpha=0.5)


def _monomial(scale: float, add: bool, out: Tensor, *factors: Tensor) -> None:
    """out (+)= scale · Π factors."""
    if not factors:
        _ = out.add_(scale) if add else out.fill_(scale)
    elif len(factors) == 1:
        _ = out.add_(factors[0], alpha=scale) if add else torch.mul(factors[0], scale, out=out)
    elif add:
        first, *middle, last = factors
        for factor in middle:
            first = first * factor
        out.addcmul_(first, last, value=scale)
    else:
        torch.mul(factors[0], factors[1], out=out)
        for factor in factors[2:]:
            out.mul_(factor)
        if scale != 1.0:
            out.mul_(scale)
