"""Encoders at run time: a term's numbers from its leaves up, all trees of all rows level by level.

The nodes at one depth with one constructor are the rows of one evaluation of its case.  Levels are counted from the
roots, so that what a case reads are numbers of the level below it and of no other: the work of values and of gradients
grows with the number of nodes, however deep the terms are.
"""

from __future__ import annotations

from typing import cast

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.arithmetic import Evaluate, compile_expr
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.cells import Cell, as_one, with_rows
from qvr_core.runtime.values.layout import width
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.term_tables import columns
from qvr_core.semantics.terms.written import CONSTRUCTOR, DEPTH
from qvr_core.semantics.types.model.terms import Encoder
from qvr_core.semantics.types.spaces import Finite, Space, Terms


class _Case:
    """The numbers of all nodes of one constructor at one depth, (nodes, width)."""

    def __init__(self, body: Evaluate, parameters: tuple[str, ...], places: tuple[Space | None, ...]) -> None:
        self.body = body
        self.arguments = [*zip(parameters, places, columns(places), strict=True)]

    def bound(self, table: Tensor, below: Tensor, places: Tensor) -> dict[str, Cell]:
        """What stands at the places of nodes (nodes, columns): numbers `below` them at the `places` of their trees."""
        found: dict[str, Cell] = {}
        for name, space, (first, end) in self.arguments:
            if space is None:
                found[name] = Cell(below[places[:, first]], True)
            elif isinstance(space, Finite):
                found[name] = Cell(table[:, first], True)
            else:
                bits = table[:, first:end].contiguous().view(arrays.float64)
                found[name] = Cell(bits.to(precision()), True)
        return found


class EncoderArrow(ArrowModule):
    """Terms int64 (B, nodes, columns) to numbers (B, width)."""

    def __init__(self, encoder: Encoder, builder: ArrowBuilder) -> None:
        super().__init__()
        self.name = encoder.name
        self.domain, self.codomain = encoder.domain, encoder.codomain
        assert isinstance(encoder.domain.space, Terms)
        made = CollectedParts(builder)
        places = dict(encoder.domain.space.constructors)
        self.cases = [
            _Case(compile_expr(case.body, made), case.parameters, places[case.constructor]) for case in encoder.cases
        ]
        self.width = width(encoder.codomain.space)
        adopt(self, made.used)

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        rows, nodes = x.shape[:2]
        if not rows:
            return arrays.zeros((0, self.width), dtype=precision(), device=x.device)
        flat = x.flatten(0, 1)
        live = (flat[:, CONSTRUCTOR] >= 0).nonzero().squeeze(1)
        kinds = len(self.cases)
        group = flat[live, DEPTH] * kinds + flat[live, CONSTRUCTOR]
        order = live[group.argsort(stable=True)]
        counts = cast("list[int]", arrays.bincount(group).tolist())
        counts += [0] * (-len(counts) % kinds)
        # where each node stands among those of its depth
        depth = flat[order, DEPTH]
        firsts = arrays.searchsorted(depth, depth)
        place = arrays.zeros(len(flat), dtype=arrays.int64, device=x.device)
        place[order] = arrays.arange(len(order), device=x.device) - firsts
        below = arrays.zeros((0, self.width), dtype=precision(), device=x.device)
        end = len(order)
        for level in reversed(range(len(counts) // kinds)):
            sizes = counts[level * kinds : (level + 1) * kinds]
            start = end - sum(sizes)
            made: list[Tensor] = []
            for case, size in zip(self.cases, sizes, strict=True):
                if size:
                    at = order[start : start + size]
                    made.append(self._case(case, flat[at], below, place, (at // nodes * nodes).unsqueeze(1)))
                start += size
            below, end = arrays.cat(made), end - sum(sizes)
        return below[place[::nodes]]

    def _case(self, case: _Case, table: Tensor, below: Tensor, place: Tensor, roots: Tensor) -> Tensor:
        """One case on nodes (n, columns), whose roots' rows are `roots` (n, 1): its numbers, (n, width)."""
        device = None if table.device.type == "cpu" else table.device
        frame = Frame(self.name, Request(), len(table), None, True, {}, device=device)
        last = len(place) - 1
        frame.bound.update(case.bound(table, below, place[(roots + table).clamp(0, last)]))
        cell = as_one(case.body(frame))
        value = with_rows(cell, len(table)).reshape(len(table), -1)
        return (value if value.is_floating_point() else value.to(precision())).expand(len(table), self.width)
