"""A hidden chain, summed out by the forward algorithm (Rabiner 1989, III.A) in O(T K²) for each chain.

Shapes: B rows, chains over the indices in front (together G), T elements, K states.  Observed elements add their log
densities to the place that they read; what nothing reads adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qvr_core.runtime.families.categories import categorical_draw
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arguments import Arguments
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.declared.families import runtime_family
from qvr_core.runtime.programs.execution import SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_terms import Terms
from qvr_core.runtime.tensors.logsumexp import logsumexp
from qvr_core.runtime.values.cells import Cell, as_one, with_rows
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model import FamilyDraw, MarginalizeModel, ObserveModel


@dataclass(slots=True)
class Reader:
    """An observed step of the block: its site, and the place that each of its elements reads."""

    site: FamilySite
    places: list[Evaluate]
    sizes: tuple[int, ...]
    axis: int
    lag: int


class HiddenChain:
    """`marginalize z[g : G, t : T] : State <- Family(…z[g, t - 1]…) from Family(…)` and the block below it."""

    def __init__(self, model: MarginalizeModel, program: str, parts: Parts) -> None:
        chain, draw = model.site.chain, model.site.draw
        assert chain is not None and isinstance(draw, FamilyDraw) and model.reads is not None
        self.name = model.site.name
        self.density = model.site.density
        self.where = Where(program, f"site `{self.name}`", self.name)
        self.states = indexed.size_of(model.site.bound[0][1].space)
        self.sizes = tuple(indexed.size_of(index.space) for index in chain.indices)
        self.lagging = bool(chain.indices[chain.at].lag)
        self.family = runtime_family(draw, parts)
        self.arguments = Arguments(draw, self.family, model.site, self.where, parts)
        self.start_family = self.start = None
        if isinstance(chain.start, FamilyDraw):
            self.start_family = runtime_family(chain.start, parts)
            self.start = Arguments(chain.start, self.start_family, model.site, self.where, parts)
        self.readers = [
            _reader(step, places, program, parts)
            for step, places in zip(model.body, model.reads, strict=True)
            if isinstance(step, ObserveModel)
        ]

    def latents(self) -> list[FamilySite]:
        """The sample sites of the block: there are none."""
        return []

    def observed(self) -> list[FamilySite]:
        """The sites of the block."""
        return [reader.site for reader in self.readers]

    # ------------------------------------------------------------ execution

    def run(self, frame: Frame) -> None:
        """Leave one record with the summed-out density; observed steps without values are drawn."""
        again = [] if any(reader.lag for reader in self.readers) or not frame.request.redraw else self.readers
        with frame.hidden([reader.site.name for reader in again]):
            self._run(frame)

    def _run(self, frame: Frame) -> None:
        drawn = None
        if any(frame.supplied(reader.site.name) is None for reader in self.readers):
            drawn = self._path(frame)
            for reader in self.readers:
                if frame.supplied(reader.site.name) is None:
                    frame.given[reader.site.name] = Cell(self._drawn(reader, drawn, frame), True)
        log_prob = None
        if frame.request.wanted is not False:
            log_prob = self.evaluate(frame)
        for reader in self.readers:
            cell = frame.supplied(reader.site.name)
            assert cell is not None
            frame.bound[reader.site.name] = cell
            frame.sites[reader.site.name] = SiteRecord(
                reader.site.name,
                "observe",
                True,
                cell.value,
                None if log_prob is None else torch.zeros_like(log_prob),
                None,
                {},
                self.density,
            )
        frame.sites[self.name] = SiteRecord(self.name, "marginalize", True, drawn, log_prob, None, {}, self.density)
        if frame.request.pointwise:
            self._add_pointwise(frame)

    def evaluate(self, frame: Frame) -> Tensor:
        """log p(observed), all paths of the hidden states summed out: (B,)."""
        if not self.lagging:
            return Terms(self._apart(frame), True).per_row(frame.rows)
        *_, last = self._forward(frame)
        return Terms(logsumexp(last, -1), True).per_row(frame.rows)

    def _apart(self, frame: Frame) -> Tensor:
        """log p of what is observed at each place, where no state depends on another: (B, …)."""
        _, later = self._tables(frame)
        return logsumexp(later.squeeze(-2) + self._seen(frame).squeeze(-2), -1)

    def _forward(self, frame: Frame) -> Iterator[Tensor]:
        """log p(observed up to an element, its state), element by element: (B, chains…, K)."""
        first, later = self._tables(frame)
        seen = self._seen(frame)
        # nothing comes before the first element, so nothing there depends on a state before it
        at = first + seen[..., 0, 0, :]
        yield at
        for element in range(1, self.sizes[-1]):
            step = later[..., element - 1, :, :] + seen[..., element, :, :]
            at = logsumexp(at.unsqueeze(-1) + step, -2)
            yield at

    # ------------------------------------------------------------ what each element adds

    def _add_pointwise(self, frame: Frame) -> None:
        """The log density of what is observed at each place, in a chain given all before it.

        It stands in the record of the observed step where each of its elements reads a place of its own, else in that
        of the hidden name, NaN at a place that nothing reads.
        """
        each = self._by_place(frame)
        flat = each.flatten(1) if self.sizes else each.unsqueeze(1)
        places = [self._place(reader, frame) for reader in self.readers]
        read = torch.cat(places) if places else torch.zeros(0, dtype=torch.long)
        if len(places) == 1 and read.unique().numel() == read.numel():
            (reader,) = self.readers
            frame.sites[reader.site.name].pointwise = _spread(flat[:, read], reader)
            return
        counted = torch.zeros(flat.shape[1], dtype=torch.bool).index_fill(0, read, True)
        frame.sites[self.name].pointwise = flat.masked_fill(~counted, math.nan).reshape(each.shape)

    def _by_place(self, frame: Frame) -> Tensor:
        """log p(observed at a place | observed at the places before it in its chain): (B, …)."""
        if not self.lagging:
            return self._apart(frame)
        totals = torch.stack([logsumexp(at, -1) for at in self._forward(frame)], -1)
        added = totals.diff(dim=-1).masked_fill(totals[..., :-1] == -math.inf, -math.inf)
        return torch.cat([totals[..., :1], added], -1)

    def _tables(self, frame: Frame) -> tuple[Tensor, Tensor]:
        """log p of the first states (B, …, K), and of each state given the one before it (B, …, T − 1, K, K)."""
        values = torch.arange(self.states, device=frame.device)
        aligned = self.arguments.align(frame, (), None)
        parameters = self.arguments.canonical(aligned, len(self.sizes) + 2)
        length = self.sizes[-1] - (1 if self.lagging else 0)
        back = self.states if self.lagging else 1
        shape = (frame.rows, *self.sizes[:-1], length, back, self.states)
        later = self.family.log_prob(values, *parameters).expand(shape)
        if self.start is None or self.start_family is None:
            return later, later
        aligned = self.start.align(frame, (), None)
        parameters = self.start.canonical(aligned, len(self.sizes))
        first = self.start_family.log_prob(values, *parameters)
        return first.expand(frame.rows, *self.sizes[:-1], self.states), later

    def _seen(self, frame: Frame) -> Tensor:
        """What is observed at each place, by the state there and the one before: (B, …, T, K or 1, K)."""
        total: Tensor | None = None
        for reader in self.readers:
            terms = self._terms(reader, frame)
            place = self._place(reader, frame)
            flat = terms.reshape(terms.shape[0], -1, *terms.shape[-2:])
            made = flat.new_zeros(flat.shape[0], math.prod(self.sizes), *flat.shape[-2:])
            made = made.index_add(1, place, flat)
            total = made if total is None else total + made
        if total is None:
            total = torch.zeros(frame.rows, math.prod(self.sizes), 1, self.states, dtype=precision())
        return total.reshape(total.shape[0], *self.sizes, *total.shape[-2:]).expand(
            frame.rows, *self.sizes, total.shape[-2], self.states
        )

    def _terms(self, reader: Reader, frame: Frame) -> Tensor:
        """log density of each observed element for all states: (B, *elements, K or 1, K)."""
        site = reader.site
        given = frame.supplied(site.name)
        assert given is not None
        value = _fitted(given, reader, site, frame)
        aligned = site.arguments.align(frame, (), None)
        rank = len(reader.sizes) + 2
        terms = site.family.log_prob(value[..., None, None], *site.arguments.canonical(aligned, rank))
        elements = value.shape[1:]
        shape = (frame.rows, *elements, terms.shape[-2] if terms.ndim > 1 else 1, self.states)
        return terms.expand(shape)

    def _place(self, reader: Reader, frame: Frame) -> Tensor:
        """The place of each observed element among all of the chains', (elements,)."""
        sizes = [size - (reader.lag if at == reader.axis else 0) for at, size in enumerate(reader.sizes)]
        flat = torch.zeros((), dtype=torch.long, device=frame.device)
        for place, size in zip(reader.places, self.sizes, strict=True):
            index = as_one(place(frame)).value.long()
            self._check(index, size)
            flat = flat * size + index
        return flat.expand(sizes).reshape(-1)

    def _check(self, index: Tensor, size: int) -> None:
        if recording() or not index.numel():
            return
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= size:
            raise self.where.misfit(f"places 0 … {size - 1}", f"{low if low < 0 else high}")

    # ------------------------------------------------------------ draws

    def _path(self, frame: Frame) -> Tensor:
        """A path of each chain, int64 (B, …, T)."""
        first, later = self._tables(frame)
        generator = frame.request.generator
        if not self.lagging:
            logits = later.squeeze(-2)
            return categorical_draw(tuple(logits.shape[:-1]), generator, logits)
        path = [categorical_draw(tuple(first.shape[:-1]), generator, first)]
        for element in range(self.sizes[-1] - 1):
            table = later[..., element, :, :]
            rows = path[-1][..., None, None].expand(*path[-1].shape, 1, self.states)
            logits = table.gather(-2, rows).squeeze(-2)
            path.append(categorical_draw(tuple(logits.shape[:-1]), generator, logits))
        return torch.stack(path, -1)

    def _drawn(self, reader: Reader, path: Tensor, frame: Frame) -> Tensor:
        """Values of an observed step given a path, (B, *elements)."""
        site = reader.site
        if reader.lag:
            raise self.where.misfit(f"values for `{site.name}`, which reads its own earlier elements", "none")
        aligned = site.arguments.align(frame, (), None)
        rank = len(reader.sizes) + 2
        place = self._place(reader, frame)
        flat = path.reshape(path.shape[0], -1)
        now = flat[:, place]
        before = flat[:, (place - 1).clamp(min=0)]
        shape = (frame.rows, *reader.sizes)
        picked: list[Tensor] = []
        ranks = [parameter.rank for parameter in site.family.facts.parameters if not parameter.sizes]
        for parameter, event in zip(site.arguments.canonical(aligned, rank), ranks, strict=True):
            own = _from_states(parameter, event)
            picked.append(_at(parameter.expand(*shape, *own), before.reshape(shape), now.reshape(shape)))
        noise = site.family.fresh_noise(shape, frame.request.generator, tuple(picked))
        value = site.family.value_of(noise, tuple(picked))
        return value.long() if site.discrete else value


def _from_states(parameter: Tensor, event: int) -> tuple[int, ...]:
    """Sizes of the last axes of a parameter: (K or 1, K or 1, *event)."""
    return (1, 1, *parameter.shape)[-2 - event :]


def _at(table: Tensor, before: Tensor, now: Tensor) -> Tensor:
    """The entry of each element for its states; `table` is (B, *elements, K or 1, K or 1, *event)."""
    for state in (before, now):
        axis = state.ndim
        if table.shape[axis] > 1:
            index = state.reshape(*state.shape, *(1,) * (table.ndim - axis))
            table = table.gather(axis, index.expand(*state.shape, 1, *table.shape[axis + 1 :]))
        table = table.select(axis, 0)
    return table


def _fitted(given: Cell, reader: Reader, site: FamilySite, frame: Frame) -> Tensor:
    """Given values as (B, *elements), those without a density left out."""
    value: Any = given.value
    if not site.discrete and not value.is_floating_point():
        value = value.to(precision())
    own = tuple(value.shape[int(given.rows) :])
    if not given.rows and len(own) == len(reader.sizes) + 1 and own[0] == 1:
        value, own = value[0], own[1:]
    if own != reader.sizes:
        raise site.where.misfit(f"values of shape {reader.sizes}, as its indices have", f"shape {own}")
    value = with_rows(Cell(value, given.rows), frame.rows)
    if reader.lag:
        value = value.narrow(reader.axis + 1, reader.lag, reader.sizes[reader.axis] - reader.lag)
    return value


def _spread(each: Tensor, reader: Reader) -> Tensor:
    """Numbers of the elements with a density as (B, *elements), NaN for those that a lag leaves out."""
    sizes = [size - (reader.lag if at == reader.axis else 0) for at, size in enumerate(reader.sizes)]
    whole = each.reshape(each.shape[0], *sizes)
    if not reader.lag:
        return whole
    axis = reader.axis + 1
    shape = (*whole.shape[:axis], reader.lag, *whole.shape[axis + 1 :])
    return torch.cat([torch.full(shape, math.nan, dtype=whole.dtype), whole], axis)


def _reader(step: ObserveModel, places: Sequence[Any], program: str, parts: Parts) -> Reader:
    site, chain = step.site, step.site.chain
    made = FamilySite(site, "observe", program, parts)
    at = 0 if chain is None else chain.at
    lag = 0 if chain is None else chain.indices[chain.at].lag
    return Reader(made, [compile_expr(place, parts) for place in places], made.plate, at, lag)
