"""Missing cells of a discrete family, summed out each with the observed elements that read it.

Every value of the cells is a copy of all rows: the steps that read them run once on all copies.  Shapes: B rows, K
values, the site's own axes, and behind them what else a reader runs over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.categories import categorical_draw
from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.execution import SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite, Terms
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.missing.gaps import Filling, Gaps
from qvr_core.runtime.programs.missing.missing_site import MissingSite
from qvr_core.runtime.tensors.logsumexp import logsumexp
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem
from qvr_core.runtime.values.padding import each_repeated
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ObserveModel, Site
from qvr_core.semantics.types.summed import axes_of, readers, summed_sites


class SummedSite(MissingSite):
    """`observe v : S <- Family(args) [missing=impute]` of a discrete family."""

    def prepare(self, frame: Frame) -> None:
        """Note what is missing; it is summed out unless values for it are given."""
        gaps, cell = self.gaps(frame), frame.supplied(self.name)
        if gaps is None or cell is None:
            super().prepare(frame)
            return
        filling = frame.gaps[self.name] = Filling(gaps)
        self._fill(filling, frame, None)
        if filling.values is not None:
            frame.given[self.name] = Cell(gaps.completed(filling.values).long(), True)

    def cells(self, frame: Frame) -> Gaps | None:
        """The cells that nothing fills, before any step runs."""
        filling = frame.gaps.get(self.name)
        return None if filling is None or filling.values is not None else filling.gaps

    def run(self, frame: Frame) -> None:
        """As of any site; cells that nothing observed reads are drawn."""
        gaps = self.cells(frame)
        if gaps is not None:
            filling = frame.gaps[self.name]
            self._draw(filling, frame)
            assert filling.values is not None
            frame.given[self.name] = Cell(gaps.completed(filling.values).long(), True)
            filling.left_out = True
        super().run(frame)

    def own_terms(self, frame: Frame, absent: float = 0.0) -> Terms:
        """log density of each value that is bound, by element."""
        aligned = self.arguments.align(frame, self.event, None)
        return self.terms(frame, frame[self.name], aligned, None, absent=absent)

    def count(self, frame: Frame) -> int:
        """How many values a cell may have, from 0."""
        aligned = self.arguments.align(frame, self.event, None)
        if asked() is not None:
            self.arguments.check(aligned)
        assert self.family.categories is not None
        return self.family.categories(*self.arguments.canonical(aligned, len(aligned.batch)))


@dataclass
class SummedCells:
    """A site with the steps that depend on its cells, by their places in the program, and for each observed one where
    the site's axes stand among its own."""

    site: SummedSite
    places: tuple[int, ...]
    axes: Mapping[str, tuple[int, ...]]
    steps: Sequence[object] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        return self.site.name

    def active(self, frame: Frame) -> bool:
        """Whether cells are to be summed out, all that reads them being given."""
        if self.site.cells(frame) is None:
            return False
        given = [frame.supplied(name) is not None for name in self.axes]
        if any(given) and not all(given):
            lacking = next(name for name, there in zip(self.axes, given, strict=True) if not there)
            message = (
                f"`{frame.program}`: `{self.site.name}` has missing cells, summed out with what reads them: give "
                f"`{lacking}` as well, or nothing that reads them"
            )
            raise InputProblem(message, site=lacking)
        return all(given)

    def run(self, frame: Frame) -> None:
        """Leave the records of the site and of all that it observes; or fill the cells where values are wanted."""
        gaps = self.site.cells(frame)
        assert gaps is not None
        if frame.request.redraw:
            self._complete(gaps, self._joint(gaps, frame)[-1][1], frame)
            for step in (self.site, *self.steps):
                step.run(frame)  # pyright: ignore
            return
        observed = [step for step in self.steps if isinstance(step, FamilySite)]
        for step in (self.site, *observed):
            cell = frame.supplied(step.name)
            assert cell is not None
            frame.bound[step.name] = cell
            frame.sites[step.name] = SiteRecord(
                step.name, "observe", True, cell.value, None, None, {}, step.site.density
            )
        if frame.request.wanted is not False or frame.request.pointwise:
            self._score(gaps, frame)

    def _complete(self, gaps: Gaps, joint: Tensor, frame: Frame) -> None:
        """Cells drawn given what is observed: `joint` is (B, K, …)."""
        logits = joint.movedim(1, -1)
        drawn = categorical_draw(tuple(logits.shape[:-1]), frame.request.generator, logits)
        frame.given[self.site.name] = Cell(arrays.where(gaps.cells, drawn, gaps.filled), True)
        del frame.gaps[self.site.name]

    def _score(self, gaps: Gaps, frame: Frame) -> None:
        """Of each step the log density given what the steps above observe; for a missing cell, by its sum."""
        nothing = arrays.full((), math.nan)
        before: Tensor | None = None
        for step, joint, terms, silent in self._joint(gaps, frame):
            record = frame.sites[step.name]
            if before is None:
                elements = arrays.where(gaps.cells, 0.0, terms[:, 0])
                silent = None if silent is None else silent | gaps.cells
            else:
                elements = self._given_above(before, terms, gaps)
            record.log_prob = elements.flatten(1).sum(-1)
            if silent is not None:
                counted = arrays.where(silent, nothing.to(elements.dtype), elements)
                own = before is None
                record.pointwise = counted if own else self._placed(counted, self.axes[step.name], step, frame)
            before = joint

    def _given_above(self, before: Tensor, terms: Tensor, gaps: Gaps) -> Tensor:
        """log p(element | what is above, and the elements before it): (B, *axes, R) of terms (B, K, *axes, R)."""
        after = before.unsqueeze(-1) + terms.cumsum(-1)
        joint = arrays.cat([before.unsqueeze(-1), after], -1)
        summed = logsumexp(joint, 1)
        ratio = summed[..., 1:] - summed[..., :-1]
        impossible = summed[..., 1:].isneginf()
        ratio = arrays.where(impossible, arrays.full_like(ratio, -math.inf), ratio)
        return arrays.where(gaps.cells.unsqueeze(-1), ratio, terms[:, 0])

    def _placed(self, elements: Tensor, axes: Sequence[int], step: FamilySite, frame: Frame) -> Tensor:
        """Elements in the order of a step's own axes."""
        value = frame.bound[step.name]
        shape = tuple(value.value.shape[int(value.rows) : value.value.ndim - step.facts.event])
        others = [at for at in range(len(shape)) if at not in axes]
        wide = elements.reshape(len(elements), *(shape[at] for at in (*axes, *others)))
        order = [*axes, *others]
        return wide.permute(0, *(1 + order.index(at) for at in range(len(shape))))

    def _joint(self, gaps: Gaps, frame: Frame) -> list[tuple[FamilySite, Tensor, Tensor, Tensor | None]]:
        """Of the site and each observed step: the log density of the values of every cell with all up to that step,
        (B, K, *axes), its own terms (B, K, *axes, R), those of the site (B, K, *axes), and where each is asked for
        which of them do not count, without K."""
        count = self.site.count(frame)
        inner = frame.inner(count)
        values = arrays.arange(count, device=frame.device).repeat(frame.rows)
        values = values.reshape(-1, *(1,) * gaps.cells.ndim)
        inner.bound[self.site.name] = Cell(arrays.where(gaps.cells, values, gaps.filled), True)
        with each_repeated(count):
            terms = self._by_cell(_elements(self.site, inner), tuple(range(gaps.cells.ndim)), gaps, inner, count)
            own = terms.squeeze(-1)
            first = arrays.arange(count, device=frame.device).reshape(-1, *(1,) * gaps.cells.ndim) == 0
            joint = arrays.where(gaps.cells | first, own, arrays.full_like(own, -math.inf))

            def silent(step: FamilySite, axes: tuple[int, ...], terms: Tensor) -> Tensor | None:
                if not frame.request.pointwise:
                    return None
                marked = self._by_cell(_elements(step, inner, math.nan), axes, gaps, inner, count)
                return (arrays.isnan(marked) & ~arrays.isnan(terms))[:, 0]

            quiet = silent(self.site, tuple(range(gaps.cells.ndim)), terms)
            found: list[tuple[FamilySite, Tensor, Tensor, Tensor | None]] = [
                (self.site, joint, own, None if quiet is None else quiet.squeeze(-1))
            ]
            for step in self.steps:
                if not isinstance(step, FamilySite):
                    step.run(inner)  # pyright: ignore
                    continue
                terms = self._by_cell(_elements(step, inner), self.axes[step.name], gaps, inner, count)
                joint = joint + terms.sum(-1)
                found.append((step, joint, terms, silent(step, self.axes[step.name], terms)))
        return found

    def _by_cell(self, terms: Terms, axes: Sequence[int], gaps: Gaps, inner: Frame, count: int) -> Tensor:
        """Terms (B · K, …) as (B, K, *axes, R)."""
        value = arrays.unflatten(terms.by_row(inner.rows), 0, (-1, count))
        others = [at for at in range(value.ndim - 2) if at not in axes]
        own = tuple(value.shape[2 + at] for at in axes if at < value.ndim - 2)
        if own != tuple(gaps.cells.shape):
            raise RuntimeProblem(
                f"`{inner.program}`: what reads the missing cells of `{self.site.name}` has {own} elements for "
                f"{tuple(gaps.cells.shape)} cells",
                site=self.site.name,
            )
        moved = value.permute(0, 1, *(2 + at for at in axes), *(2 + at for at in others))
        return moved.reshape(*moved.shape[: 2 + len(axes)], -1)


def _elements(step: FamilySite, frame: Frame, absent: float = 0.0) -> Terms:
    """log density of each element of what a step observes, `absent` for those that do not count."""
    if isinstance(step, SummedSite):
        return step.own_terms(frame, absent)
    given = frame.supplied(step.name)
    assert given is not None
    if isinstance(step, ChainSite):
        return step.given_terms(given, frame, absent)
    aligned = step.arguments.align(frame, step.event, None)
    if asked() is not None:
        step.arguments.check(aligned)
    frame.bound[step.name] = value = step.fitted(frame, given, aligned, None)
    return step.terms(frame, value, aligned, None, absent=absent)


def summed_cells(program: Program, steps: Sequence[object]) -> list[SummedCells]:
    """The sums of a program; `steps` are those at run time."""
    return [_summed_cells(site, program, steps) for site in summed_sites(program)]


def _summed_cells(site: Site, program: Program, steps: Sequence[object]) -> SummedCells:
    own = next(at for at, step in enumerate(program.steps) if isinstance(step, ObserveModel) and step.site is site)
    made, sets = steps[own], axes_of(site)
    assert isinstance(made, SummedSite)
    places: list[int] = [own]
    axes: dict[str, tuple[int, ...]] = {}
    for reader in readers(program, site):
        places.append(reader.place)
        if isinstance(reader.step, ObserveModel):
            others = axes_of(reader.step.site)
            axes[reader.step.site.name] = tuple(others.index(name) for name in sets)
    return SummedCells(made, tuple(places), axes, [steps[at] for at in places[1:]])
