"""A hidden chain, summed out by the forward algorithm (Rabiner 1989, III.A) in O(T K²) for each chain.

Shapes: B rows, chains over the indices in front (together G), T elements, K states.  Observed elements add their log
densities to the place that they read; what nothing reads adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from qvr_core.arrays.engine import Generator as RandomGenerator
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.categories import categorical_draw
from qvr_core.runtime.families.counts import bernoulli_draw
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arguments import Arguments
from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.chains.hidden_counts import values_of
from qvr_core.runtime.programs.chains.hidden_elements import ObservedElements, Reader, Score
from qvr_core.runtime.programs.chains.lengths import Lengths
from qvr_core.runtime.programs.chains.nested_chains import Nested
from qvr_core.runtime.programs.chains.recurrences import recurrence
from qvr_core.runtime.programs.declared.families import runtime_family
from qvr_core.runtime.programs.execution import SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.missing.missing_site import filled_in_block, given_alone, note_filled
from qvr_core.runtime.programs.site_terms import Terms
from qvr_core.runtime.tensors.logsumexp import logsumexp
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.hidden_counts import is_counts
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import MarginalizeModel, ObserveModel, ScoreModel

Forward = tuple[Tensor, Tensor]
"""What the forward algorithm gives of chains whose states depend on one another (`HiddenChain._forward`)."""


class Step(Protocol):
    """A let of the block that reads no hidden state."""

    def run(self, frame: Frame) -> None:
        """Bind its names."""
        ...


class HiddenChain:
    """`marginalize z[g : G, t : T] : State <- Family(…z[g, t - 1]…) from Family(…)` and the block below it."""

    def __init__(
        self,
        model: MarginalizeModel,
        lets: Sequence[Step],
        program: str,
        parts: Parts,
        inner: Sequence[HiddenChain] = (),
    ) -> None:
        chain, draw = model.site.chain, model.site.draw
        assert chain is not None and isinstance(draw, FamilyDraw) and model.reads is not None
        self.name = model.site.name
        self.density = model.site.density
        self.where = Where(program, f"site `{self.name}`", self.name)
        space = model.site.bound[0][1].space
        self.states = None if is_counts(space) else indexed.size_of(space)
        """How many values a state has; None of a count, whose bounds tell it."""
        self.axis = axis_of(None, self.name.rpartition(".")[2])
        self.sizes = tuple(indexed.size_of(index.space) for index in chain.indices)
        self.discrete, self.places_of = True, self.sizes
        self.lagging = bool(chain.indices[chain.at].lag)
        self.family = runtime_family(draw, parts)
        self.arguments = Arguments(draw, self.family, model.site, self.where, parts)
        self.start_family = self.start = None
        if isinstance(chain.start, FamilyDraw):
            self.start_family = runtime_family(chain.start, parts)
            self.start = Arguments(chain.start, self.start_family, model.site, self.where, parts)
        lengths = model.site.lengths
        self.lengths = (
            None if lengths is None else Lengths(lengths, [index.space for index in chain.indices], self.where, parts)
        )
        self.lets = lets
        found = list(zip(model.body, model.reads, strict=True))
        self.observes = [
            ObservedElements(one, at, program, parts) for one, at in found if isinstance(one, ObserveModel)
        ]
        self.scores = [Score(one, at, program, parts) for one, at in found if isinstance(one, ScoreModel)]
        places = [at for one, at in found if isinstance(one, MarginalizeModel)]
        self.nested = [Nested(one, self.name, at, parts) for one, at in zip(inner, places, strict=True)]
        self.readers: list[Reader] = [*self.observes, *self.scores, *self.nested]
        self.elements = [*self.observes, *(reader for one in inner for reader in one.observes)]
        """What is observed in the block and in those inside it."""

    def latents(self) -> list[FamilySite]:
        """The sample sites of the block: there are none."""
        return []

    def observed(self) -> list[FamilySite]:
        """The sites of the block."""
        return [reader.site for reader in self.elements]

    # ------------------------------------------------------------ execution

    def run(self, frame: Frame) -> None:
        """Leave one record with the summed-out density; observed steps without values are drawn."""
        again = [reader for reader in self.elements if not reader.lag] if frame.request.redraw else []
        with self.opened(frame):
            self._complete(frame)
            with frame.hidden([reader.name for reader in again]):
                self._run(frame)

    def _complete(self, frame: Frame) -> None:
        """Draw the missing cells that nothing fills, where values alone are wanted: the states given what is there,
        then each cell given the one at its place."""
        lacking = [one for one in self.observes if one.lacks(frame) and not one.lag]
        if not lacking or frame.request.wanted is not False:
            return
        with given_alone([frame.gaps[one.name] for one in lacking]):
            if bool(arrays.isnan(self._seen(frame)).any()):
                return  # something else that is given reads them
            path = self._path_given(frame, self._forward(frame) if self.lagging else None)
        for reader in lacking:
            reader.fill(path, frame, self.sizes)

    @contextmanager
    def opened(self, frame: Frame) -> Generator[None]:
        """While it is open, the lets of the block are bound, and the values of a hidden count are those up to its
        largest bound."""
        for let in self.lets:
            let.run(frame)
        if self.states is not None:
            yield
            return
        aligned = self.arguments.align(frame, (), None)
        frame.windows[self.axis] = (0, values_of(self.family, aligned, len(self.sizes) + 2, self.where))
        yield
        del frame.windows[self.axis]

    def many(self, frame: Frame) -> int:
        """How many values a state has."""
        return frame.windows[self.axis][1] if self.states is None else self.states

    def _run(self, frame: Frame) -> None:
        filled, drawn = list(filled_in_block(self.observed(), frame)), None
        if any(frame.supplied(reader.name) is None for reader in self.elements):
            drawn = self.path(frame)
            for reader in self.observes:
                if frame.supplied(reader.name) is None:
                    frame.drawn.add(reader.name)
                    frame.given[reader.name] = Cell(reader.drawn(drawn, frame, self.sizes), True)
            for nested in self.nested:
                nested.draw(drawn, frame, self.many(frame), self.sizes)
        request, log_prob, forward = frame.request, None, None
        if self.lagging and (request.wanted is not False or request.states or request.pointwise):
            forward = self._forward(frame)
        if request.wanted is not False:
            log_prob = self.evaluate(frame, forward)
        for reader in self.elements:
            cell = frame.supplied(reader.name)
            assert cell is not None
            frame.bound[reader.name] = cell
            frame.sites[reader.name] = SiteRecord(
                reader.name,
                "observe",
                True,
                # what reads its own earlier elements cannot be drawn anew: its data are not passed off as draws
                None if frame.request.redraw and reader.lag else cell.value,
                None if log_prob is None else arrays.zeros_like(log_prob),
                None,
                {},
                self.density,
            )
        record = SiteRecord(self.name, "marginalize", True, drawn, log_prob, None, {}, self.density)
        frame.sites[self.name] = record
        if request.states:
            self._posterior(frame, record, forward)
        note_filled(filled, log_prob, frame)
        if request.pointwise:
            with given_alone([filling for _, filling in filled]):
                self._add_pointwise(frame, self._forward(frame) if filled and self.lagging else forward)

    def evaluate(self, frame: Frame, forward: Forward | None) -> Tensor:
        """log p(observed), all paths of the hidden states summed out: (B,)."""
        total = self._apart(frame) if forward is None else logsumexp(forward[0][-1], -1)
        return Terms(total, True).per_row(frame.rows)

    def by_chain(self, frame: Frame) -> Tensor:
        """log p of what each chain explains, (B, …); where no state depends on another, of what each place does."""
        return logsumexp(self._forward(frame)[0][-1], -1) if self.lagging else self._apart(frame)

    def _apart(self, frame: Frame) -> Tensor:
        """log p of what is observed at each place, where no state depends on another: (B, …)."""
        _, later = self._tables(frame)
        return logsumexp(later.squeeze(-2) + self._seen(frame).squeeze(-2), -1)

    def _forward(self, frame: Frame) -> Forward:
        """log p(observed up to an element, its state), (T, B, chains…, K), and the log density of each state and what
        is observed at its place given the state before, (T − 1, B, chains…, K, K)."""
        first, later = self._tables(frame)
        seen = self._seen(frame)
        # nothing comes before the first element, so nothing there depends on a state before it
        start = (first + seen[..., 0, 0, :]).expand(frame.rows, *self.sizes[:-1], self.many(frame))
        steps = (later + seen[..., 1:, :, :]).movedim(-3, 0)

        def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> Sequence[Tensor]:
            return [logsumexp(states[0].unsqueeze(-1) + rows[0], -2)]

        (found,) = recurrence([start], [steps], step)
        return found, steps

    # ------------------------------------------------------------ the states, given what is observed

    def _posterior(self, frame: Frame, record: SiteRecord, forward: Forward | None) -> None:
        """Leave the probability of each state at each place given all that is observed, (B, …, T, K), by the backward
        algorithm (Rabiner 1989, III.B), and where it is asked for a path, int64 (B, …, T)."""
        if frame.request.paths:
            record.value = self._path_given(frame, forward)
        if forward is None:
            record.states = self._states_apart(frame).exp()
            return
        up_to, steps = forward
        behind = [arrays.zeros_like(up_to[-1])]
        for element in range(self.sizes[-1] - 2, -1, -1):
            behind.append(logsumexp(steps[element] + behind[-1].unsqueeze(-2), -1))
        record.states = _normalised(up_to + arrays.stack(behind[::-1])).exp().movedim(0, -2)

    def _states_apart(self, frame: Frame) -> Tensor:
        """log p of each state given what is observed at its place, where none depends on another: (B, …, K)."""
        _, later = self._tables(frame)
        return _normalised(later.squeeze(-2) + self._seen(frame).squeeze(-2))

    def _path_given(self, frame: Frame, forward: Forward | None) -> Tensor:
        """States drawn from their posterior, int64 (B, …)."""
        if forward is not None:
            return self._path_back(*forward, frame.request.generator)
        log_p = self._states_apart(frame)
        return categorical_draw(tuple(log_p.shape[:-1]), frame.request.generator, log_p)

    def _path_back(self, up_to: Tensor, steps: Tensor, generator: RandomGenerator | None) -> Tensor:
        """A path drawn from its end (Chib 1996), int64 (B, …, T)."""
        shape = tuple(up_to.shape[1:])
        path = [categorical_draw(shape[:-1], generator, _normalised(up_to[-1]))]
        for element in range(self.sizes[-1] - 2, -1, -1):
            into = path[-1][..., None, None].expand(*shape, 1)
            leading = up_to[element] + steps[element].expand(*shape, shape[-1]).gather(-1, into).squeeze(-1)
            path.append(categorical_draw(shape[:-1], generator, _normalised(leading)))
        return arrays.stack(path[::-1], -1)

    # ------------------------------------------------------------ what each element adds

    def _add_pointwise(self, frame: Frame, forward: Forward | None) -> None:
        """The log density of what is observed at each place, in a chain given all before it.

        It stands in the record of the observed step where each of its elements reads a place of its own, else in that
        of the hidden name; NaN for what does not count, and at a place that nothing reads.
        """
        each = self._by_place(frame, forward)
        flat = each.flatten(1) if self.sizes else each.unsqueeze(1)
        places = [self._place(reader, frame) for reader in self.readers]
        read = arrays.cat(places) if places else arrays.zeros(0, dtype=arrays.long)
        silent = [reader.silent(frame) for reader in self.observes]
        if len(places) == len(silent) == 1 and read.unique().numel() == read.numel():
            found, (reader,) = flat[:, read], self.observes
            if silent[0] is not None:
                found = found.masked_fill(silent[0].flatten(1), math.nan)
            frame.sites[reader.name].pointwise = reader.spread(found)
            return
        counted = arrays.zeros(flat.shape, dtype=arrays.bool)
        for place, quiet in zip(places, [*silent, *[None] * (len(places) - len(silent))], strict=True):
            ones = arrays.ones(len(flat), len(place)) if quiet is None else (~quiet).flatten(1).float()
            counted = counted | (arrays.zeros(flat.shape, dtype=ones.dtype).index_add(1, place, ones) > 0)
        frame.sites[self.name].pointwise = flat.masked_fill(~counted, math.nan).reshape(each.shape)

    def _by_place(self, frame: Frame, forward: Forward | None) -> Tensor:
        """log p(observed at a place | observed at the places before it in its chain): (B, …)."""
        if forward is None:
            return self._apart(frame)
        totals = logsumexp(forward[0], -1).movedim(0, -1)
        added = totals.diff(dim=-1).masked_fill(totals[..., :-1] == -math.inf, -math.inf)
        return arrays.cat([totals[..., :1], added], -1)

    def _tables(self, frame: Frame) -> tuple[Tensor, Tensor]:
        """log p of the first states (B, …, K), and of each state given the one before it (B, …, T − 1, K, K)."""
        values = arrays.arange(self.many(frame), device=frame.device)
        aligned = self.arguments.align(frame, (), None)
        parameters = self.arguments.canonical(aligned, len(self.sizes) + 2)
        length = self.sizes[-1] - (1 if self.lagging else 0)
        back = self.many(frame) if self.lagging else 1
        shape = (frame.rows, *self.sizes[:-1], length, back, self.many(frame))
        later = self._there(self.family.log_prob(values, *parameters).expand(shape), frame, slice(-length, None))
        if self.start is None or self.start_family is None:
            return later, later
        aligned = self.start.align(frame, (), None)
        parameters = self.start.canonical(aligned, len(self.sizes))
        first = self.start_family.log_prob(values, *parameters).expand(frame.rows, *self.sizes[:-1], self.many(frame))
        return self._there(first, frame, 0), later

    def _there(self, table: Tensor, frame: Frame, places: slice | int) -> Tensor:
        """A table of states at some places along the chains.  Those that do not exist have every state alike, so that
        they add up to one whatever the arguments are there."""
        if self.lengths is None:
            return table
        there = self.lengths(frame).there[..., places]
        alike = arrays.full((), -math.log(self.many(frame)), dtype=table.dtype)
        return arrays.where(there.reshape(*there.shape, *(1,) * (table.ndim - 1 - there.ndim)), table, alike)

    def _seen(self, frame: Frame) -> Tensor:
        """What is observed at each place, by the state there and the one before: (B, …, T, K or 1, K)."""
        total: Tensor | None = None
        for reader in self.readers:
            if not reader.known(frame):
                continue  # drawn later
            terms, place = reader.terms(frame, self.many(frame)), self._place(reader, frame)
            flat = terms.reshape(terms.shape[0], -1, *terms.shape[-2:])
            shape = (flat.shape[0], math.prod(self.sizes), *flat.shape[-2:])
            made = arrays.zeros(shape, dtype=flat.dtype, device=flat.device)
            made = made.index_add(1, place, flat)
            total = made if total is None else total + made
        if total is None:
            total = arrays.zeros(frame.rows, math.prod(self.sizes), 1, self.many(frame), dtype=precision())
        return total.reshape(total.shape[0], *self.sizes, *total.shape[-2:]).expand(
            frame.rows, *self.sizes, total.shape[-2], self.many(frame)
        )

    def _place(self, reader: Reader, frame: Frame) -> Tensor:
        """The place that each element reads; raises `InputProblem` where it lies beyond the end of its chain."""
        place = reader.place(frame, self.sizes)
        if self.lengths is None or recording() or in_transform():
            return place
        gone = ~self.lengths(frame).there.reshape(-1)[place]
        silent = reader.silent(frame) if bool(gone.any()) else None
        gone = gone if silent is None else gone & ~silent.flatten(1).all(0)
        if bool(gone.any()):
            at = arrays.unravel_index(place[gone][0], self.sizes)
            cell = ", ".join(str(int(one)) for one in at)
            written = f"states of `{self.name}` up to `{self.lengths.written}`"
            raise reader.where.misfit(written, f"a read of `{self.name}[{cell}]`")
        return place

    # ------------------------------------------------------------ draws

    def path(self, frame: Frame) -> Tensor:
        """A path of each chain, int64 (B, …, T)."""
        first, later = self._tables(frame)
        generator = frame.request.generator
        if not self.lagging:
            logits = later.squeeze(-2)
            shape = tuple(logits.shape[:-1])
            if self.family.draw is bernoulli_draw:
                # as the family itself draws, so that a seed gives what it gives without indices
                return bernoulli_draw(shape, generator, logits[..., 1] - logits[..., 0]).long()
            return categorical_draw(shape, generator, logits)
        path = [categorical_draw(tuple(first.shape[:-1]), generator, first)]
        for element in range(self.sizes[-1] - 1):
            table = later[..., element, :, :]
            rows = path[-1][..., None, None].expand(*path[-1].shape, 1, self.many(frame))
            logits = table.gather(-2, rows).squeeze(-2)
            path.append(categorical_draw(tuple(logits.shape[:-1]), generator, logits))
        return arrays.stack(path, -1)


def _normalised(log_p: Tensor) -> Tensor:
    """As log-probabilities that add up to 1 over the states."""
    return log_p - logsumexp(log_p, -1).unsqueeze(-1)
