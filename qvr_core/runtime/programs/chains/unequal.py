"""Sites of which only the first elements along their last index exist: `h[g : Subject, t : Time] [lengths=n]`.

Values stay rectangular inside: an element that does not exist holds the value of the last one of its chain, without
gradient, has no density, and is NaN in all that is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.families.bijectors import Bound, Support, constrain, restored
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts
from qvr_core.runtime.programs.chain_site import ChainSite, resting
from qvr_core.runtime.programs.chains.lengths import Existing, Lengths
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_shapes import entries_of
from qvr_core.runtime.programs.site_terms import Terms
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.runtime.values.indices import recording
from qvr_core.semantics.types.model.steps import Site


class UnequalSite(FamilySite):
    """A site with lengths whose elements do not read earlier ones."""

    def __init__(self, site: Site, kind: SiteKind, program: str, parts: Parts) -> None:
        super().__init__(site, kind, program, parts)
        assert site.lengths is not None
        indices = site.indices or (site.chain.indices if site.chain is not None else ())
        self.parts = parts
        self.lengths = Lengths(site.lengths, [index.space for index in indices], self.where, parts)
        self._behind = self.facts.event + len(entries_of(site, self.facts))  # axes of one element

    # ------------------------------------------------------------ what is given

    def prepare(self, frame: Frame) -> None:
        """As of any site, and stand-ins for elements that do not exist."""
        super().prepare(frame)
        cell = frame.supplied(self.name) if self.kind == "observe" else None
        if cell is not None and is_tensor(cell.value):
            frame.given[self.name] = self._held(cell, frame)

    def there(self, given: Cell, frame: Frame) -> Tensor | None:
        """Which elements exist, with the axes of a given value; None where it has another shape."""
        lead = self._lead(given.value)
        return None if lead is None else self.lengths(frame).beside(given.value, lead)

    def counted(self, frame: Frame) -> Tensor | None:
        there, masked = self.lengths(frame).there, super().counted(frame)
        return there if masked is None else there & masked

    def _lead(self, value: Tensor) -> int | None:
        """How many axes stand before those of the indices; None where a value has others."""
        sizes = self.lengths.sizes
        lead = value.ndim - len(sizes) - self._behind
        return lead if lead in (0, 1) and tuple(value.shape[lead : lead + len(sizes)]) == sizes else None

    def _held(self, cell: Cell, frame: Frame) -> Cell:
        """A given value with stand-ins; raises `InputProblem` where one that exists is missing."""
        value: Tensor = cell.value
        lead = self._lead(value)
        if lead is None:
            return cell
        existing, gaps = self.lengths(frame), frame.gaps.get(self.name)
        if value.is_floating_point() and not recording() and gaps is None:
            self._check_whole(value, existing, lead)
        held = existing.held(value, lead)
        # what is missing still is no number
        return Cell(held.long() if self.discrete and gaps is None else held, cell.rows)

    def _check_whole(self, value: Tensor, existing: Existing, lead: int) -> None:
        gone = arrays.isnan(value) & existing.beside(value, lead)
        if bool(gone.any()):
            place = first_true(gone)[lead : lead + len(self.lengths.sizes)]
            found = f"none for {self.lengths.cell(place, self.name)}: give it, or end the sequence before it"
            raise self.where.misfit(f"a value for each element up to `{self.lengths.written}`", found)

    def _given(self, frame: Frame) -> Cell | None:
        given = super()._given(frame)
        return None if given is None or not is_tensor(given.value) else self._held(given, frame)

    # ------------------------------------------------------------ values

    def _fresh(
        self,
        frame: Frame,
        noise: Tensor | None,
        batch: tuple[int, ...],
        parameters: tuple[Tensor, ...],
        groups: Cell | None,
    ) -> tuple[Tensor, Tensor]:
        value, noise = super()._fresh(frame, noise, batch, parameters, groups)
        return self.lengths(frame).held(value, 1), noise

    def _moved(
        self, frame: Frame, free: Tensor, parameters: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        existing = self.lengths(frame)
        how = self.family.standardised if self.site.noncentred else None
        if how is None:
            value, log_jacobian = self._placed(free, self._support(parameters), existing)
            return existing.held(value, 1), log_jacobian, None
        made = restored(free, how, self.family.log_prob, parameters)
        sizes = self.lengths.sizes
        kept = arrays.where(existing.beside(made.log_jacobian, 1), made.log_jacobian, 0.0)
        log_jacobian = kept.reshape(len(free), -1).sum(-1)
        _, rest = existing.parts(0)
        if len(rest):
            flat = free.reshape(free.shape[0], -1, *free.shape[1 + len(sizes) :])
            log_jacobian = log_jacobian + resting(flat.index_select(1, rest))
        return existing.held(made.value, 1), log_jacobian, made.log_density

    def _placed(self, free: Tensor, support: Support, existing: Existing, first: int = 0) -> tuple[Tensor, Tensor]:
        """The values of unconstrained numbers (B, *sizes, …) from place `first` on, 0 for what does not exist, and
        log |∂value/∂free|; numbers that move nothing rest."""
        sizes = self.lengths.sizes
        flat = free.reshape(free.shape[0], -1, *free.shape[1 + len(sizes) :])
        index, rest = existing.parts(first)
        own = replace(support, low=_picked(support.low, index, sizes), high=_picked(support.high, index, sizes))
        value, log_jacobian = constrain(flat.index_select(1, index), own)
        made = value.new_zeros(flat.shape[0], flat.shape[1], *value.shape[2:]).index_copy(1, index, value)
        if len(rest):
            log_jacobian = log_jacobian + resting(flat.index_select(1, rest))
        return made.reshape(free.shape[0], *sizes, *value.shape[2:]), log_jacobian

    # ------------------------------------------------------------ densities

    def fitted_limits(
        self, frame: Frame, value: Cell, groups: Cell | None, options: Mapping[str, Evaluate]
    ) -> dict[str, Cell]:
        """What the options say, that of an element which exists where there is none."""
        existing, sizes = self.lengths(frame), self.lengths.sizes
        found = super().fitted_limits(frame, value, groups, options)
        for key, cell in found.items():
            lead = int(cell.rows)
            if tuple(cell.value.shape[lead : lead + len(sizes)]) == sizes:
                found[key] = Cell(existing.held(cell.value, lead), cell.rows)
        return found

    def weighted(self, terms: Terms, frame: Frame, groups: Cell | None, absent: float = 0.0) -> Terms:
        found = super().weighted(terms, frame, groups, absent)
        there = self.lengths(frame).beside(found.value, int(found.rows))
        return Terms(arrays.where(there, found.value, arrays.full((), absent, dtype=found.value.dtype)), found.rows)

    # ------------------------------------------------------------ what is reported

    def finish(self, frame: Frame) -> None:
        """After all steps: NaN where nothing exists, in what is returned, kept and observed."""
        existing, record = self.lengths(frame), frame.sites.get(self.name)
        if record is not None and is_tensor(record.value):
            record.absent = (~existing.there).reshape(*self.lengths.sizes, *(1,) * self._behind)
            if self.kind != "sample":
                record.value = record.reported


def _picked(bound: Bound, index: Tensor, sizes: tuple[int, ...]) -> Bound:
    """A bound of every element as that of some of them."""
    if not is_tensor(bound) or bound.ndim == 0:
        return bound
    rows = bound.shape[: -len(sizes)] if bound.ndim > len(sizes) else ()
    return bound.expand(*rows, *sizes).reshape(*rows, -1).index_select(-1, index)


class UnequalChain(UnequalSite, ChainSite):
    """The same where elements depend on earlier ones."""

    def _constrained(self, free: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
        existing, support = self.lengths(frame), self.own_support(frame)
        if not self.first:
            return self._placed(free, support, existing)
        value, log_jacobian = self._placed(free, support, existing, self.lag)
        rest = value.narrow(self.axis + 1, self.lag, self.sizes[self.axis] - self.lag)
        return arrays.cat([*self.first_values(frame), rest], self.axis + 1), log_jacobian

    def of(self, value: Tensor, frame: Frame, *, observed: bool) -> SiteRecord:
        """The record of a value, (B, *sizes); binds it with stand-ins."""
        return super().of(self.with_stand_ins(value, frame), frame, observed=observed)

    def given_value(self, frame: Frame) -> Tensor | None:
        """As of any chain, with stand-ins."""
        value = super().given_value(frame)
        return None if value is None else self.with_stand_ins(value, frame)

    def with_stand_ins(self, value: Tensor, frame: Frame) -> Tensor:
        return self.lengths(frame).held(value, 1)

    def moving(self, log_jacobian: Tensor, free: Tensor, frame: Frame) -> Tensor:
        index, rest = self.lengths(frame).parts(self.lag if self.first else 0)
        found = log_jacobian.reshape(len(log_jacobian), -1).index_select(1, index).sum(-1)
        flat = free.reshape(len(free), -1, *free.shape[1 + len(self.sizes) :])
        return found + resting(flat.index_select(1, rest)) if len(rest) else found
