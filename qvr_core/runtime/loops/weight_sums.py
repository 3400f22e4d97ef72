"""Gradients of a loop's weights and tables, added up block by block while the block's numbers are in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qvr_core.runtime.loops.forward_pass import LoopBuffers


@dataclass(frozen=True, slots=True)
class Share:
    """What a block adds to the weights of an operation: gradᵀ ([G,] N, n · B) times `value`; or to its biases.

    `columns` are the weight's where several values share it.  Of a given slot the value is only known at run time.
    """

    key: tuple[int, str]
    grad: Tensor
    value: Tensor | int | None
    columns: tuple[int, int] | None


Sums = dict[tuple[int, str], Tensor]
"""By operation the gradients of its 'weight' ([G,] N, K) and 'bias' ([G,] N)."""


class WeightSums:
    """`gradient` gives the block's gradients (G, n, B, w) of a slot."""

    def __init__(self, buffers: LoopBuffers, gradient: Callable[[int], Tensor]) -> None:
        self.buffers, self.gradient, self.loop = buffers, gradient, buffers.loop
        self.by_row: dict[tuple[int, int, int], Tensor] = {}
        kinds = {True: ("weight", "bias"), False: ("weight",)}
        self._kinds = [(op, kind) for op in self.loop.linear for kind in kinds[op.bias]]
        self._shares = {span: list(self._shares_of(*span)) for span in buffers.spans}
        alone = buffers.groups == 1
        self._multiply, self._add_product = (torch.mm, Tensor.addmm_) if alone else (torch.bmm, Tensor.baddbmm_)

    def new(self) -> Sums:
        """Room for weights that several values share; the rest is made when first added to."""
        pairs = zip(self.loop.linear, self.buffers.weights, strict=True)
        return {(op.out, "weight"): torch.empty_like(self._see(weight)) for op, weight in pairs if len(op.slots) > 1}

    def _see(self, tensor: Tensor) -> Tensor:
        """A tensor (G, …) as it is multiplied: a single group without its axis."""
        return tensor[0] if self.buffers.groups == 1 else tensor

    def add(self, sums: Sums, a: int, b: int) -> None:
        """Add the share of the steps from a to b; the last block comes first."""
        fresh = b == self.buffers.length
        for share in self._shares[a, b]:
            value, total = share.value, sums.get(share.key)
            if isinstance(value, int):
                if value in self.buffers.inputs.tables:
                    self._add_rows(share, value, a, b, fresh)
                    continue
                value = self._see(self.buffers.inputs.flat(value, a, b))
            if value is None:
                made = share.grad.sum(-1)
                sums[share.key] = made if total is None else total.add_(made)
            elif total is None:
                sums[share.key] = self._multiply(share.grad, value)
            else:
                part = total if share.columns is None else total[..., slice(*share.columns)]
                _ = self._multiply(share.grad, value, out=part) if fresh else self._add_product(part, share.grad, value)

    def _shares_of(self, a: int, b: int) -> Iterator[Share]:
        buffers = self.buffers
        for op in self.loop.linear:
            grad = self._see(buffers.cut(self.gradient(op.out), a, b).flatten(1, 2)).mT
            for slot, columns in zip(op.slots, op.columns, strict=True):
                given = slot in self.loop.given
                value = slot if given else self._see(buffers.cut(buffers.value[slot], a, b).flatten(1, 2))
                yield Share((op.out, "weight"), grad, value, columns if len(op.slots) > 1 else None)
            if op.bias:
                yield Share((op.out, "bias"), grad, None, None)

    def parameters(self, sums: Sums) -> list[Tensor]:
        """Gradients of the parameters of all groups, in their order."""
        totals = [self.buffers.rows_back(op, sums[op.out, kind]) for op, kind in self._kinds]
        if self.buffers.groups == 1:
            return totals
        return [each for group in zip(*(total.unbind(0) for total in totals), strict=True) for each in group]

    # ------------------------------------------------------------ tables

    def tables(self, sums: Sums, needed: Sequence[int]) -> dict[int, Tensor]:
        """Gradients of the tables; what their rows add to the weights' gradients is written to these."""
        tables = self.buffers.inputs.tables
        totals = {slot: torch.zeros_like(tables[slot][0]) for slot in tables if slot in needed}
        for op, weight in zip(self.loop.linear, self.buffers.weights, strict=True):
            for slot, (low, high) in zip(op.slots, op.columns, strict=True):
                if slot not in tables:
                    continue
                table, key = tables[slot][0], (op.out, "weight")
                if key not in sums:
                    sums[key] = torch.empty_like(self._see(weight))
                into = sums[key].view_as(weight)[..., low:high]
                for grad, each, part in zip(self._rows(op.out, slot), weight[..., low:high], into, strict=True):
                    torch.mm(grad.mT, table, out=part)
                    if slot in totals:
                        totals[slot].addmm_(grad, each)
        return totals

    def _rows(self, out: int, slot: int) -> Tensor:
        """Gradients of a projected table (G, V, N)."""
        key = (out, slot, len(self.buffers.inputs.tables[slot][0]))
        if key not in self.by_row:
            self.by_row[key] = self.buffers.new(self.buffers.groups, key[2], self.loop.tape.widths[out])
        return self.by_row[key]

    def _add_rows(self, share: Share, slot: int, a: int, b: int, fresh: bool) -> None:
        by_row = self._rows(share.key[0], slot)
        if fresh:
            by_row.zero_()
        grads = share.grad.unsqueeze(0) if self.buffers.groups == 1 else share.grad
        for total, grad, rows in zip(by_row, grads, self.buffers.inputs.rows(slot, a, b), strict=True):
            total.index_add_(0, rows, grad.mT)
