"""What a program's data leave out of its observed steps: which cells each fills in, and in what shape they move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.chains.unequal import UnequalSite
from qvr_core.runtime.programs.chains.unequal_program import UnequalNames
from qvr_core.runtime.programs.data_types import DeclaredData
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.forward_algorithm import HiddenChain
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.interleaved import Groups
from qvr_core.runtime.programs.marginalize import Marginalize
from qvr_core.runtime.programs.missing.gaps import Gaps
from qvr_core.runtime.programs.missing.missing_site import MissingSite
from qvr_core.runtime.programs.missing.summed_site import SummedCells, summed_cells
from qvr_core.runtime.programs.steps import Later, Step
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.sentences import sentences_of
from qvr_core.semantics.types.walk import sites


def declared_data(program: Program) -> dict[str, DeclaredData]:
    """What `data` steps declare; what is observed may lack values where its step says so."""
    observed = sites(program.steps, ObserveModel)
    gaps = {site.name: site.missing is not None or site.lengths is not None for site in observed}
    gaps |= {item.name: True for item in program.data if item.lengths}
    parsed = sentences_of(program)
    return {
        item.name: DeclaredData(item, gaps.get(item.name), parsed=item.name in parsed)
        for item in program.data
        if item.declared
    }


class MissingCells:
    """The missing cells of a program module."""

    name: str
    data: Mapping[str, Any]
    declared: Mapping[str, DeclaredData]
    program: Program
    steps: list[Step]
    groups: Groups
    sites: dict[str, ArrowSite | FamilySite]
    marginals: dict[str, Marginalize | HiddenChain]
    predicted: tuple[str, ...]
    inner: Parts
    """The arrows and deductions inside of expressions."""

    @cached_property
    def gapped(self) -> list[MissingSite]:
        """The observed sites that say what is done with missing cells, those inside blocks included."""
        inner = [site for block in self.marginals.values() for site in block.observed()]
        return [site for site in (*self.sites.values(), *inner) if isinstance(site, MissingSite)]

    @property
    def imputed(self) -> tuple[str, ...]:
        """The observed steps whose missing cells are latent."""
        return tuple(site.name for site in self.gapped if site.imputes)

    @cached_property
    def in_draws(self) -> frozenset[str]:
        """The names that draws of a posterior have: the sites, and the steps of blocks whose missing cells are latents,
        which are no sites of their own."""
        return frozenset((*self.sites, *self.imputed))

    @cached_property
    def summed(self) -> list[SummedCells]:
        """The discrete steps whose missing cells are summed out."""
        return summed_cells(self.program, self.steps)

    def in_order(self, frame: Frame) -> Sequence[Step]:
        """The steps as they run; cells that are summed out are, where the last step that reads them stands."""
        steps = self.groups.in_order(self.steps, frame)
        for cells in self.summed:
            if cells.active(frame):
                own = [self.steps[at] for at in cells.places]
                last = next(step for step in reversed(steps) if step in own)
                kept = (cells if step is last else step for step in steps)
                steps = [step for step in kept if step not in own]
        return [*steps, self.unequal] if self.unequal.known else steps

    @cached_property
    def unequal(self) -> UnequalNames:
        """The names of which only the first elements exist."""
        inner = [site for block in self.marginals.values() for site in block.observed()]
        later = [step.site for step in self.steps if isinstance(step, Later)]
        found = [site for site in (*self.sites.values(), *inner, *later) if isinstance(site, UnequalSite)]
        chains = [block for block in self.marginals.values() if isinstance(block, HiddenChain)]
        hidden = {chain.name: chain.lengths for chain in chains if chain.lengths is not None}
        return UnequalNames(self.program, found, hidden, self.predicted, self.inner)

    def prepare_gaps(self, frame: Frame) -> None:
        """Before any step runs: what is missing, and what fills it."""
        for site in self._lacking:
            site.prepare(frame)
        self.unequal.prepare(frame)

    @cached_property
    def _lacking(self) -> list[FamilySite]:
        """The sites whose data may lack something, each once."""
        return list(dict.fromkeys((*self.gapped, *self.unequal.sites)))

    def missing(self, observations: Mapping[str, Any]) -> dict[str, Gaps]:
        """The gaps that are filled in, by observed step; steps without any are not there."""
        return {site.name: gaps for site, gaps in self._gaps(observations)}

    def missing_shapes(self, observations: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The shapes of the unconstrained numbers that move them."""
        return {site.name: site.find.shape(gaps) for site, gaps in self._gaps(observations)}

    def _gaps(self, observations: Mapping[str, Any]) -> Iterator[tuple[MissingSite, Gaps]]:
        request = Request(observations=observations)
        frame = Frame(self.name, request, 1, None, False, self.data, declared=self.declared)
        for site in self.gapped:
            gaps = site.gaps(frame) if site.imputes else None
            if gaps is not None:
                yield site, gaps

    def check_complete(self, observations: Mapping[str, Any]) -> None:
        """Raises `InputProblem` where values have gaps that nothing fills."""
        for name, gaps in self.missing(observations).items():
            message = f"`{self.name}`: {gaps.count} values of `{name}` are missing: give complete ones"
            raise InputProblem(message, site=name)
