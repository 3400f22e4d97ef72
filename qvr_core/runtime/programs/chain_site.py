"""Sites whose elements depend on earlier ones: `sample h[t : Time] <- Normal(phi * h[t - 1], s) from Normal(0.0, s0)`.

The density of given values is evaluated for all elements at once; a draw goes element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.families.bijectors import Support, constrain
from qvr_core.runtime.families.random_draws import open_uniforms
from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arguments import Arguments
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.censoring_and_truncation import Given, Limits
from qvr_core.runtime.programs.chains.bounds import Bounds
from qvr_core.runtime.programs.chains.recurrences import each_element
from qvr_core.runtime.programs.chains.turns import Element, element_of
from qvr_core.runtime.programs.declared.families import runtime_family
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite, Terms, floating
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_shapes import entries_of
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.whole_numbers import drawn_counts
from qvr_core.semantics.types.chain_starts import draws_of, values_of
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Chain, Site


class Elements(Protocol):
    """What makes the elements of a chain in their order."""

    def first(self, frame: Frame) -> Sequence[Tensor]:
        """The first ones, each (B, *sizes) with its axis of length 1."""
        ...

    def later(self, frame: Frame, element: Element) -> Tensor:
        """The element that the frame's window is on."""
        ...

    def record(self, value: Tensor, frame: Frame) -> SiteRecord:
        """The record of all of them; binds the value."""
        ...


class Draws:
    """Elements that are drawn, by the noise that is given where there is some."""

    def __init__(self, site: ChainSite, frame: Frame) -> None:
        given = frame.request.noise_of(site.name, lambda: site.info.draws)
        self.site = site
        self.noise = None if given is None else given.get("")
        self.kept: list[Tensor] = []

    def first(self, frame: Frame) -> Sequence[Tensor]:
        found = self.site.first_draws(frame, self.noise)
        self.kept += [used for _, used in found]
        return [value for value, _ in found]

    def later(self, frame: Frame, element: Element) -> Tensor:
        noise = None if self.noise is None else element_of(self.noise, self.site.axis + 1, element)
        value, used = self.site.element(frame, noise)
        self.kept.append(used)
        return value

    def record(self, value: Tensor, frame: Frame) -> SiteRecord:
        record = self.site.of(value, frame, observed=False)
        record.noise[""] = arrays.cat(self.kept, self.site.axis + 1)
        return record


@dataclass(frozen=True, slots=True)
class StartDraw:
    """What the first elements of a chain, or one of them, are drawn from."""

    family: RuntimeFamily
    arguments: Arguments
    limits: Limits | None

    @classmethod
    def of(cls, draw: FamilyDraw, site: Site, where: Where, parts: Parts) -> StartDraw:
        family = runtime_family(draw, parts)
        limits = Limits(site.limits, family, where, parts) if site.limits else None
        return cls(family, Arguments(draw, family, site, where, parts), limits)


def resting(unused: Tensor) -> Tensor:
    """A standard normal density of numbers that nothing reads, (B,): what moves them stays near 0."""
    flat = unused.flatten(1)
    return -0.5 * (flat.square().sum(-1) + flat.shape[1] * math.log(2.0 * math.pi))


class ChainSite(FamilySite):
    """A site with a lag: values (B, *sizes, …), one axis for each index of the step, then those of one element.

    Entries that are drawn one by one (`v[t : Time] : Real 2 <- Normal(…)`) stand behind the indices in `sizes`.
    """

    def __init__(self, site: Site, kind: SiteKind, program: str, parts: Parts) -> None:
        assert site.chain is not None
        chain: Chain = site.chain
        super().__init__(site, kind, program, parts)
        self.entries = entries_of(site, self.facts)
        self.sizes = (*indexed.sizes_of(site.name, chain.indices), *self.entries)
        self.axis = chain.at
        self.index = chain.indices[chain.at].name
        self.lag = chain.indices[chain.at].lag
        self.starts = [StartDraw.of(draw, site, self.where, parts) for draw in draws_of(chain.start)]
        self.first = [compile_expr(value, parts) for value in values_of(chain.start)]
        families = [start.family for start in self.starts]
        self.bounds = Bounds.of(self.family, families, self.arguments, self.name)
        facts = [family.facts for family in families]
        improper = self.info.improper or any(one.improper for one in facts)
        self.info = replace(self.info, improper=improper, drawn=self.info.drawn and all(one.drawn for one in facts))

    def run(self, frame: Frame) -> None:
        """Draw or score the chain, bind it, and leave a record."""
        given = self._given(frame)
        free = frame.request.unconstrained.get(self.name)
        if given is None and free is not None:
            record = self.moved(free, frame)
        elif given is not None:
            value = self._fit(given, frame)
            record = self.of(value, frame, observed=True)
            if frame.request.redraw and self.kind == "observe":
                record = self._record(False, self._ahead(value, frame), {})
        else:
            drawn = self.elements(frame)
            record = drawn.record(self.grown(drawn, frame), frame)
        frame.sites[self.name] = record

    def moved(self, free: Tensor, frame: Frame) -> SiteRecord:
        """The record of unconstrained numbers, (B, *sizes); binds the value."""
        value, log_jacobian = self._constrained(free, frame)
        record = self.of(value, frame, observed=False)
        record.log_jacobian = log_jacobian
        return record

    def _constrained(self, free: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
        """The values of unconstrained numbers, and log |∂value/∂free| (B,)."""
        if not self.first and not self.bounds.apart:
            return constrain(free, self.own_support(frame))
        first, rest = self.split(free)
        if self.first:
            begun, log_first = arrays.cat(self.first_values(frame), self.axis + 1), resting(first)
        else:
            begun, log_first = self._first_constrained(first, frame)
        if self.bounds.recursive:
            value, log_rest = self._constrained_in_order(begun, rest, frame)
        else:
            value, log_rest = constrain(rest, self.own_support(frame))
        return arrays.cat([begun, value], self.axis + 1), log_first + log_rest

    def _first_constrained(self, first: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
        """The first elements, each on the support of what it is drawn from."""
        logs: list[Tensor] = []

        def value(start: StartDraw, part: Tensor) -> Tensor:
            made, log_jacobian = constrain(part, start.family.support(self.start_parameters(start, frame)))
            logs.append(log_jacobian)
            return made

        return self.by_start(first, value), arrays.stack(logs).sum(0)

    def _constrained_in_order(self, begun: Tensor, rest: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
        """The later elements, whose bounds are earlier ones."""
        axis = self.axis + 1
        made = indexed.Growing.of(
            [Cell(begun.narrow(axis, at, 1), True) for at in range(self.lag)], self.axis, self.index
        )

        def turn(element: Element) -> Sequence[Tensor]:
            free = element_of(rest, axis, element - self.lag)
            value, log_jacobian = constrain(free, self.own_support(frame))
            frame.bound[self.name].value.add(Cell(value, True))
            return [log_jacobian]

        elements = range(self.lag, self.sizes[self.axis])
        logs = each_element(frame, self.index, {self.name: made}, elements, turn)
        value = made.whole()
        later = value.narrow(axis, self.lag, value.shape[axis] - self.lag)
        return later, logs[0] if logs else rest.new_zeros(rest.shape[0])

    def own_support(self, frame: Frame) -> Support:
        """The support of later elements, or of the one that the frame's window is on."""
        if self.arguments.literal or not self.bounds.names:
            return super().own_support(frame)
        return self.bounds.support(self.arguments, self.event, len(self.sizes), frame)

    def given_value(self, frame: Frame) -> Tensor | None:
        """The value that the site has before any of its elements is made, (B, *sizes, …)."""
        given = self._given(frame)
        if given is not None:
            return self._fit(given, frame)
        free = frame.request.unconstrained.get(self.name)
        return None if free is None else self._constrained(free, frame)[0]

    def with_stand_ins(self, value: Tensor, frame: Frame) -> Tensor:
        """All elements, (B, *sizes), as other steps read them."""
        return value

    def moving(self, log_jacobian: Tensor, free: Tensor, frame: Frame) -> Tensor:
        """log |∂value/∂free| (B,) of that of each element, (B, *sizes); numbers `free` that move nothing rest."""
        found = log_jacobian.flatten(1).sum(-1)
        return found + resting(self.split(free)[0]) if self.first else found

    def split(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """The first elements of (B, *sizes), and the others."""
        axis = self.axis + 1
        return value.narrow(axis, 0, self.lag), value.narrow(axis, self.lag, self.sizes[self.axis] - self.lag)

    def of(self, value: Tensor, frame: Frame, *, observed: bool) -> SiteRecord:
        """The record of a value, (B, *sizes); binds it."""
        value = drawn_counts(value, self.name) if self.discrete else value
        frame.bound[self.name] = Cell(value, True)
        if not observed:
            frame.drawn.add(self.name)
        record = self._record(observed, value, {})
        request = frame.request
        if (request.wanted is not False) if observed else request.wants(self.name) or request.wanted:
            record.log_prob = self.weighted(self._chain_terms(value, frame), frame, None).per_row(frame.rows)
        if request.pointwise and observed and self.kind == "observe":
            record.pointwise = self._pointwise(value, frame)
        return record

    def _pointwise(self, value: Tensor, frame: Frame) -> Tensor:
        """log p(y_t | y before t) of each element, (B, *sizes); NaN for first elements that are given."""
        return self._counted(value, frame, math.nan).by_row(frame.rows)

    def _fit(self, given: Cell, frame: Frame) -> Tensor:
        """A given value as (B, *sizes)."""
        value: Tensor = given.value
        if not self.discrete and not value.is_floating_point():
            value = value.to(precision())
        own = tuple(value.shape[int(given.rows) :])
        event = self.facts.event
        if not given.rows and len(own) == len(self.sizes) + event + 1 and own[0] == 1:
            value, own = value[0], own[1:]
        if own[: max(0, len(own) - event)] != self.sizes or (self.event and own[len(own) - event :] != self.event):
            wanted = (*self.sizes, *(self.event or ("…",) * event))
            raise self.where.misfit(f"values of shape {wanted}, as its indices have", f"shape {own}")
        return value if given.rows else value.expand(frame.rows, *value.shape)

    # ------------------------------------------------------------ densities

    def given_terms(self, given: Cell, frame: Frame, absent: float = 0.0) -> Terms:
        """log density of each element of a given value, given those before it, `absent` for those that do not count;
        binds the value."""
        value = self._fit(given, frame)
        frame.bound[self.name] = Cell(value, True)
        return self._counted(value, frame, absent)

    def _counted(self, value: Tensor, frame: Frame, absent: float) -> Terms:
        terms = self._chain_terms(value, frame)
        if not self.starts and absent != 0.0:
            terms.value.narrow(self.axis + 1, 0, self.lag).fill_(absent)
        return self.weighted(terms, frame, None, absent)

    def _chain_terms(self, value: Tensor, frame: Frame) -> Terms:
        """log density of each element given those before it; zero for first elements that are given."""
        rank = len(self.sizes)
        aligned = self.arguments.align(frame, self.event, None)
        if asked() is not None:
            self.arguments.check(aligned)
        axis = self.axis + 1
        first, rest = self.split(value)
        parameters = self.arguments.canonical(aligned, rank)
        if self.limits is None:
            later = self.family.log_prob(rest, *parameters)
            return Terms(
                arrays.cat([self._first_terms(first, frame), later.expand(rest.shape[: rank + 1])], axis), True
            )
        # an earlier element is read as it is recorded, be it censored
        options = self.limits.bounds if self.name in frame.drawn else self.limits.options
        parts = {key: self.split(value) for key, value in self._wide_limits(options, frame).items()}
        begun = self._first_terms(first, frame, {key: before for key, (before, _) in parts.items()})
        later = self.limits.log_prob(rest, parameters, {key: behind for key, (_, behind) in parts.items()})
        return Terms(arrays.cat([begun, later.expand(rest.shape[: rank + 1])], axis), True)

    def _wide_limits(self, options: Mapping[str, Evaluate], frame: Frame) -> dict[str, Tensor]:
        """What options say of each element, (B, *sizes)."""
        like = Cell(arrays.empty((frame.rows, *self.sizes), device="meta"), True)
        found = self.fitted_limits(frame, like, None, options)
        return {key: cell.value.expand(frame.rows, *self.sizes) for key, cell in found.items()}

    def _first_terms(self, first: Tensor, frame: Frame, options: Given = MappingProxyType({})) -> Tensor:
        if not self.starts:
            batch = first.shape[: len(self.sizes) + 1]
            return first.new_zeros(batch, dtype=first.dtype if first.is_floating_point() else precision())

        def density(start: StartDraw, part: Tensor, *said: Tensor) -> Tensor:
            parameters = self.start_parameters(start, frame)
            if start.limits is None:
                return start.family.log_prob(part, *parameters)
            return start.limits.log_prob(part, parameters, dict(zip(options, said, strict=True)))

        return self.by_start(first, density, *options.values())

    def by_start(self, first: Tensor, made: Callable[..., Tensor], *beside: Tensor) -> Tensor:
        """What is made of the first elements, (B, *sizes, …), by what they are drawn from; `made` sees a start and its
        elements, of `first` and of what lies `beside`, with the axis of the chain behind those of the other indices."""
        axis = self.axis + 1
        spans = [(0, self.lag)] if len(self.starts) == 1 else [(at, 1) for at in range(self.lag)]
        found = [
            made(start, *(self.along_last(one.narrow(axis, *span)) for one in (first, *beside)))
            for start, span in zip(self.starts, spans, strict=True)
        ]
        return arrays.cat([self.in_place(part) for part in found], axis)

    def along_last(self, value: Tensor) -> Tensor:
        """(B, *sizes, …) with the axis of the chain behind those of the other indices."""
        return value.movedim(self.axis + 1, len(self.sizes) - len(self.entries))

    def in_place(self, value: Tensor) -> Tensor:
        """The inverse of `along_last`."""
        return value.movedim(len(self.sizes) - len(self.entries), self.axis + 1)

    def start_parameters(self, start: StartDraw, frame: Frame) -> tuple[Tensor, ...]:
        """The parameters of first elements, with an axis of length 1 for them behind the others."""
        aligned = start.arguments.align(frame, self.event, None)
        cells: dict[str, tuple[Cell, int]] = {}
        for name, (cell, own) in aligned.cells.items():
            behind = own + min(len(self.entries), cell.rank - own)
            cells[name] = Cell(cell.value.unsqueeze(-1 - behind), cell.rows), own
        return replace(aligned, cells=cells).canonical(len(self.sizes))

    # ------------------------------------------------------------ draws

    def elements(self, frame: Frame) -> Elements:
        """What makes the elements of the chain where they are not given."""
        return Draws(self, frame)

    def grown(self, made_by: Elements, frame: Frame) -> Tensor:
        """All elements, one by one, (B, *sizes)."""
        made = indexed.Growing.of([Cell(value, True) for value in made_by.first(frame)], self.axis, self.index)

        def turn(element: Element) -> Sequence[Tensor]:
            value = made_by.later(frame, element)
            frame.bound[self.name].value.add(Cell(value, True))
            return ()

        each_element(frame, self.index, {self.name: made}, range(self.lag, self.sizes[self.axis]), turn)
        return made.whole()

    def _ahead(self, value: Tensor, frame: Frame) -> Tensor:
        """A draw of each element given the values before it; first elements that are given stay as they are."""
        axis, rank = self.axis + 1, len(self.sizes)
        first = value.narrow(axis, 0, self.lag)
        if self.starts:
            first = arrays.cat([drawn for drawn, _ in self.first_draws(frame, None)], axis)
        parameters = self.arguments.canonical(self.arguments.align(frame, self.event, None), rank)
        shape = list(value.shape[: rank + 1])
        shape[axis] -= self.lag
        later, _ = self._drawn_at(None, tuple(shape), parameters, frame, (self.lag, shape[axis]))
        found = arrays.cat([first.to(later.dtype), later], axis)
        return drawn_counts(found, self.name) if self.discrete else found

    def _one(self, frame: Frame) -> tuple[int, ...]:
        """The shape of one element, with its axis."""
        return (frame.rows, *(1 if at == self.axis else size for at, size in enumerate(self.sizes)))

    def element(self, frame: Frame, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        """A draw of the element that the frame's window is on, and its noise."""
        aligned = self.arguments.align(frame, self.event, None)
        parameters = self.arguments.canonical(aligned, len(self.sizes))
        place = frame.windows[self.index]
        return self._drawn_at(noise, self._one(frame), parameters, frame, place)

    def _drawn_at(
        self,
        noise: Tensor | None,
        shape: tuple[int, ...],
        parameters: tuple[Tensor, ...],
        frame: Frame,
        place: tuple[Any, int],
        start: StartDraw | None = None,
    ) -> tuple[Tensor, Tensor]:
        """A draw of the elements at a `place` along the chain, the first and how many, and its noise; those of a
        `start` have the axis of the chain behind the others."""
        family, limits = (self.family, self.limits) if start is None else (start.family, start.limits)
        generator = frame.request.generator
        if limits is None or not limits.bounds:
            if noise is None:
                own = self._noise_event(parameters) if start is None else family.noise_event(parameters, self.event)
                noise = family.fresh_noise((*shape, *(own or ())), generator, parameters)
            return family.value_of(noise, parameters), noise
        if noise is None:
            noise = open_uniforms(shape, floating(parameters), generator)
        said = {key: one.narrow(self.axis + 1, *place) for key, one in self._wide_limits(limits.bounds, frame).items()}
        said = said if start is None else {key: self.along_last(one) for key, one in said.items()}
        return limits.draw(noise, parameters, said), noise

    def first_draws(self, frame: Frame, noise: Tensor | None) -> Sequence[tuple[Tensor, Tensor]]:
        """Draws of the first elements, and their noise."""
        axis = self.axis + 1
        if not self.lag:
            return []
        if not self.starts:
            return [(value, arrays.zeros_like(value)) for value in self.first_values(frame)]
        found: list[tuple[Tensor, Tensor]] = []
        count = len(self.sizes) - len(self.entries)
        others = tuple(size for at, size in enumerate(self.sizes[:count]) if at != self.axis)
        for at in range(self.lag):
            start = self.starts[min(at, len(self.starts) - 1)]
            parameters = self.start_parameters(start, frame)
            used = None if noise is None else self.along_last(noise.narrow(axis, at, 1))
            shape = (frame.rows, *others, 1, *self.entries)
            value, used = self._drawn_at(used, shape, parameters, frame, (at, 1), start)
            found.append((self.in_place(value), self.in_place(used)))
        return found

    def first_values(self, frame: Frame) -> list[Tensor]:
        """The first elements that `from` gives, or else the data, each (B, *sizes) with its axis of length 1."""
        if not self.first and (begun := frame.begun(self.name)) is not None:
            value = self._fit(begun, frame)
            return [value.narrow(self.axis + 1, at, 1) for at in range(self.lag)]
        if not self.first:
            raise NoDensity(
                f"{self.where.program}: nothing says how the first {self.lag} of `{self.name}` are drawn; "
                "give `from` a family, or the data, whose first elements they are",
                site=self.name,
            )
        cells = [value(frame) for value in self.first]
        cells = cells * self.lag if len(cells) == 1 else cells
        others = [size for at, size in enumerate(self.sizes) if at != self.axis]
        found: list[Tensor] = []
        for cell in cells:
            value = indexed.full(cell.value, others, cell.rows).unsqueeze(self.axis + int(cell.rows))
            found.append(value if cell.rows else value.expand(frame.rows, *value.shape))
        return found
