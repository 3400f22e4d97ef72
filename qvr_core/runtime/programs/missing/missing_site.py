"""Observed sites whose data may lack cells: what is missing is left out, or a latent of its own."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.families.bijectors import constrain
from qvr_core.runtime.programs.arguments import Aligned
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts
from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite, Terms
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.missing.gaps import Filling, GapFinder, Gaps, given_values, moved_values, shifted
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.semantics.types.model.steps import Site


class MissingSite(FamilySite):
    """`observe v : S <- Family(args) [missing=impute]`, or `[missing=drop]`."""

    def __init__(self, site: Site, kind: SiteKind, program: str, parts: Parts) -> None:
        super().__init__(site, kind, program, parts)
        assert site.missing is not None
        self.imputes = site.missing.how == "impute"
        self.shifts = site.missing.shifts
        self.find = GapFinder(self.facts.event, self.family.support(()).kind, self.discrete, self.where)
        # between computed bounds a value is known where the arguments are
        self.late = not self.arguments.literal and bool(self.facts.bounded_by or self.facts.above)

    # ------------------------------------------------------------ before any step runs

    def prepare(self, frame: Frame) -> None:
        """Note what is missing of the value that was given, and fill it in where that is possible."""
        gaps = self.gaps(frame)
        cell = frame.supplied(self.name)
        if cell is None or gaps is None:
            if cell is not None and self.discrete:
                frame.given[self.name] = Cell(cell.value.long(), cell.rows)
            return
        filling = frame.gaps[self.name] = Filling(gaps, left_out=not self.imputes)
        if self.imputes:
            self._check_first(gaps)
            self._fill(filling, frame, None)
            if filling.values is not None:
                frame.given[self.name] = Cell(gaps.completed(filling.values), True)
            return
        if gaps.partial:
            wanted = "draws that are given or missing as a whole (`missing=impute` fills in a part)"
            raise self.where.misfit(wanted, "a part of one")
        frame.given[self.name] = Cell(gaps.filled, cell.rows)

    def _check_first(self, gaps: Gaps) -> None:
        """First elements have no density of their own without a `from`, so that any value would do for them."""
        chain = self.site.chain
        if chain is None or chain.start is not None:
            return
        axis, lag = gaps.cells.ndim - len(chain.indices) + chain.at, chain.indices[chain.at].lag
        first = gaps.cells.narrow(axis, 0, lag)
        if bool(first.any()):
            place = first_true(first)[gaps.cells.ndim - len(chain.indices) :]
            written = ", ".join(f"{index.name} = {at}" for index, at in zip(chain.indices, place, strict=True))
            remedy = "end the step with `from …`, or say `missing=drop`"
            wanted = f"a value for each first element, as nothing draws it ({remedy})"
            raise self.where.misfit(wanted, f"none at {written}, counted from 0")

    def gaps(self, frame: Frame) -> Gaps | None:
        """What is missing of the value that was given; None where nothing is."""
        cell = frame.supplied(self.name)
        return None if cell is None or not is_tensor(cell.value) else self.find(cell.value, self.there(cell, frame))

    def _fill(self, filling: Filling, frame: Frame, parameters: tuple[Tensor, ...] | None) -> None:
        """The values for the gaps, where they are given and their support is known."""
        request, gaps = frame.request, filling.gaps
        free, given = request.unconstrained.get(self.name), request.values.get(self.name)
        if free is not None and (parameters is not None or not self.late):
            support = self.own_support(frame) if parameters is None else self._support(parameters)
            filling.values, filling.log_jacobian = moved_values(gaps, free, support)
            filling.moved = True
        elif free is None and given is not None:
            filling.values = given_values(gaps, given, frame.rows, self.where)

    # ------------------------------------------------------------ the step

    def run(self, frame: Frame) -> None:
        """As of any site; what nothing has filled in by now is drawn."""
        filling = frame.gaps.get(self.name)
        if filling is None or not self.imputes or frame.supplied(self.name) is None:
            super().run(frame)  # a block that is drawn hides what is given
            return
        drawn = filling.values is None and not self._moved_late(filling, frame)
        if drawn:
            self._draw(filling, frame)
        assert filling.values is not None
        frame.given[self.name] = Cell(filling.gaps.completed(filling.values), True)
        # what was drawn from the model adds nothing to what is observed
        filling.left_out = frame.request.wanted == "observed" and not filling.moved
        if filling.left_out:
            self.check_drawable(filling.gaps)
        super().run(frame)
        record = frame.sites[self.name]
        record.imputed, record.log_jacobian, record.observed = filling.values, filling.log_jacobian, not filling.moved
        if drawn and self.by_score and record.log_prob is not None:
            record.log_discrete = self._of_gaps(filling, frame, record)

    def unfilled(self, frame: Frame) -> bool:
        """Whether it lacks cells that nothing fills."""
        filling = frame.gaps.get(self.name)
        return self.imputes and filling is not None and filling.values is None

    def in_block(self, frame: Frame) -> Filling | None:
        """What fills the gaps below a summed-out latent; None where there are none, or they are left out.  Raises
        `NoDensity` where nothing fills them: they have no density of their own there, and nothing draws them."""
        filling = frame.gaps.get(self.name) if self.imputes else None
        if filling is None:
            return None
        if filling.values is None or (frame.request.wanted == "observed" and not filling.moved):
            raise self._undrawable("lacks values below `marginalize`, and nothing draws one given what else is there")
        return filling

    def _moved_late(self, filling: Filling, frame: Frame) -> bool:
        if self.late:
            self._fill(filling, frame, self._parameters(filling, frame))
        return filling.values is not None

    def _parameters(self, filling: Filling, frame: Frame) -> tuple[Tensor, ...]:
        aligned = self.arguments.align(frame, self.event, None)
        return self.arguments.canonical(aligned, filling.gaps.cells.ndim)

    def _draw(self, filling: Filling, frame: Frame) -> None:
        gaps = filling.gaps
        self.check_drawable(gaps)
        made, _ = self._fresh(frame, None, tuple(gaps.cells.shape), self._parameters(filling, frame), None)
        filling.values = gaps.picked(made.expand(frame.rows, *gaps.filled.shape))

    def check_drawable(self, gaps: Gaps) -> None:
        """Raises `NoDensity` where nothing draws what is missing."""
        if gaps.partial:
            raise self._undrawable("lacks some of the numbers of a draw, and nothing draws them given the others")

    def _undrawable(self, why: str) -> NoDensity:
        advice = "use NUTS, or a guide that moves them, such as AutoNormalGuide"
        return NoDensity(f"`{self.where.program}`: `{self.name}` {why}; {advice}", site=self.name)

    def _of_gaps(self, filling: Filling, frame: Frame, record: SiteRecord) -> Tensor:
        """The log density of the missing cells alone, (B,)."""
        assert record.log_prob is not None
        filling.left_out = not filling.left_out
        super().run(frame)
        other = frame.sites[self.name].log_prob
        assert other is not None
        filling.left_out = not filling.left_out
        frame.sites[self.name] = record
        return other - record.log_prob if filling.left_out else record.log_prob - other

    def _given(self, frame: Frame) -> Cell | None:
        return frame.supplied(self.name)

    # ------------------------------------------------------------ densities

    def terms(self, frame: Frame, value: Cell, aligned: Aligned, groups: Cell | None, *, absent: float = 0.0) -> Terms:
        filling = frame.gaps.get(self.name)
        if filling is not None and self.late and not self.imputes:
            # a stand-in between bounds that are computed
            support = self._support(self.arguments.canonical(aligned, value.rank - self.facts.event))
            wide = value.value if value.rows else value.value.expand(frame.rows, *value.value.shape)
            middle, _ = constrain(arrays.zeros_like(wide), support)
            value = Cell(arrays.where(filling.gaps.cells, middle, wide), True)
        return super().terms(frame, value, aligned, groups, absent=absent)

    def counted(self, frame: Frame) -> Tensor | None:
        found, filling = super().counted(frame), frame.gaps.get(self.name)
        if filling is None or not filling.left_out:
            return found
        there = ~self._silent(filling.gaps.cells)
        return there if found is None else there & found

    def fitted_limits(
        self, frame: Frame, value: Cell, groups: Cell | None, options: Mapping[str, Evaluate]
    ) -> dict[str, Cell]:
        """What the options say; of a cell that is left out what they say of its stand-in."""
        found, filling = super().fitted_limits(frame, value, groups, options), frame.gaps.get(self.name)
        if filling is None:
            return found
        return {key: Cell(filling.gaps.stood_in(cell.value), cell.rows) for key, cell in found.items()}

    def weighted(self, terms: Terms, frame: Frame, groups: Cell | None, absent: float = 0.0) -> Terms:
        found = super().weighted(terms, frame, groups, absent)
        filling = frame.gaps.get(self.name)
        if filling is None or not (filling.left_out or math.isnan(absent)):
            return found
        cells = self._silent(filling.gaps.cells)
        return Terms(arrays.where(cells, arrays.full((), absent, dtype=found.value.dtype), found.value), found.rows)

    def _silent(self, cells: Tensor) -> Tensor:
        """The cells that do not count where these are missing."""
        return cells


def filled_in_block(sites: Iterable[object], frame: Frame) -> Iterator[tuple[MissingSite, Filling]]:
    """The observed steps of a summed-out block whose missing cells are latents, with what fills them.  Raises
    `NoDensity`."""
    for site in sites:
        filling = site.in_block(frame) if isinstance(site, MissingSite) else None
        if isinstance(site, MissingSite) and filling is not None:
            yield site, filling


@contextmanager
def given_alone(fillings: Sequence[Filling]) -> Generator[None]:
    """While it is open, what fills missing cells has no density: a pointwise log likelihood is that of data."""
    for filling in fillings:
        filling.left_out = True
    try:
        yield
    finally:
        for filling in fillings:
            filling.left_out = False


def note_filled(filled: Iterable[tuple[MissingSite, Filling]], log_prob: Tensor | None, frame: Frame) -> None:
    """Leave in the records of a block what fills missing cells; their density is part of the block's, (B,)."""
    for site, filling in filled:
        record = frame.sites.get(site.name)
        if record is None:
            cell = frame.supplied(site.name)
            record = SiteRecord(site.name, "observe", True, cell and cell.value, None, None, {}, site.site.density)
            frame.sites[site.name] = record
        record.log_prob = None if log_prob is None else arrays.zeros_like(log_prob)
        record.imputed, record.log_jacobian, record.observed = filling.values, filling.log_jacobian, not filling.moved


class MissingChain(MissingSite, ChainSite):
    """The same where elements depend on earlier ones: a cell that reads a missing one is left out, too."""

    def _draw(self, filling: Filling, frame: Frame) -> None:
        raise self._undrawable("reads its own earlier elements, and nothing draws a missing one given later ones")

    def _silent(self, cells: Tensor) -> Tensor:
        return cells if self.imputes else shifted(cells, self.shifts, self.axis)
