"""Encoders at run time: a term's numbers from its leaves up, all trees of all rows level by level.

The nodes at one depth with one constructor are the rows of one evaluation of its case.  Levels are counted from the
roots, so that what a case reads are numbers of the level below it and of no other: the work of values and of gradients
grows with the number of nodes, however deep the terms are.
"""

from __future__ import annotations

import copy
from functools import partial

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor
from qvr_core.runtime.programs.arithmetic import Evaluate, compile_expr
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.declared.node_draws import Draws, NodeDraws, draws_of_cases
from qvr_core.runtime.programs.declared.term_levels import Group, Levels, case_frame, numbers, real_numbers
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.drawing import require_innovations
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.layout import dummy, width
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.term_tables import columns
from qvr_core.semantics.terms.written import CONSTRUCTOR
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


NEAR = 1e-4
"""How far apart, relatively, two roundings of what is computed may lie."""


class EncoderArrow(ArrowModule):
    """Terms int64 (B, nodes, columns) to numbers (B, width).  Where cases draw, so does each node, and what a root
    draws has a density given all below it; a root that is computed adds nothing to it."""

    def __init__(self, encoder: Encoder, builder: ArrowBuilder) -> None:
        super().__init__()
        self.name = encoder.name
        self.domain, self.codomain = encoder.domain, encoder.codomain
        assert isinstance(encoder.domain.space, Terms)
        made = CollectedParts(builder)
        places = dict(encoder.domain.space.constructors)
        self.constructors = [*places]
        self.cases = [
            _Case(compile_expr(case.body, made), case.parameters, places[case.constructor]) for case in encoder.cases
        ]
        self.width = width(encoder.codomain.space)
        # what tells one draw from another is where it stands in the encoder's text
        self.encoder = encoder
        self._set_draws(draws_of_cases(encoder.cases, self.constructors, made))
        adopt(self, made.used)

    def _set_draws(self, draws: Draws) -> None:
        self.draws, self.paths = draws, draws.paths
        self.sampled, self.has_density = bool(draws.each), bool(draws.dense)

    def as_innovation(self) -> ArrowModule:
        draws = self.draws.as_innovation()
        if draws is self.draws:
            return self
        found = copy.copy(self)
        found._set_draws(draws)
        return found

    def output_like(self, x: Value) -> Value:
        assert is_tensor(x)
        return dummy(self.codomain.space, (len(x),), x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        assert is_tensor(x)
        return self.draws.noise_specs(Levels(x, len(self.cases))) if self.sampled else []

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        if self.sampled:
            return super().forward(x)
        return self._codes(Levels(x, len(self.cases)), None)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        assert is_tensor(x)
        levels = Levels(x, len(self.cases))
        nodes = NodeDraws(self.draws, levels, noise, generator, scored=want_log_prob)
        drawn = Drawn(self._codes(levels, nodes), nodes.finish(), None, None, score_log_prob=nodes.score)
        if want_log_prob:
            drawn.log_noise = nodes.log_innovations + nodes.log_final
            drawn.log_innovations = nodes.log_innovations
            drawn.log_prob = nodes.log_prob if self.has_density else None
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        assert is_tensor(x) and is_tensor(y)
        if not self.has_density:
            raise NoDensity(f"no case of `{self.name}` ends in a draw: its value has no density")
        require_innovations(self, x, innovations)
        levels = Levels(x, len(self.cases))
        nodes = NodeDraws(self.draws, levels, innovations, None, scored=True, codes=y)
        self._check_computed(x, y, self._codes(levels, nodes))
        nodes.finish()
        return nodes.log_prob, nodes.log_innovations if any(not spec.final for spec in self.noise_specs(x)) else None

    def _check_computed(self, x: Tensor, y: Tensor, codes: Tensor) -> None:
        """Raise `NoDensity` for a row whose root is computed, and is told to be another number than it comes to."""
        for number, name in enumerate(self.constructors):
            rows = x[:, 0, CONSTRUCTOR] == number
            if number in self.draws.dense or not bool(rows.any()):
                continue
            own, told = codes[rows], y[rows]
            if bool(((own - told).abs() > NEAR * (1.0 + own.abs())).any()):
                raise NoDensity(
                    f"a term begins with `{name}` here, whose case in `{self.name}` does not end in a draw: it comes "
                    "to one value, and another is given; let the case end in a draw, or leave these rows out"
                )

    def _codes(self, levels: Levels, nodes: NodeDraws | None) -> Tensor:
        """The numbers of all roots, (B, width)."""
        below = arrays.zeros((0, self.width), dtype=precision(), device=levels.flat.device)
        if not len(levels.flat):
            return below
        for level in reversed(range(len(levels.sizes))):
            below = arrays.cat([self._case(group, level, levels, below, nodes) for group in levels.groups(level)])
        return below[levels.place[:: levels.nodes]]

    def _case(self, group: Group, level: int, levels: Levels, below: Tensor, nodes: NodeDraws | None) -> Tensor:
        """One case on the nodes of a level that have its constructor: its numbers, (n, width)."""
        case, table = self.cases[group.constructor], levels.flat[group.nodes]
        frame = case_frame(self.name, len(table), table, case.bound(table, below, levels.places(group.nodes)))
        if nodes is not None:
            frame.draw = partial(nodes.draw, group, level)
        return numbers(case.body, frame, self.width)
