"""Encoders at run time: a term's numbers from its leaves up, all trees of all rows level by level.

The nodes at one depth with one constructor are the rows of one evaluation of its case.  Levels are counted from the
roots, so that what a case reads are numbers of the level below it and of no other: the work of values and of gradients
grows with the number of nodes, however deep the terms are.
"""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.arithmetic import Evaluate, compile_expr
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.declared.term_levels import Group, Levels, case_frame, numbers, real_numbers
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.layout import width
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.term_tables import columns
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
                found[name] = Cell(real_numbers(table[:, first:end]), True)
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
        below = arrays.zeros((0, self.width), dtype=precision(), device=x.device)
        if not len(x):
            return below
        levels = Levels(x, len(self.cases))
        for level in reversed(range(len(levels.sizes))):
            below = arrays.cat([self._case(group, levels, below) for group in levels.groups(level)])
        return below[levels.place[:: levels.nodes]]

    def _case(self, group: Group, levels: Levels, below: Tensor) -> Tensor:
        """One case on the nodes of a level that have its constructor: its numbers, (n, width)."""
        case, table = self.cases[group.constructor], levels.flat[group.nodes]
        bound = case.bound(table, below, levels.places(group.nodes))
        return numbers(case.body, case_frame(self.name, len(table), table, bound), self.width)
