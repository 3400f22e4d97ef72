"""What each place of a hidden chain explains: the elements of observed steps, and the terms of scores.

Shapes: B rows, K states.  An element's log density is (B, *elements, K or 1, K): by the state before its place, where
it reads that, and the one at its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.random_draws import open_uniforms
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.chains.unequal import UnequalSite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.missing.gaps import shifted
from qvr_core.runtime.programs.missing.missing_site import MissingSite
from qvr_core.runtime.programs.site_classes import element_class
from qvr_core.runtime.programs.site_terms import fitted_option
from qvr_core.runtime.values.cells import Cell, as_one, with_rows
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.steps import ObserveModel, ScoreModel


class Reader:
    """Elements along indices, each of which reads one place of a chain."""

    def __init__(self, sizes: Sequence[int], places: Sequence[Expr], where: Where, parts: Parts) -> None:
        self.sizes = tuple(sizes)
        self.where = where
        self.places = [compile_expr(place, parts) for place in places]

    def terms(self, frame: Frame, states: int) -> Tensor:
        """log density of each element for all states."""
        raise NotImplementedError

    def known(self, frame: Frame) -> bool:
        """Whether the elements have values yet."""
        return True

    def silent(self, frame: Frame) -> Tensor | None:
        """The elements that do not count, (B, *sizes); None where all do."""
        return None

    def place(self, frame: Frame, chain: Sequence[int]) -> Tensor:
        """The place of each element among all of the chains', of sizes `chain`: (elements,)."""
        flat = arrays.zeros((), dtype=arrays.long, device=frame.device)
        for place, size in zip(self.places, chain, strict=True):
            index = as_one(place(frame)).value.long()
            self._check(index, size)
            flat = flat * size + index
        return flat.expand(self.sizes).reshape(-1)

    def _check(self, index: Tensor, size: int) -> None:
        if recording() or not index.numel():
            return
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= size:
            raise self.where.misfit(f"places 0 … {size - 1}", f"{low if low < 0 else high}")


class Score(Reader):
    """`score s = sum(e for t : Time)`: a term for each element."""

    def __init__(self, step: ScoreModel, places: Sequence[Expr], program: str, parts: Parts) -> None:
        sizes = [indexed.size_of(index.space) for index in step.indices]
        super().__init__(sizes, places, Where(program, f"score `{step.name}`", step.name), parts)
        self.value = compile_expr(step.value, parts)

    def terms(self, frame: Frame, states: int) -> Tensor:
        cell = as_one(self.value(frame))
        value = with_rows(cell, frame.rows)
        return value.expand(frame.rows, *self.sizes, value.shape[-2], states)

    def silent(self, frame: Frame) -> Tensor:
        """Terms that are 0 whatever the state is, as those that an `if` leaves out."""
        value = with_rows(as_one(self.value(frame)), frame.rows)
        return (value == 0).all(-1).all(-1).expand(frame.rows, *self.sizes)


class ObservedElements(Reader):
    """An observed step of the block: `whole` are the sizes of its value, `sizes` those of what has a density."""

    def __init__(self, step: ObserveModel, places: Sequence[Expr], program: str, parts: Parts) -> None:
        site, chain = step.site, step.site.chain
        self.site = made = element_class(site)(site, "observe", program, parts)
        self.name = made.name
        self.whole = made.plate
        self.axis = 0 if chain is None else chain.at
        self.lag = 0 if chain is None else chain.indices[chain.at].lag
        sizes = [size - (self.lag if at == self.axis else 0) for at, size in enumerate(made.plate)]
        super().__init__(sizes, places, made.where, parts)

    def known(self, frame: Frame) -> bool:
        return frame.supplied(self.name) is not None

    # ------------------------------------------------------------ densities

    def terms(self, frame: Frame, states: int) -> Tensor:
        site = self.site
        given = frame.supplied(self.name)
        assert given is not None
        value = self._later(self.fitted(given, frame))
        event = site.facts.event
        wide = value.reshape(*value.shape[: value.ndim - event], 1, 1, *value.shape[value.ndim - event :])
        aligned = site.arguments.align(frame, site.event, None)
        parameters = site.arguments.canonical(aligned, len(self.sizes) + 2)
        if site.limits is None:
            terms = site.family.log_prob(wide, *parameters)
        else:
            options = site.limits.bounds if self.name in frame.drawn else site.limits.options
            terms = site.limits.log_prob(wide, parameters, self._limits(frame, list(options)))
        shape = (frame.rows, *self.sizes, terms.shape[-2] if terms.ndim > 1 else 1, states)
        terms = terms.expand(shape)
        weight = None if site.weight is None else self._option(site.weight, "a weight", frame)
        terms = terms if weight is None else terms * weight.to(terms.dtype)[..., None, None]
        silent = self.silent(frame)
        return terms if silent is None else arrays.where(silent[..., None, None], 0.0, terms)

    def fitted(self, given: Cell, frame: Frame) -> Tensor:
        """Given values as (B, *whole, …)."""
        value: Any = given.value
        if not self.site.discrete and not value.is_floating_point():
            value = value.to(precision())
        event = self.site.facts.event
        own = tuple(value.shape[int(given.rows) :])
        if not given.rows and len(own) == len(self.whole) + event + 1 and own[0] == 1:
            value, own = value[0], own[1:]
        ends = self.site.event
        if own[: len(own) - event] != self.whole or (event and ends and own[len(own) - event :] != ends):
            wanted = (*self.whole, *(ends or ("…",) * event))
            raise self.where.misfit(f"values of shape {wanted}, as its indices have", f"shape {own}")
        return with_rows(Cell(value, given.rows), frame.rows)

    def _later(self, value: Tensor) -> Tensor:
        """(B, *whole, …) without the elements that have no density."""
        if not self.lag:
            return value
        return value.narrow(self.axis + 1, self.lag, self.whole[self.axis] - self.lag)

    def _option(self, option: Any, what: str, frame: Frame) -> Tensor:
        """What an option says of each element: (B, *sizes)."""
        cell = fitted_option(option, what, frame, self._like(frame), None, self.where)
        return self._later(cell.value.expand(frame.rows, *self.whole))

    def _like(self, frame: Frame) -> Cell:
        """The shape of a value."""
        return Cell(arrays.empty((frame.rows, *self.whole), device="meta"), True)

    def _limits(self, frame: Frame, keys: Sequence[str]) -> dict[str, Tensor]:
        assert self.site.limits is not None
        options = {key: self.site.limits.options[key] for key in keys}
        found = self.site.fitted_limits(frame, self._like(frame), None, options)
        wide = {key: cell.value.expand(frame.rows, *self.whole) for key, cell in found.items()}
        return {key: self._later(value)[..., None, None] for key, value in wide.items()}

    def silent(self, frame: Frame) -> Tensor | None:
        """The elements that do not count, (B, *sizes): masked, left out as missing, or reading what is."""
        site = self.site
        found: list[Tensor] = []
        if site.mask is not None:
            found.append(~self._option(site.mask, "a mask", frame).bool())
        if isinstance(site, UnequalSite):
            found.append(self._later(~site.lengths(frame).there.expand(frame.rows, *self.whole)))
        filling = frame.gaps.get(self.name)
        if filling is not None and filling.left_out and isinstance(site, MissingSite):
            cells = shifted(filling.gaps.cells, site.shifts, self.axis) if self.lag else filling.gaps.cells
            found.append(self._later(cells.expand(frame.rows, *self.whole)))
        return reduce(arrays.logical_or, found) if found else None

    def spread(self, each: Tensor) -> Tensor:
        """Numbers of the elements with a density as (B, *whole), NaN for those that a lag leaves out."""
        shaped = each.reshape(each.shape[0], *self.sizes)
        if not self.lag:
            return shaped
        axis = self.axis + 1
        shape = (*shaped.shape[:axis], self.lag, *shaped.shape[axis + 1 :])
        return arrays.cat([arrays.full(shape, math.nan, dtype=shaped.dtype), shaped], axis)

    # ------------------------------------------------------------ draws

    def drawn(self, path: Tensor, frame: Frame, chain: Sequence[int]) -> Tensor:
        """Values given a path (B, …, T), (B, *sizes, …)."""
        site = self.site
        if self.lag:
            raise self.where.misfit(f"values for `{self.name}`, which reads its own earlier elements", "none")
        aligned = site.arguments.align(frame, site.event, None)
        place = self.place(frame, chain)
        flat = path.reshape(path.shape[0], -1)
        shape = (frame.rows, *self.sizes)
        now, before = flat[:, place].reshape(shape), flat[:, (place - 1).clamp(min=0)].reshape(shape)
        picked: list[Tensor] = []
        given = site.arguments.canonical(aligned, len(self.sizes) + 2)
        for parameter, event in zip(given, site.family.ranks, strict=True):
            own = (1, 1, *parameter.shape)[-2 - event :]
            picked.append(_at(parameter.expand(*shape, *own), before, now))
        parameters = tuple(picked)
        if site.limits is not None and site.limits.bounds:
            given = {key: value[..., 0, 0] for key, value in self._limits(frame, list(site.limits.bounds)).items()}
            noise = open_uniforms(shape, parameters[0], frame.request.generator)
            return site.limits.draw(noise, parameters, given)
        event = site.family.noise_event(parameters, site.event) or ()
        noise = site.family.fresh_noise((*shape, *event), frame.request.generator, parameters)
        value = site.family.value_of(noise, parameters)
        return value.long() if site.discrete else value

    def lacks(self, frame: Frame) -> bool:
        """Whether cells are missing that nothing fills."""
        return isinstance(self.site, MissingSite) and self.site.unfilled(frame)

    def fill(self, path: Tensor, frame: Frame, chain: Sequence[int]) -> None:
        """Draw these cells given a path."""
        assert isinstance(self.site, MissingSite)
        filling = frame.gaps[self.name]
        self.site.check_drawable(filling.gaps)
        filling.values = filling.gaps.picked(self.drawn(path, frame, chain))
        frame.given[self.name] = Cell(filling.gaps.completed(filling.values), True)


def _at(table: Tensor, before: Tensor, now: Tensor) -> Tensor:
    """The entry of each element for its states; `table` is (B, *elements, K or 1, K or 1, *event)."""
    for state in (before, now):
        axis = state.ndim
        if table.shape[axis] > 1:
            index = state.reshape(*state.shape, *(1,) * (table.ndim - axis))
            table = table.gather(axis, index.expand(*state.shape, 1, *table.shape[axis + 1 :]))
        table = table.select(axis, 0)
    return table
