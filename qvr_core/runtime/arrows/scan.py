"""`scan`: a cell folded over a sequence, step by step."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from qvr_core.arrays.engine import Generator, Tensor, arrays, nn
from qvr_core.runtime.arrows.combinators import no_density_words
from qvr_core.runtime.arrows.lifting import flatten_time
from qvr_core.runtime.arrows.terms_in_parts import along_a_last_axis, at_place, of_part
from qvr_core.runtime.arrows.training import along_a_sequence
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value
from qvr_core.runtime.values.drawing import plus, require_innovations
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.types.model.arrows import Scan

LAST = "@last"
"""Suffix of the path of a cell's last draw at the last step."""


class StartState(nn.Module):
    """A learned start state (`init=learned`), zero at the beginning."""

    def __init__(self, node: Scan) -> None:
        super().__init__()
        self.weight = nn.Parameter(arrays.zeros(parameter_shapes(node)["weight"]))


class ScanArrow(ArrowModule):
    """Seq A ~ S by a cell A * S ~ S, or Seq A ~ Seq S with `emit=all`.

    Noise has time on axis 1 in reading order (a backward scan's first step is the last element).  The final state's
    density is that of the last step given every earlier draw; with `emit=all` each state is scored given the one
    before it, all at once.
    """

    def __init__(
        self,
        node: Scan,
        cell: ArrowModule,
        start: StartState | None,
        start_name: str,
        *,
        summed: bool = True,
    ) -> None:
        """With `summed` False finite states are innovations, not summed out."""
        super().__init__()
        self.node, self.start_name = node, start_name
        self.domain, self.codomain = node.domain, node.codomain
        self.item, self.state = node.item.space, node.state.space
        cell = cell if node.emit_all else cell.as_innovation()
        self.cell = (cell,)
        self.emit_all, self.backward_ = node.emit_all, node.backward
        self.sampled = cell.sampled
        self.has_density = cell.sampled and cell.has_density
        self.start = (start,)
        self.terms = cell.terms
        finite = all(block.finite for block in layout.blocks(self.state))
        self.tabular_cell = self.has_density and finite and cell.tabular and not cell.terms
        self.tabular = self.tabular_cell and summed and not self.emit_all
        ends = () if self.emit_all else tuple(path + LAST for path in cell.paths)
        self.paths = (*cell.paths, *ends)
        adopt(self, [cell], {start_name: start} if start is not None else None)
        # only its dtype is read
        self.any_weight = (next(self.parameters(), None),)

    # ------------------------------------------------------------ pieces

    def start_state(self, rows: int, like: Tensor) -> Value:
        """The state before the first step."""
        start = self.start[0]
        made: list[Tensor] = []
        offset = 0
        for block in layout.blocks(self.state):
            if block.finite:
                made.append(arrays.zeros(rows, dtype=arrays.int64, device=like.device))
            elif start is None:
                made.append(arrays.zeros(rows, block.size, dtype=self._dtype(like), device=like.device))
            else:
                made.append(start.weight[offset : offset + block.size].expand(rows, block.size))
                offset += block.size
        return layout.from_parts(made)

    def _dtype(self, like: Tensor) -> arrays.dtype:
        weight = self.any_weight[0]
        if weight is not None:
            return weight.dtype
        return like.dtype if like.is_floating_point() else arrays.get_default_dtype()

    def items(self, x: Value) -> list[Value]:
        """The elements of the sequence in reading order."""
        columns = [part.unbind(1) for part in layout.parts(x)]
        read = [layout.from_parts(step) for step in zip(*columns, strict=True)]
        return read[::-1] if self.backward_ else read

    def _restore(self, states: list[Value]) -> Value:
        """States in reading order as one sequence in the order of the positions."""
        ordered = states[::-1] if self.backward_ else states
        columns = zip(*(layout.parts(state) for state in ordered), strict=True)
        return layout.from_parts([arrays.stack(column, dim=1) for column in columns])

    def _cell_input(self, x: Value, item: Value, state: Value) -> Value:
        return layout.join([item, state])

    def _cell_specs(self, x: Value) -> list[NoiseSpec]:
        part = layout.parts(x)[0]
        return self.cell[0].noise_specs(layout.dummy(self.cell[0].domain.space, (part.shape[0],), part))

    def as_innovation(self) -> ArrowModule:
        if not self.tabular:
            return self
        return ScanArrow(self.node, self.cell[0], self.start[0], self.start_name, summed=False)

    # ------------------------------------------------------------ finite states

    def forward_algorithm(
        self, x: Value, innovations: Noise | None, evidence: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """log Σ over all paths of finite states, by last state (B, K); `evidence` (B, L, K) adds at each position.

        The second is the log density of the cell's innovations, which all states share.
        """
        cell, count = self.cell[0], layout.total_elements(self.state)
        part = layout.parts(x)[0]
        rows, length = part.shape[:2]
        index = arrays.arange(count, device=part.device).repeat(rows)
        states = layout.from_flat_index(index, self.state) if len(layout.blocks(self.state)) > 1 else index
        belief: Tensor | None = None
        log_innovations: Tensor | None = None
        order = range(length - 1, -1, -1) if self.backward_ else range(length)
        for step, (position, item) in enumerate(zip(order, self.items(x), strict=True)):
            given = _noise_at(innovations, cell.paths, step, length - 1)
            if belief is None:
                start = self.start_state(rows, part)
                belief, inner = cell.log_table(self._cell_input(x, item, start), given)
            else:
                shared = None if given is None else {p: u.repeat_interleave(count, 0) for p, u in given.items()}
                spread = layout.from_parts([p.repeat_interleave(count, 0) for p in layout.parts(item)])
                move, each = cell.log_table(self._cell_input(x, spread, states), shared)
                belief = arrays.logsumexp(belief.unsqueeze(2) + move.view(rows, count, count), 1)
                inner = None if each is None else each.view(rows, count)[:, 0]
            log_innovations = plus(log_innovations, inner)
            if evidence is not None:
                belief = belief + evidence[:, position]
        assert belief is not None
        return belief, log_innovations

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        require_innovations(self, x, innovations)
        return self.forward_algorithm(x, innovations, None)

    # ------------------------------------------------------------ the contract

    def output_like(self, x: Value) -> Value:
        part = layout.parts(x)[0]
        lead = tuple(part.shape[:2]) if self.emit_all else tuple(part.shape[:1])
        return layout.dummy(self.state, lead, part)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        length = layout.parts(x)[0].shape[1]
        specs: list[NoiseSpec] = []
        ends: list[NoiseSpec] = []
        for spec in self._cell_specs(x):
            rows, *rest = spec.shape
            if self.emit_all or not spec.final:
                specs.append(NoiseSpec(spec.path, (rows, length, *rest), spec.base, spec.final))
                continue
            if length > 1 and not self.tabular:
                specs.append(NoiseSpec(spec.path, (rows, length - 1, *rest), spec.base, final=False))
            ends.append(NoiseSpec(spec.path + LAST, spec.shape, spec.base, final=True))
        return specs + ends

    def forward(self, x: Value) -> Value:
        cell = self.cell[0]
        part = layout.parts(x)[0]
        state = self.start_state(part.shape[0], part)
        states: list[Value] = []
        with along_a_sequence():
            for item in self.items(x):
                state = cell(self._cell_input(x, item, state))
                states.append(state)
        return self._restore(states) if self.emit_all else state

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        with along_a_sequence():
            return self._draw(x, noise, generator, want_log_prob)

    def _draw(self, x: Value, noise: Noise | None, generator: Generator | None, want_log_prob: bool) -> Drawn:
        cell = self.cell[0]
        part = layout.parts(x)[0]
        state = self.start_state(part.shape[0], part)
        items = self.items(x)
        last = len(items) - 1
        states: list[Value] = []
        steps: list[dict[str, Tensor]] = []
        terms: list[dict[str, Term]] = []
        total = Drawn(state, {}, None, None)
        drawn = total
        for step, item in enumerate(items):
            given = _noise_at(noise, cell.paths, step, last)
            with self._data_at(step, len(items)):
                drawn = cell.draw(
                    self._cell_input(x, item, state), given, generator=generator, want_log_prob=want_log_prob
                )
            state = drawn.value
            states.append(state)
            steps.append(drawn.noise)
            terms.append(drawn.terms)
            total.score_log_prob = plus(total.score_log_prob, drawn.score_log_prob)
            if self.emit_all:
                total.log_prob = plus(total.log_prob, drawn.log_prob)
                total.log_innovations = plus(total.log_innovations, drawn.log_innovations)
            elif step < last:
                total.log_innovations = plus(total.log_innovations, drawn.log_noise)
            total.log_noise = plus(total.log_noise, drawn.log_noise)
        if not self.emit_all:
            total.log_prob = drawn.log_prob
            total.log_innovations = plus(total.log_innovations, drawn.log_innovations)
            if self.tabular and want_log_prob:
                total.noise = self._gathered(steps, x)
                total.log_prob, total.log_innovations = self.densities(x, state, total.noise)
                total.log_noise = plus(total.log_prob, total.log_innovations)
        total.value = self._restore(states) if self.emit_all else state
        total.noise = self._gathered(steps, x)
        total.terms = self._over_steps(terms)
        return total

    def _data_at(self, step: int, length: int) -> AbstractContextManager[None]:
        """What the cell observes at a step in reading order."""
        if not self.terms:
            return nullcontext()
        place = length - 1 - step if self.backward_ else step
        return of_part(lambda data: {name: at_place(name, value, place, length) for name, value in data.items()})

    def _over_steps(self, steps: list[dict[str, Term]]) -> dict[str, Term]:
        """The terms of all steps in reading order, along an axis in the order of the positions."""
        ordered = steps[::-1] if self.backward_ else steps
        return {name: along_a_last_axis([step[name] for step in ordered]) for name in self.terms}

    def _gathered(self, steps: list[dict[str, Tensor]], x: Value) -> dict[str, Tensor]:
        """Noise of all steps under the names of the scan."""
        ends: set[str] = set() if self.emit_all else {spec.path for spec in self._cell_specs(x) if spec.final}
        made: dict[str, Tensor] = {}
        for path in steps[0]:
            each = [step[path] for step in steps]
            if path in ends:
                made[path + LAST] = each.pop()
                if self.tabular:
                    continue
            if each:
                made[path] = arrays.stack(each, dim=1)
        return made

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        if not self.has_density:
            raise NoDensity(no_density_words(self))
        require_innovations(self, x, innovations)
        if self.emit_all and not self.tabular:
            with along_a_sequence(tuple(layout.parts(x)[0].shape[:2])):
                return self._all_states(x, y, innovations)
        with along_a_sequence():
            return self._last_state(x, y, innovations)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        drawn = self._conditioned(x, y, innovations)
        assert drawn.log_prob is not None
        return drawn.log_prob, drawn.log_innovations

    def _last_state(self, x: Value, y: Value, innovations: Noise | None) -> Drawn:
        if self.tabular:
            table, log_innovations = self.forward_algorithm(x, innovations, None)
            final = layout.flat_index(y, self.state)
            return Drawn(y, {}, table.gather(1, final.unsqueeze(1)).squeeze(1), log_innovations)
        return self._final_state(x, y, innovations)

    def _final_state(self, x: Value, y: Value, innovations: Noise | None) -> Drawn:
        cell = self.cell[0]
        part = layout.parts(x)[0]
        state = self.start_state(part.shape[0], part)
        items = self.items(x)
        last = len(items) - 1
        log_innovations: Tensor | None = None
        terms: list[dict[str, Term]] = []
        for step, item in enumerate(items[:-1]):
            given = _noise_at(innovations, cell.paths, step, last)
            with self._data_at(step, len(items)):
                drawn = cell.draw(self._cell_input(x, item, state), given)
            state = drawn.value
            terms.append(drawn.terms)
            log_innovations = plus(log_innovations, drawn.log_noise)
        given = _noise_at(innovations, cell.paths, last, last)
        with self._data_at(last, len(items)):
            drawn = cell.conditioned(self._cell_input(x, items[-1], state), y, given)
        drawn.log_innovations = plus(log_innovations, drawn.log_innovations)
        drawn.terms = self._over_steps([*terms, drawn.terms])
        return drawn

    def _all_states(self, x: Value, y: Value, innovations: Noise | None) -> Drawn:
        """Every step at once: rows and positions are flattened into rows."""
        cell = self.cell[0]
        part = layout.parts(x)[0]
        rows, length = part.shape[:2]
        before = layout.from_parts(
            [
                _shifted(states, start, self.backward_)
                for states, start in zip(layout.parts(y), layout.parts(self.start_state(rows, part)), strict=True)
            ]
        )
        flat = self._cell_input(x, flatten_time(x), flatten_time(before))
        given = None
        if innovations is not None:
            # noise is in reading order, positions are not
            ordered = {p: u.flip(1) if self.backward_ else u for p, u in innovations.items() if p in cell.paths}
            given = {path: u.flatten(0, 1) for path, u in ordered.items()}
        inner = of_part(lambda data: {name: _as_rows(name, value, length) for name, value in data.items()})
        with inner if self.terms else nullcontext():
            drawn = cell.conditioned(flat, flatten_time(y), given)
        log_prob, inner = (
            None if each is None else each.view(rows, length).sum(1) for each in (drawn.log_prob, drawn.log_innovations)
        )
        terms = {name: _at_steps(term, rows, length) for name, term in drawn.terms.items()}
        return Drawn(y, {}, log_prob, inner, terms=terms)


def _at_steps(term: Term, rows: int, length: int) -> Term:
    """What rows and positions in one axis score, with the positions as the last one."""
    value = arrays.unflatten(term.value, 0, (rows, length))
    log_prob = None if term.log_prob is None else term.log_prob.view(rows, length).sum(1)
    return Term(arrays.movedim(value, 1, -1), log_prob, term.given)


def _as_rows(name: str, value: Tensor, length: int) -> Tensor:
    """Data along a last axis of positions, with these as rows."""
    at_place(name, value, 0, length)
    return arrays.movedim(value, -1, 1).flatten(0, 1)


def _shifted(states: Tensor, start: Tensor, backward: bool) -> Tensor:
    """At each position the state that came before it in reading order."""
    first = start.unsqueeze(1)
    return arrays.cat([states[:, 1:], first], 1) if backward else arrays.cat([first, states[:, :-1]], 1)


def _noise_at(noise: Noise | None, paths: tuple[str, ...], step: int, last: int) -> dict[str, Tensor] | None:
    """The cell's noise at one step; at the last one a path of its own has precedence."""
    if noise is None:
        return None
    given: dict[str, Tensor] = {}
    for path in paths:
        if step == last and path + LAST in noise:
            given[path] = noise[path + LAST]
        elif path in noise and step < noise[path].shape[1]:
            given[path] = noise[path][:, step]
    return given
