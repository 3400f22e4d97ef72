"""Decoders at run time: terms made from states, from their roots down, all trees of all rows level by level.

At each node a kernel chooses a constructor, and what stands at its places is drawn from kernels or made from states
that are computed.  The choices of a node depend on its state alone, so the log density of a term is the sum of those of
its choices.  At the last level only constructors without terms below them can be chosen: their probabilities there are
the kernel's own, divided by their sum, so that those of all terms of at most `depth` levels add up to 1.
"""

from __future__ import annotations

from typing import NamedTuple

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor
from qvr_core.runtime.families.categories import categorical_draw
from qvr_core.runtime.programs.arithmetic import Evaluate, compile_expr
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.declared.term_levels import Levels, bits_of, case_frame, numbers, real_numbers
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.cells import Cell, as_argument
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import dummy, width
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.term_tables import columns
from qvr_core.semantics.terms.written import CONSTRUCTOR, DEPTH, MOST_NODES, NOTHING, table_width
from qvr_core.semantics.types.model.expressions import Apply, Expr
from qvr_core.semantics.types.model.terms import Decoder, DecoderCase
from qvr_core.semantics.types.spaces import Finite, Space, Terms


class _Kernel:
    """What a choice is drawn from, on a frame of n nodes."""

    def __init__(self, value: Expr, parts: CollectedParts) -> None:
        assert isinstance(value, Apply)
        self.arrow = parts.arrow(value.arrow)
        self.domain = value.arrow.domain.space
        self.arguments = [compile_expr(one, parts) for one in value.args]

    def argument(self, frame: Frame) -> Value:
        return as_argument([one(frame) for one in self.arguments], self.domain, frame.rows)


class _Place(NamedTuple):
    """A place of a constructor: its columns, and the kernel that it is drawn from or the state of the term there."""

    first: int
    end: int
    space: Space | None
    kernel: _Kernel | None
    state: Evaluate | None


class _Case:
    """What stands at the places of a constructor."""

    def __init__(self, case: DecoderCase, places: tuple[Space | None, ...], parts: CollectedParts) -> None:
        self.state = case.state
        self.places: list[_Place] = []
        for value, space, (first, end) in zip(case.places, places, columns(places), strict=True):
            kernel = None if space is None else _Kernel(value, parts)
            state = compile_expr(value, parts) if space is None else None
            self.places.append(_Place(first, end, space, kernel, state))


class DecoderArrow(ArrowModule):
    """States (B, width) to terms int64 (B, nodes, columns), as many nodes as the largest of them has."""

    sampled = True

    def __init__(self, decoder: Decoder, builder: ArrowBuilder) -> None:
        super().__init__()
        self.name = decoder.name
        self.paths = (decoder.name,)
        self.domain, self.codomain = decoder.domain, decoder.codomain
        assert isinstance(decoder.codomain.space, Terms)
        self.space = decoder.codomain.space
        self.depth = decoder.depth
        parts = CollectedParts(builder)
        self.choice = None if decoder.choice is None else _Kernel(decoder.choice.places[0], parts)
        self.choice_state = "" if decoder.choice is None else decoder.choice.state
        # the place of each constructor among the elements that the kernel chooses from
        order = decoder.order
        self.elements = [order.index(at) for at in range(len(order))]
        cases = {case.constructor: case for case in decoder.cases}
        self.cases = [
            _Case(cases[name], places, parts) if name in cases else None for name, places in self.space.constructors
        ]
        self.ends = [None not in places for _, places in self.space.constructors]
        self.width = width(decoder.domain.space)
        adopt(self, parts.used)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        """The terms are their own noise; the axis of nodes, which no state tells, counts as one."""
        assert is_tensor(x)
        return [NoiseSpec(self.name, (len(x), 1, table_width(self.space)), "discrete", final=True)]

    def output_like(self, x: Value) -> Value:
        assert is_tensor(x)
        return dummy(self.codomain.space, (len(x),), x)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        assert is_tensor(x)
        given = noise.get(self.name) if noise is not None else None
        if given is None:
            with arrays.no_grad():
                given = self._drawn(x, generator)
        drawn = Drawn(given, {self.name: given}, None, None)
        scored = arrays.is_grad_enabled()
        if want_log_prob or scored:
            log_prob = self.log_prob(x, given)
            drawn.score_log_prob = log_prob if scored else None
            if want_log_prob:
                drawn.log_prob = drawn.log_noise = log_prob
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        assert is_tensor(x) and is_tensor(y)
        total = arrays.zeros(len(x), dtype=precision(), device=x.device)
        if not len(x):
            return total, None
        levels = Levels(y, len(self.cases))
        states = x.reshape(len(x), self.width)[levels.order[: len(x)] // levels.nodes]
        for level in range(len(levels.sizes)):
            nodes = arrays.cat([group.nodes for group in levels.groups(level)])
            terms = self._log_choices(states, level, levels.flat[nodes, CONSTRUCTOR])
            total = total.index_add(0, nodes // levels.nodes, terms)
            made: list[Tensor] = []
            where: list[Tensor] = []
            for group in levels.groups(level):
                case, own = self.cases[group.constructor], levels.flat[group.nodes]
                if case is None:
                    continue
                count = len(own)
                frame = self._frame(case.state, states[group.start : group.start + count])
                for place in case.places:
                    if place.kernel is not None:
                        value = _value(own, place)
                        terms = place.kernel.arrow.log_prob(place.kernel.argument(frame), value)
                        total = total.index_add(0, group.nodes // levels.nodes, terms.to(total.dtype))
                    elif place.state is not None:
                        made.append(numbers(place.state, frame, self.width))
                        where.append(levels.places(group.nodes)[:, place.first])
            if made:
                states = arrays.cat(made)[arrays.cat(where).argsort()]
        return total, None

    def _frame(self, name: str, states: Tensor) -> Frame:
        return case_frame(self.name, len(states), states, {name: Cell(states, True)})

    def _log_table(self, states: Tensor, level: int) -> Tensor:
        """Log-probabilities of the constructors at a level, (n, constructors)."""
        if self.choice is None:
            return arrays.zeros((len(states), 1), dtype=precision(), device=states.device)
        frame = self._frame(self.choice_state, states)
        table = self.choice.arrow.log_table(self.choice.argument(frame))[0][:, self.elements]
        if level + 1 < self.depth:
            return table
        ends = arrays.tensor(self.ends, device=states.device)
        return table.masked_fill(~ends, float("-inf")).log_softmax(-1)

    def _log_choices(self, states: Tensor, level: int, chosen: Tensor) -> Tensor:
        """Log-probabilities (n,) of the constructors that nodes at a level have."""
        return self._log_table(states, level).gather(1, chosen.unsqueeze(1)).squeeze(1).to(precision())

    def _drawn(self, x: Tensor, generator: Generator | None) -> Tensor:
        """A term for each state.  Raises `InputProblem` for one of more nodes than a term may have."""
        count, size = len(x), table_width(self.space)
        found: list[Tensor] = []
        number: list[Tensor] = []
        rows = arrays.arange(count, device=x.device)
        states = x.reshape(count, self.width)
        taken = arrays.zeros(count, dtype=arrays.int64, device=x.device)
        for level in range(self.depth):
            if not len(rows):
                break
            chosen = categorical_draw((len(rows),), generator, self._log_table(states, level))
            table = arrays.full((len(rows), size), NOTHING, dtype=arrays.int64, device=x.device)
            table[:, CONSTRUCTOR], table[:, DEPTH] = chosen, level
            below: list[tuple[Tensor, int, Tensor]] = []
            for constructor, case in enumerate(self.cases):
                at = (chosen == constructor).nonzero().squeeze(1)
                if case is None or not len(at):
                    continue
                frame = self._frame(case.state, states[at])
                for place in case.places:
                    if place.kernel is not None:
                        argument = place.kernel.argument(frame)
                        value = place.kernel.arrow.draw(argument, generator=generator, want_log_prob=False).value
                        assert is_tensor(value)
                        drawn = value.unsqueeze(1) if isinstance(place.space, Finite) else bits_of(value)
                        table[at, place.first : place.end] = drawn
                    elif place.state is not None:
                        below.append((at, place.first, numbers(place.state, frame, self.width)))
            number.append(_rank(rows) + taken[rows])
            taken = taken + arrays.bincount(rows, minlength=count)
            if int(taken.max()) > MOST_NODES:
                message = f"`{self.name}` drew a term of more than {MOST_NODES:,} nodes: lower its `depth`"
                raise InputProblem(message, site=self.name)
            found.append(arrays.cat([rows.unsqueeze(1), table], 1))
            if not below:
                break
            # those below stand in the order of what they stand below, and of its places
            parent = arrays.cat([at for at, _, _ in below])
            column = arrays.cat([arrays.full_like(at, first) for at, first, _ in below])
            order = (parent * size + column).argsort()
            parent, column = parent[order], column[order]
            states = arrays.cat([state for _, _, state in below])[order]
            rows = rows[parent]
            found[-1][parent, 1 + column] = _rank(rows) + taken[rows]
        whole = arrays.full(
            (count, int(taken.max()) if count else 1, size), NOTHING, dtype=arrays.int64, device=x.device
        )
        for table, numbered in zip(found, number, strict=True):
            whole[table[:, 0], numbered] = table[:, 1:]
        return whole


def _rank(rows: Tensor) -> Tensor:
    """Where each node stands among those of its row, of rows in order."""
    return arrays.arange(len(rows), device=rows.device) - arrays.searchsorted(rows, rows)


def _value(table: Tensor, place: _Place) -> Tensor:
    """What stands at a place of nodes (n, columns): elements (n,), or numbers (n, width)."""
    if isinstance(place.space, Finite):
        return table[:, place.first]
    return real_numbers(table[:, place.first : place.end])
